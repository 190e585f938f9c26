"""Mechanisms as one release."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxdp import mechanisms
from jaxdp.core import Guarantee, default_float
from jaxdp.registry.entries import MechanismEntry
from jaxdp.registry.laws import above_threshold_law, label_law, noisy_max_law, sign_law
from jaxdp.validation import check_delta, check_epsilon

Pair = tuple[np.ndarray, np.ndarray]
UNIT = "one record"


def claim(trust_model: str, unit: str, argument: str) -> Callable[..., Guarantee]:
    """A `guarantee`: pure, or approximate where a delta is given."""

    def guarantee(*, epsilon: float, delta: float | None = None) -> Guarantee:
        return Guarantee.approximate(
            epsilon,
            0.0 if delta is None else check_delta(delta),
            trust_model=trust_model,
            privacy_unit=unit,
            argument=argument,
        )

    return guarantee


def _budget(*, epsilon: float) -> np.ndarray:
    return np.asarray(check_epsilon(epsilon), default_float())


def _analytic_stddev(*, epsilon: float, delta: float) -> Any:
    return mechanisms.round_up(mechanisms.analytic_gaussian(epsilon, delta), default_float())


def _classical_stddev(*, epsilon: float, delta: float) -> Any:
    return mechanisms.round_up(mechanisms.classical_gaussian(epsilon, delta), default_float())


def _laplace(key, epsilon, data):
    return mechanisms.laplace(key, data, epsilon, l1_sensitivity=1.0)


def _noisy_leads(key, epsilon, data):
    return mechanisms.noisy_leads(key, data, epsilon, l1_sensitivity=1.0)


def _gaussian(key, noise_stddev, data):
    return mechanisms.gaussian(key, data, noise_stddev)


def _k_norm(key, epsilon, data):
    return mechanisms.k_norm(key, data, epsilon, sensitivity=1.0)


def _randomized_response(key, epsilon, data, *, num_labels):
    return mechanisms.randomized_response(key, data, epsilon, num_labels=num_labels)


def _randomize_scalar(key, epsilon, data):
    return mechanisms.randomize_scalar(key, data, epsilon, bound=1.0)


def _noisy_max(key, epsilon, data, *, noise):
    return mechanisms.noisy_max(key, data, epsilon, noise=noise)


def _above_threshold(key, epsilon, data, *, split):
    return mechanisms.above_threshold(key, data, epsilon, threshold=0.5, split=split)


def _itself(data):
    return data


def _leads(data):
    return (data - data.max()).astype(default_float())


def _largest(data):
    return jnp.argmax(data, axis=-1).astype(jnp.int32)


def _first_above(data):
    return jnp.where(jnp.any(data >= 0.5), jnp.argmax(data >= 0.5), data.size).astype(jnp.int32)


def _one_counted(num_counts: int) -> Pair:
    """The last count is 0 or 1."""
    never = np.zeros(num_counts, np.float32)
    once = never.copy()
    once[-1] = 1
    return never, once


def _one_more(num_counts: int) -> Pair:
    """Counts that float32 does not tell apart; the first one is by 1 larger."""
    totals = np.full(num_counts, 2**29 + 32, np.int32)
    more = totals.copy()
    more[0] += 1
    return totals, more


def _all_scores_move(num_scores: int) -> Pair:
    """The first score goes down and all others up, each by the sensitivity: it is seldom the largest."""
    first = np.zeros(num_scores, np.float32)
    first[0] = -3
    second = first + 1
    second[0] = first[0] - 1
    return first, second


def _last_above(num_queries: int) -> Pair:
    """All but the last suggest a high threshold, which the last must then reach against the change."""
    last = np.zeros(num_queries, np.float32)
    last[-1] = 1
    return last, 1 - last


_LABELS = (np.asarray(0, np.int32), np.asarray(1, np.int32))
_SCALARS = (np.asarray(-1.0, np.float32), np.asarray(1.0, np.float32))

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
        params=_budget,
        guarantee=claim("central", UNIT, f"{text} of scale 2 / epsilon on scores of sensitivity 1"),
        release=_noisy_max,
        neighbours=_all_scores_move,
        exact=_largest,
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
        params=_budget,
        guarantee=claim("central", UNIT, f"AboveThreshold on queries of sensitivity 1, {text}"),
        release=_above_threshold,
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
        params=_budget,
        guarantee=claim("central", UNIT, "Laplace mechanism at L1 sensitivity 1"),
        release=_laplace,
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
        guarantee=claim("central", UNIT, "analytic Gaussian mechanism at L2 sensitivity 1"),
        release=_gaussian,
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
        guarantee=claim("central", UNIT, "classical Gaussian mechanism at L2 sensitivity 1 and epsilon < 1"),
        release=_gaussian,
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
        params=_budget,
        guarantee=claim("central", UNIT, "K-norm mechanism of the Euclidean ball at L2 sensitivity 1"),
        release=_k_norm,
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
        params=_budget,
        guarantee=claim("local", "one scalar in [-1, 1]", "randomized response with a bias linear in the scalar"),
        release=_randomize_scalar,
        neighbours=_SCALARS,
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
        sizes={"num_counts": 2},
        values={"epsilon": 1.0},
        params=_budget,
        guarantee=claim("central", UNIT, "Laplace mechanism at L1 sensitivity 1; differences are post-processing"),
        release=_noisy_leads,
        neighbours=_one_more,
        exact=_leads,
    ),
    **ABOVE_THRESHOLD,
}
