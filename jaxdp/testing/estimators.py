"""Defines the checks of an estimator on one data set."""

from collections.abc import Mapping
from typing import Any

import chex
import jax
import jax.numpy as jnp

from jaxdp.checks import check_made
from jaxdp.core import Estimator
from jaxdp.testing.checks import STRUCTURE, Check
from jaxdp.testing.programs import TOLERANCE, Programs


class EstimatorPrograms(Programs):
    """An estimator that privatizes a data set and is fitted to the report.

    The class takes the arguments of `jaxdp.testing.check_estimator`, except `skip` and `only`.
    """

    arguments = {  # noqa: RUF012
        "privatize": ("key", "params", "features", "labels"),
        "fit": ("key", "params", "features", "report"),
    }

    def __init__(
        self,
        estimator: Estimator,
        values: Mapping[str, float],
        features: jax.Array,
        labels: jax.Array,
        *,
        key: jax.Array,
        tolerance: float = TOLERANCE,
    ) -> None:
        check_made("estimator", estimator, Estimator)
        # If features are private, `fit` is run again with other features, which must not change the estimate.
        feature_sets = [features] if estimator.features_public else [features, _other(features)]
        super().__init__(
            estimator.params,
            estimator.guarantee,
            values,
            key=key,
            tolerance=tolerance,
            inputs=[(one_set,) for one_set in feature_sets],
        )
        self.algorithm, self.features, self.labels = estimator, features, labels

    def run(self, key: jax.Array, params: Any, *inputs: Any) -> Any:
        """Returns the report, and the estimate from the report and from the features that `fit` gets."""
        key_privatize, key_fit = jax.random.split(key)
        report = self.algorithm.privatize(key_privatize, params, self.features, self.labels)
        return report, self.algorithm.fit(key_fit, params, inputs[0], report)

    def check_noiseless(self) -> None:
        """Checks that at epsilon = inf the report does not depend on the key, unless the guarantee claims nothing."""
        if self.claim.is_private:
            reports, _ = self.lane_outputs[0]
            first, *others = (jax.tree.map(lambda leaf: leaf[-1, seed], reports) for seed in range(len(self.keys)))  # noqa: B023
            for other in others:
                chex.assert_trees_all_equal(first, other)

    def check_features(self) -> None:
        """Checks that the estimate depends on private features only through the report."""
        (_, first), (_, second) = self.lane_outputs
        chex.assert_trees_all_equal(first, second, custom_message="fit must not read features that are not public")

    def checks(self) -> list[Check]:
        """Returns all checks that apply to the estimator and its values."""
        checks = self.duties()
        if self.has_epsilon:
            checks += [Check("no noise at epsilon inf", STRUCTURE, self.check_noiseless)]
        if not self.algorithm.features_public:
            checks += [Check("features only through the report", STRUCTURE, self.check_features)]
        return checks


def _other(features: jax.Array) -> jax.Array:
    """Returns features with other signs and sizes; each differs from the given feature by at least 1."""
    return jnp.where(features > 0, -1 - features, 1 - 2 * features)
