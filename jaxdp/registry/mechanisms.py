"""Mechanisms as one release."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import mechanisms
from jaxdp.audit import Domain, moved_values, replaced_rows
from jaxdp.core import Guarantee, default_float
from jaxdp.mechanisms.numerical import laplace_delta, selection_delta, sparse_vector_delta, vector_delta
from jaxdp.registry.entries import MechanismEntry
from jaxdp.registry.laws import above_threshold_law, label_law, noisy_max_law, sign_law
from jaxdp.validation import check_delta, check_epsilon, check_positive

Pair = tuple[np.ndarray, np.ndarray]
UNIT = "one record"


def claim(
    trust_model: str, unit: str, argument: str, added: Callable[[float, float], float | None] = lambda *budget: None
) -> Callable[..., Guarantee]:
    """A `guarantee`: pure, or approximate where a delta is given.

    Args:
        trust_model: of the claim.
        unit: of privacy.
        argument: why it holds.
        added: (epsilon, delta) -> what arithmetic adds to delta.
    """

    def guarantee(
        *, epsilon: float, delta: float | None = None, sensitivity: float = 1.0, bound: float = 1.0
    ) -> Guarantee:
        del sensitivity, bound  # noise follows them
        return Guarantee.approximate(
            epsilon,
            0.0 if delta is None else check_delta(delta),
            trust_model=trust_model,
            privacy_unit=unit,
            argument=argument,
            numerical_delta=added(epsilon, delta or 0.0),
        )

    return guarantee


NUMBERS = 8  # of a release, at most: see the sizes


def _laplaces(epsilon: float, delta: float) -> float | None:
    return laplace_delta(epsilon, numbers=NUMBERS, spread=NUMBERS)


def _normals(epsilon: float, delta: float) -> float | None:
    return vector_delta(epsilon, delta, numbers=NUMBERS)


def _vectors(epsilon: float, delta: float) -> float | None:
    return vector_delta(epsilon, None, numbers=NUMBERS)


def _selected(epsilon: float, delta: float) -> float | None:
    return selection_delta(NUMBERS, epsilon)


def _asked(epsilon: float, delta: float) -> float | None:
    return sparse_vector_delta(epsilon / 2)


class Params(NamedTuple):
    """Of a release of one input.

    Attributes:
        epsilon: [] float.
        unit: [] float, the sensitivity, or the bound on a scalar.
    """

    epsilon: np.ndarray
    unit: np.ndarray


def _budget(*, epsilon: float) -> np.ndarray:
    return np.asarray(check_epsilon(epsilon), default_float())


def _for_sensitivity(*, epsilon: float, sensitivity: float = 1.0) -> Params:
    return Params(_budget(epsilon=epsilon), np.asarray(check_positive("sensitivity", sensitivity), default_float()))


def _for_bound(*, epsilon: float, bound: float = 1.0) -> Params:
    return Params(_budget(epsilon=epsilon), np.asarray(check_positive("bound", bound), default_float()))


def _analytic_stddev(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> Any:
    return mechanisms.round_up(mechanisms.analytic_gaussian(epsilon, delta, sensitivity), default_float())


def _classical_stddev(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> Any:
    return mechanisms.round_up(mechanisms.classical_gaussian(epsilon, delta, sensitivity), default_float())


def _laplace(key, params, data):
    return mechanisms.laplace(key, data, params.epsilon, l1_sensitivity=params.unit)


def _noisy_leads(key, params, data):
    return mechanisms.noisy_leads(key, data, params.epsilon, l1_sensitivity=params.unit)


def _gaussian(key, noise_stddev, data, *, sensitivity=1.0):
    return mechanisms.gaussian(key, data, noise_stddev, l2_sensitivity=sensitivity)


def _k_norm(key, params, data):
    return mechanisms.k_norm(key, data, params.epsilon, sensitivity=params.unit)


def _randomized_response(key, epsilon, data, *, num_labels):
    return mechanisms.randomized_response(key, data, epsilon, num_labels=num_labels)


def _randomize_scalar(key, params, data):
    return mechanisms.randomize_scalar(key, data, params.epsilon, bound=params.unit)


def _noisy_max(key, params, data, *, noise):
    return mechanisms.noisy_max(key, data, params.epsilon, sensitivity=params.unit, noise=noise)


def _above_threshold(key, params, data, *, split):
    return mechanisms.above_threshold(key, data, params.epsilon, threshold=0.5, sensitivity=params.unit, split=split)


def _itself(data):
    return data


def _leads(data):
    return (data - data.max()).astype(default_float())


def _first_above(data):
    return jnp.where(jnp.any(data >= 0.5), jnp.argmax(data >= 0.5), data.size).astype(jnp.int32)


def _one_counted(num_counts: int, sensitivity: float = 1.0) -> Pair:
    """The last count is 0 or 1, or as much as it may move."""
    never = np.zeros(num_counts, np.float32)
    once = never.copy()
    once[-1] = sensitivity
    return never, once


def _one_more(num_counts: int, sensitivity: float = 1.0) -> Pair:
    """Counts that float32 does not tell apart; the first one is by 1 larger, or as much as it may move."""
    totals = np.full(num_counts, 2**29 + 32, np.int32)
    more = totals.copy()
    more[0] += int(sensitivity)
    return totals, more


def _all_scores_move(num_scores: int, sensitivity: float = 1.0) -> Pair:
    """The first score goes down and all others up, each by the sensitivity: it is seldom the largest."""
    first = np.zeros(num_scores, np.float32)
    first[0] = -3 * sensitivity
    second = first + np.float32(sensitivity)
    second[0] = first[0] - np.float32(sensitivity)
    return first, second


def _last_above(num_queries: int, sensitivity: float = 1.0) -> Pair:
    """All but the last suggest a high threshold, which the last must then reach against the change."""
    last = np.zeros(num_queries, np.float32)
    last[-1] = sensitivity
    return last, np.float32(sensitivity) - last


def _scalars(bound: float = 1.0) -> Pair:
    return np.asarray(-bound, np.float32), np.asarray(bound, np.float32)


def _any_label(num_labels: int) -> Domain:
    return replaced_rows(lambda key: jax.random.randint(key, (), 0, num_labels, jnp.int32))


def _any_scalar(bound: float = 1.0) -> Domain:
    """Numbers within the bound; what is beyond is the caller's to clip."""
    specials = [tuple(float(np.float32(share * bound)) for share in (-1, -0.5, -1e-3, 0, 0.25, 0.5, 0.999, 1))]
    return replaced_rows(lambda key: jax.random.uniform(key, (), np.float32, -bound, bound), specials=specials)


def _l1_change(num_counts: int, sensitivity: float = 1.0) -> Domain:
    return moved_values((num_counts,), norm="l1", by=sensitivity)


def _l2_change(num_counts: int, sensitivity: float = 1.0) -> Domain:
    return moved_values((num_counts,), norm="l2", by=sensitivity)


def _whole_change(num_counts: int, sensitivity: float = 1.0) -> Domain:
    return moved_values((num_counts,), norm="l1", by=sensitivity, dtype=np.int32, low=0)


def _scores_change(num_scores: int, sensitivity: float = 1.0) -> Domain:
    return moved_values((num_scores,), norm="max", by=sensitivity)


def _queries_change(num_queries: int, sensitivity: float = 1.0) -> Domain:
    return moved_values((num_queries,), norm="max", by=sensitivity)


_LABELS = (np.asarray(0, np.int32), np.asarray(1, np.int32))
BUDGETS = (0.1, 4.0)
SENSITIVITIES = (0.3, 3.0)  # no powers of two

NOISY_MAX = {
    f"noisy_max_{noise}": MechanismEntry(
        family="mechanisms",
        summary=f"selects the largest of scores with {text}",
        source=source,
        proof="proved",
        factory=mechanisms.noisy_max,
        variant={"noise": noise},
        sizes={"num_scores": 3},
        values={"epsilon": 1.0},
        params=_for_sensitivity,
        guarantee=claim("central", UNIT, f"{text} of scale 2 / epsilon on scores of sensitivity 1", _selected),
        release=_noisy_max,
        grid={"epsilon": BUDGETS, "sensitivity": SENSITIVITIES},
        other_sizes=({"num_scores": 8},),
        domain=_scores_change,
        neighbours=_all_scores_move,
        exact=None,  # equal scores are selected from at random
        law=noisy_max_law,
    )
    for noise, text, source in (
        ("laplace", "Laplace noise", "Dwork & Roth (2014), Claim 3.9"),
        ("gumbel", "Gumbel noise (the exponential mechanism)", "Dwork & Roth (2014), Theorem 3.10"),
        (
            "exponential",
            "one-sided exponential noise (permute-and-flip)",
            "McKenna & Sheldon (2020), with Ding et al. (2021)",
        ),
    )
}
ABOVE_THRESHOLD = {
    name: MechanismEntry(
        family="mechanisms",
        summary=f"finds the first of many queries above a threshold, {text}",
        source="Dwork & Roth (2014), Algorithm 1 and Theorem 3.23; Lyu, Su & Li (2017), section 4.2, for the split",
        proof="proved",
        factory=mechanisms.above_threshold,
        variant={"split": split},
        sizes={"num_queries": 9},
        values={"epsilon": 1.0},
        params=_for_sensitivity,
        guarantee=claim("central", UNIT, f"AboveThreshold on queries of sensitivity 1, {text}", _asked),
        release=_above_threshold,
        grid={"epsilon": BUDGETS, "sensitivity": SENSITIVITIES},
        other_sizes=({"num_queries": 3},),
        domain=_queries_change,
        neighbours=_last_above,
        exact=_first_above,
        law=above_threshold_law,
    )
    for name, split, text in (
        ("above_threshold", "even", "epsilon split evenly"),
        ("above_threshold_optimal_split", "optimal", "epsilon split 1 : 2^(2/3)"),
    )
}
RELEASES = {
    "laplace": MechanismEntry(
        family="mechanisms",
        summary="adds Laplace noise of scale l1_sensitivity / epsilon",
        source="Dwork & Roth (2014), Definition 3.3 and Theorem 3.6",
        proof="proved",
        factory=mechanisms.laplace,
        sizes={"num_counts": 2},
        values={"epsilon": 1.0},
        params=_for_sensitivity,
        guarantee=claim("central", UNIT, "Laplace mechanism at L1 sensitivity 1", _laplaces),
        release=_laplace,
        grid={"epsilon": BUDGETS, "sensitivity": SENSITIVITIES},
        domain=_l1_change,
        neighbours=_one_counted,
        exact=_itself,
    ),
    "gaussian": MechanismEntry(
        family="mechanisms",
        summary="adds Gaussian noise, analytically calibrated to (epsilon, delta)",
        source="Balle & Wang (2018), Theorem 8 and Algorithm 1",
        proof="proved",
        factory=mechanisms.gaussian,
        sizes={"num_counts": 2},
        values={"epsilon": 1.0, "delta": 1e-3},
        params=_analytic_stddev,
        guarantee=claim("central", UNIT, "analytic Gaussian mechanism at L2 sensitivity 1", _normals),
        release=_gaussian,
        grid={"epsilon": BUDGETS, "sensitivity": SENSITIVITIES},
        domain=_l2_change,
        neighbours=_one_counted,
        exact=_itself,
    ),
    "classical_gaussian": MechanismEntry(
        family="mechanisms",
        summary="adds Gaussian noise by the classical formula, which holds for epsilon < 1",
        source="Dwork & Roth (2014), Theorem 3.22 (A.1)",
        proof="proved",
        factory=mechanisms.gaussian,
        sizes={"num_counts": 2},
        values={"epsilon": 0.5, "delta": 1e-3},
        params=_classical_stddev,
        guarantee=claim("central", UNIT, "classical Gaussian mechanism at L2 sensitivity 1 and epsilon < 1", _normals),
        release=_gaussian,
        grid={"epsilon": (0.1, 0.9), "sensitivity": SENSITIVITIES},
        domain=_l2_change,
        neighbours=_one_counted,
        exact=_itself,
    ),
    "k_norm": MechanismEntry(
        family="mechanisms",
        summary="adds noise of Gamma length in a uniform direction to a vector",
        source="Hardt & Talwar (2010), section 3, for the Euclidean ball",
        proof="proved",
        factory=mechanisms.k_norm,
        sizes={"num_counts": 2},
        values={"epsilon": 1.0},
        params=_for_sensitivity,
        guarantee=claim("central", UNIT, "K-norm mechanism of the Euclidean ball at L2 sensitivity 1", _vectors),
        release=_k_norm,
        grid={"epsilon": BUDGETS, "sensitivity": SENSITIVITIES},
        other_sizes=({"num_counts": 5},),
        domain=_l2_change,
        neighbours=_one_counted,
        exact=_itself,
    ),
    "randomized_response": MechanismEntry(
        family="mechanisms",
        summary="reports a binary label truthfully with probability sigmoid(epsilon)",
        source="Warner (1965)",
        proof="proved",
        factory=mechanisms.randomized_response,
        variant={"num_labels": 2},
        values={"epsilon": 1.0},
        params=_budget,
        guarantee=claim("local", "one label", "randomized response"),
        release=_randomized_response,
        grid={"epsilon": BUDGETS},
        domain=_any_label,
        neighbours=_LABELS,
        exact=_itself,
        law=label_law,
    ),
    "k_ary_randomized_response": MechanismEntry(
        family="mechanisms",
        summary="reports one of K labels, the true one exp(epsilon) times as likely as any other",
        source="Kairouz, Bonawitz & Ramage (2016)",
        proof="proved",
        factory=mechanisms.randomized_response,
        sizes={"num_labels": 4},
        values={"epsilon": 1.0},
        params=_budget,
        guarantee=claim("local", "one label", "K-ary randomized response"),
        release=_randomized_response,
        grid={"epsilon": BUDGETS},
        other_sizes=({"num_labels": 2}, {"num_labels": 16}),
        domain=_any_label,
        neighbours=_LABELS,
        exact=_itself,
        law=label_law,
    ),
    "randomize_scalar": MechanismEntry(
        family="mechanisms",
        summary="reports a bounded scalar as one random sign, unbiased after scaling",
        source="Duchi, Jordan & Wainwright (2018), in one dimension",
        proof="proved",
        factory=mechanisms.randomize_scalar,
        values={"epsilon": 1.0},
        params=_for_bound,
        guarantee=claim("local", "one scalar in [-1, 1]", "randomized response with a bias linear in the scalar"),
        release=_randomize_scalar,
        grid={"epsilon": BUDGETS, "bound": SENSITIVITIES},
        domain=_any_scalar,
        neighbours=_scalars,
        exact=None,  # a random sign at every epsilon
        law=sign_law,
    ),
    **NOISY_MAX,
    "noisy_leads": MechanismEntry(
        family="mechanisms",
        summary="adds Laplace noise to totals, and reports by how much each is behind the largest",
        source="Dwork & Roth (2014), Theorem 3.6",
        proof="proved",
        factory=mechanisms.noisy_leads,
        sizes={"num_counts": 5},  # of two, one difference alone is seen, which tells less
        values={"epsilon": 1.0},
        params=_for_sensitivity,
        guarantee=claim(
            "central", UNIT, "Laplace mechanism at L1 sensitivity 1; differences are post-processing", _laplaces
        ),
        release=_noisy_leads,
        grid={"epsilon": BUDGETS, "sensitivity": (3.0,)},
        other_sizes=({"num_counts": 2},),
        domain=_whole_change,
        neighbours=_one_more,
        exact=_leads,
    ),
    **ABOVE_THRESHOLD,
}
