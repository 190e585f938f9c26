"""Offline estimators, and the problems that they are run on."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import jax

from jaxdp.core.guarantee import Guarantee
from jaxdp.core.made_by import MadeBy, describe, format_tuple
from jaxdp.core.shown import html_of


class LabelsPrivatizeFn(Protocol):
    """Returns everything of the labels that the curator (local model) or the public (central model) may see.

    May read: params, features, labels, its own key (once).
    """

    def __call__(self, key: jax.Array, params: Any, features: jax.Array, labels: jax.Array) -> Any: ...


class FitFn(Protocol):
    """Returns the estimate: post-processing of the report and of public features. Steps are scanned inside."""

    def __call__(self, key: jax.Array, params: Any, features: jax.Array, report: Any) -> Any: ...


class CheckDataFn(Protocol):
    """Raises ValueError, on the host, for a data set that the estimator does not support."""

    def __call__(self, features: Any, labels: Any, *, feature_norm: Any) -> None: ...


class NoiseFn(Protocol):
    """Returns the `jaxdp.estimation.LabelNoise` between labels and the logistic objective of `fit`."""

    def __call__(self, params: Any, features: jax.Array) -> Any: ...


class CovarianceFn(Protocol):
    """Returns the `jaxdp.estimation.Covariance` of an estimate theta, from releases and public features."""

    def __call__(self, params: Any, features: jax.Array, report: Any, theta: jax.Array) -> Any: ...


class Estimator(NamedTuple):
    """An offline algorithm: labels in, one estimate out.

    Attributes:
        params: (**values) -> Params. On the host, as for a learner.
        guarantee: (**values) -> Guarantee. On the host: the claim for the same values.
        privatize: the trust boundary. Features are public, unless the guarantee's privacy unit includes them.
        fit: returns the estimate, from the output of `privatize`.
        check: refuses a data set that the estimator does not support. None accepts comparisons of pairs.
        check_estimate: (estimate) -> None. On the host: raises if nothing was released, or the release cannot be used.
            None accepts every estimate.
        features_public: whether the privacy unit leaves features public, so that `fit`, and any caller that passes
            known facts to the estimator, may read them. If False, no fact that was read from features is passed.
        noise: describes the noise, if `fit` replaces labels by unbiased ones and takes the features to be public. None
            if it does anything else: confidence sets are then not available.
        covariance: returns the covariance of the estimate, for standard errors. None if it is not known: intervals are
            then not available.
        made_by: the factory and its arguments, for people.
    """

    params: Callable[..., Any]
    guarantee: Callable[..., Guarantee]
    privatize: LabelsPrivatizeFn
    fit: FitFn
    check: CheckDataFn | None = None
    check_estimate: Callable[[Any], None] | None = None
    features_public: bool = False
    noise: NoiseFn | None = None
    covariance: CovarianceFn | None = None
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return describe(self, "estimator")

    def _repr_html_(self) -> str:
        return html_of(self, "estimator")


class Sample(NamedTuple):
    """One data set, and an analyst's knowledge of it, by the name of the `Params` field that it replaces.

    This knowledge comes in two groups, since one of them is private where features are.

    Attributes:
        features: [num_samples, ...] float, public or private as the estimator's privacy unit says.
        labels: [num_samples] int, private.
        truth: the parameter from which labels were drawn, or None; metrics alone read it.
        known: facts of the world, whatever the data: the radius that contains the truth, a bound that was fixed before
            features were drawn. They are passed to every estimator.
        known_from_features: facts that were read from the features, such as the largest norm. They are passed only to
            estimators whose privacy unit leaves features public.
    """

    features: jax.Array
    labels: jax.Array
    truth: Any
    known: Mapping[str, jax.Array]
    known_from_features: Mapping[str, jax.Array] = {}

    def __repr__(self) -> str:
        return format_tuple(self)


class SampleFn(Protocol):
    """Draws a data set. Its key is never the estimator's: every estimator meets the same data."""

    def __call__(self, key: jax.Array, params: Any) -> Sample: ...


class MetricsFn(Protocol):
    """Compares an estimate with the truth: dict of arrays."""

    def __call__(self, params: Any, sample: Sample, estimate: Any) -> Mapping[str, jax.Array]: ...


class Problem(NamedTuple):
    """A problem for estimators: draws a data set, and compares an estimate with the truth.

    Attributes:
        params: (**values) -> Params. On the host, as for an estimator.
        sample: draws a data set.
        metrics: compares an estimate with the truth.
        dims: names of the dimensions of each metric, for labelling.
        coords: values along those dimensions, where they have any.
        known: names of the `Params` fields that each sample's `known` provides.
        known_from_features: names of the `Params` fields that each sample's `known_from_features` provides.
        made_by: the factory and its arguments, for people.
    """

    params: Callable[..., Any]
    sample: SampleFn
    metrics: MetricsFn
    dims: Mapping[str, tuple[str, ...]]
    coords: Mapping[str, Any]
    known: tuple[str, ...] = ()
    known_from_features: tuple[str, ...] = ()
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return describe(self, "problem")

    def _repr_html_(self) -> str:
        return html_of(self, "problem")
