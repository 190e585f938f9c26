"""Types of offline estimators and of problems for them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import jax

from jaxdp.core.guarantee import Guarantee
from jaxdp.core.made_by import MadeBy, describe, format_tuple
from jaxdp.core.shown import html_of


class LabelsPrivatizeFn(Protocol):
    """Returns everything that the curator (local model) or the public (central model) may see of private data.

    Private data are the labels, and the features if the guarantee's privacy unit includes them.

    May read: params, features, labels, its own key (once).
    """

    def __call__(self, key: jax.Array, params: Any, features: jax.Array, labels: jax.Array) -> Any: ...


class FitFn(Protocol):
    """Returns the estimate from the report, which is the result of `privatize`. It can be traced by JAX.

    It may read features only if they are public.
    """

    def __call__(self, key: jax.Array, params: Any, features: jax.Array, report: Any) -> Any: ...


class CheckDataFn(Protocol):
    """Raises a ValueError for a data set that the estimator does not support. Called on the host."""

    def __call__(self, features: Any, labels: Any, *, feature_norm: Any) -> None: ...


class NoiseFn(Protocol):
    """Returns the `jaxdp.estimation.LabelNoise` that describes the noise on the way from labels to the estimate."""

    def __call__(self, params: Any, features: jax.Array) -> Any: ...


class CovarianceFn(Protocol):
    """Returns the `jaxdp.estimation.Covariance` of an estimate theta, from releases and public features."""

    def __call__(self, params: Any, features: jax.Array, report: Any, theta: jax.Array) -> Any: ...


class LargeFitFn(Protocol):
    """Applies `privatize` and `fit` in NumPy to features [num_samples, dim]. Reads labels only to compute the report.

    Features may be memory-mapped. `offset` is public, [num_samples] float64; None means zeros. The margin of a row x is
    x^T theta plus the row's offset. May read the key once.
    """

    def __call__(self, key: jax.Array, params: Any, features: Any, labels: jax.Array, *, offset: Any = None) -> Any: ...


class Estimator(NamedTuple):
    """An offline algorithm, which computes one estimate from a data set.

    Attributes:
        params: (**values) -> Params. On the host, as for a learner.
        guarantee: (**values) -> Guarantee. On the host: the claim for the same values.
        privatize: the trust boundary. Features are public unless the guarantee's privacy unit includes them.
        fit: returns the estimate, from the output of `privatize`.
        check: raises for a data set that the estimator does not support. If None, only data sets of compared pairs are
            accepted: features [num_samples, dim] and labels [num_samples].
        check_estimate: (estimate) -> None. On the host: raises if nothing was released or the release cannot be used.
            If None, every estimate is accepted.
        features_public: whether the privacy unit leaves features public. If so, `fit` may read them, and callers may
            pass facts that were read from them (`Sample.known_from_features`).
        noise: describes the noise on labels or on the objective, if features are public and the loss is logistic. None
            if no such description is known; confidence sets are then not available.
        covariance: returns the covariance of the estimate, for standard errors. None if the covariance is not known;
            intervals are then not available.
        large: applies `privatize` and then `fit` on the host, in blocks of rows, to features that are too large to
            copy. None if such features are treated like all others.
        made_by: the factory and its arguments, for `repr` and tables.
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
    large: LargeFitFn | None = None
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return describe(self, "estimator")

    def _repr_html_(self) -> str:
        return html_of(self, "estimator")


class Sample(NamedTuple):
    """One data set, with facts about it that an analyst would know.

    A fact replaces the `Params` field of the same name. Facts that were read from features are stored separately,
    because such facts are private if the features are private.

    Attributes:
        features: [num_samples, ...] float; the estimator's privacy unit determines whether they are private.
        labels: [num_samples] numbers, private. For pairs with features phi(a1) - phi(a0): 1 if a1 won, 0 if a0 won, 1/2
            for a tie. Otherwise in the form that the estimator's `check` accepts, such as rankings [num_samples,
            num_items].
        truth: the parameter of the distribution of the labels, or other values that only metrics read; None if there
            are none.
        known: facts that do not depend on the data, such as a radius that contains the truth, or a bound that was fixed
            before features were drawn. The simulator passes them to every estimator.
        known_from_features: facts that were read from the features, such as the maximum norm. The simulator passes them
            only to estimators with `features_public`.
    """

    features: jax.Array
    labels: jax.Array
    truth: Any
    known: Mapping[str, jax.Array]
    known_from_features: Mapping[str, jax.Array] = {}

    def __repr__(self) -> str:
        return format_tuple(self)


class SampleFn(Protocol):
    """Draws a data set. It never receives the estimator's key, so every estimator gets the same data."""

    def __call__(self, key: jax.Array, params: Any) -> Sample: ...


class MetricsFn(Protocol):
    """Compares an estimate with the truth, and returns the metrics as a dict of arrays."""

    def __call__(self, params: Any, sample: Sample, estimate: Any) -> Mapping[str, jax.Array]: ...


class Problem(NamedTuple):
    """A problem for estimators, which draws a data set and compares an estimate with the truth.

    Attributes:
        params: (**values) -> Params. On the host, as for an estimator.
        sample: draws a data set.
        metrics: compares an estimate with the truth.
        dims: names of the dimensions of each metric, for labelling.
        coords: maps the name of a dimension to its coordinates; dimensions may be left out.
        known: names of the `Params` fields that each sample's `known` provides.
        known_from_features: names of the `Params` fields that each sample's `known_from_features` provides.
        made_by: the factory and its arguments, for `repr` and tables.
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
