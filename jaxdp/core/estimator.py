"""What an offline estimator is, and what it is run on."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import jax

from jaxdp.core.guarantee import Guarantee
from jaxdp.core.made_by import MadeBy, brief, described
from jaxdp.core.shown import html_of


class LabelsPrivatizeFn(Protocol):
    """What the curator (local model) or the public (central model) may see of the labels.

    May read: params, features, labels, its own key (once).
    """

    def __call__(self, key: jax.Array, params: Any, features: jax.Array, labels: jax.Array) -> Any: ...


class FitFn(Protocol):
    """The estimate: post-processing of the report, and of features that are public. Steps are scanned inside."""

    def __call__(self, key: jax.Array, params: Any, features: jax.Array, report: Any) -> Any: ...


class CheckDataFn(Protocol):
    """On the host: raises ValueError for a data set that the estimator is not written for."""

    def __call__(self, features: Any, labels: Any, *, feature_norm: Any) -> None: ...


class NoiseFn(Protocol):
    """What stands between labels and the logistic objective that `fit` minimises: a `jaxdp.estimation.LabelNoise`."""

    def __call__(self, params: Any, features: jax.Array) -> Any: ...


class Estimator(NamedTuple):
    """An offline algorithm: labels in, one estimate out.

    Attributes:
        params: (**values) -> Params. On the host, as for a learner.
        guarantee: (**values) -> Guarantee. On the host, for the same values: what is claimed.
        privatize: the trust boundary. Features are public, unless the guarantee's privacy unit includes them.
        fit: the estimate, from what `privatize` returned.
        check: refuses a data set that it is not written for. None takes comparisons of pairs.
        check_estimate: (estimate) -> None. On the host: raises where nothing was released, or what was cannot be used.
            None takes every estimate.
        features_public: whether the privacy unit leaves features public, so that `fit`, and whoever tells the estimator
            something, may read them. Estimators that say nothing are told nothing that was read from features.
        noise: where `fit` replaces labels by unbiased ones and takes the features to be public: how. None where it does
            anything else: confidence sets are not made for it.
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
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return described(self, "estimator")

    def _repr_html_(self) -> str:
        return html_of(self, "estimator")


class Sample(NamedTuple):
    """One data set, and what an analyst knows of it, by the name of the `Params` field for which it stands.

    What is known comes in two groups, since one of them is private where features are.

    Attributes:
        features: [num_samples, ...] float, public or private as the estimator's privacy unit says.
        labels: [num_samples] int, private.
        truth: what the labels were drawn from, or None; metrics alone read it.
        known: facts of the world, whatever the data: the radius that contains the truth, a bound that was fixed before
            features were drawn. Every estimator is told them.
        known_from_features: facts that were read from the features, such as the largest norm. Only estimators whose
            privacy unit leaves features public are told them.
    """

    features: jax.Array
    labels: jax.Array
    truth: Any
    known: Mapping[str, jax.Array]
    known_from_features: Mapping[str, jax.Array] = {}

    def __repr__(self) -> str:
        return brief(self)


class SampleFn(Protocol):
    """Draws a data set. Its key is never the estimator's: every estimator meets the same data."""

    def __call__(self, key: jax.Array, params: Any) -> Sample: ...


class MetricsFn(Protocol):
    """Measures an estimate against the truth: dict of arrays."""

    def __call__(self, params: Any, sample: Sample, estimate: Any) -> Mapping[str, jax.Array]: ...


class Problem(NamedTuple):
    """What an estimator is run on: draws a data set, and measures an estimate against the truth.

    Attributes:
        params: (**values) -> Params. On the host, as for an estimator.
        sample: draws a data set.
        metrics: measures an estimate.
        dims: names of the dimensions of each metric, for labelling.
        coords: values along those dimensions, where they have any.
        known: names of the `Params` fields for which each sample's `known` has a value.
        known_from_features: names of those for which its `known_from_features` has one.
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
        return described(self, "problem")

    def _repr_html_(self) -> str:
        return html_of(self, "problem")
