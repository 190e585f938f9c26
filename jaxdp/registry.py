"""Every mechanism, learner and estimator, named once: tests, audits and the command line loop over these tables.

An entry holds all that is needed to try an algorithm: a factory, one grid point, the claim at that point, and a tiny
problem. What is added here is tested, audited and listed by being here.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import bandits, estimation, experts, mechanisms
from jaxdp.audit import Attack, Users, by_action, learner_attack, whole
from jaxdp.learner import Environment, Estimator, Guarantee, Learner
from jaxdp.preferences import gaussian_comparisons
from jaxdp.validation import check_choice, check_delta, check_epsilon


@dataclass(frozen=True, kw_only=True)
class MechanismEntry:
    """A mechanism as one release.

    Attributes:
        summary: one line, what it does.
        values: the grid point that tests use.
        params: (**values) -> pytree, on the host.
        guarantee: (**values) -> Guarantee, on the host.
        release: (key, params, data) -> output.
        neighbours: two adjacent inputs between which the mechanism is least private, or nearly so.
        exact: data -> output without noise, which `release` equals at epsilon = inf; None where it stays random.
    """

    summary: str
    values: Mapping[str, float]
    params: Callable[..., Any]
    guarantee: Callable[..., Guarantee]
    release: Callable[[jax.Array, Any, jax.Array], jax.Array]
    neighbours: tuple[np.ndarray, np.ndarray]
    exact: Callable[[jax.Array], jax.Array] | None


@dataclass(frozen=True, kw_only=True)
class EstimatorEntry:
    """An estimator with a tiny problem.

    Attributes:
        summary: one line, what it does.
        values: the grid point that tests use.
        make: () -> Estimator.
    """

    summary: str
    values: Mapping[str, float]
    make: Callable[[], Estimator]


@dataclass(frozen=True, kw_only=True)
class LearnerEntry:
    """A learner with a tiny problem.

    Attributes:
        summary: one line, what it does.
        values: the grid point that tests use.
        make: () -> Learner.
        environment: () -> Environment that it can play against.
        horizon: rounds of the tiny problem.
        neighbours: users of two runs who differ in one round, between whom the learner is least private, or nearly so.
        draw_user: key -> Users of one round, which reaches the extremes of what a user may hold.
        answer: how users answer to an action.
    """

    summary: str
    values: Mapping[str, float]
    make: Callable[[], Learner]
    environment: Callable[[], Environment]
    horizon: int
    neighbours: tuple[Users, Users]
    draw_user: Callable[[jax.Array], Users]
    answer: Callable[..., Any] = by_action


def tiny_data(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The problem that estimators are tried on: features [60, 3] float and labels [60] int32."""
    data = gaussian_comparisons(key, num_samples=60, dim=3)
    return data.features, data.labels


def _epsilon_params(*, epsilon: float) -> np.ndarray:
    return np.asarray(check_epsilon(epsilon), jax.dtypes.canonicalize_dtype(float))


def _noise_params(calibrate: Callable[[float, float], float]) -> Callable[..., Any]:
    def params(*, epsilon: float, delta: float) -> Any:
        return mechanisms.round_up(calibrate(epsilon, delta), jax.dtypes.canonicalize_dtype(float))

    return params


def _claim(trust_model: str, unit: str, argument: str) -> Callable[..., Guarantee]:
    def guarantee(*, epsilon: float, delta: float | None = None) -> Guarantee:
        return Guarantee(
            epsilon=check_epsilon(epsilon),
            delta=0.0 if delta is None else check_delta(delta),
            trust_model=trust_model,
            privacy_unit=unit,
            argument=argument,
        )

    return guarantee


def _laplace(key, epsilon, data):
    return mechanisms.laplace(key, data, epsilon, l1_sensitivity=1.0)


def _gaussian(key, noise_stddev, data):
    return mechanisms.gaussian(key, data, noise_stddev)


def _randomized_response(key, epsilon, data, *, num_labels):
    return mechanisms.randomized_response(key, data, epsilon, num_labels=num_labels)


def _randomize_scalar(key, epsilon, data):
    return mechanisms.randomize_scalar(key, data, epsilon, bound=1.0)


def _noisy_max(key, epsilon, data, *, noise):
    return mechanisms.noisy_max(key, data, epsilon, noise=noise)


def _above_threshold(key, epsilon, data, *, split):
    return mechanisms.above_threshold(key, data, epsilon, threshold=0.5, split=split)


_LABELS = (np.asarray(0, np.int32), np.asarray(1, np.int32))
_COUNTS = (np.asarray([0.0, 0.0], np.float32), np.asarray([0.0, 1.0], np.float32))
_SCALARS = (np.asarray(-1.0, np.float32), np.asarray(1.0, np.float32))
_SCORES = (np.asarray([1.0, 0.0, 0.0], np.float32), np.asarray([0.0, 1.0, 1.0], np.float32))
# the first run up to the last query suggests a high threshold, which the last must then reach against the change
_QUERIES = (np.asarray([0.0] * 8 + [1.0], np.float32), np.asarray([1.0] * 8 + [0.0], np.float32))
_UNIT = "one record"

MECHANISMS: dict[str, MechanismEntry] = {
    "laplace": MechanismEntry(
        summary="adds Laplace noise of scale l1_sensitivity / epsilon",
        values={"epsilon": 1.0},
        params=_epsilon_params,
        guarantee=_claim("central", _UNIT, "Laplace mechanism at L1 sensitivity 1"),
        release=_laplace,
        neighbours=_COUNTS,
        exact=lambda data: data,
    ),
    "gaussian": MechanismEntry(
        summary="adds Gaussian noise, analytically calibrated to (epsilon, delta)",
        values={"epsilon": 1.0, "delta": 1e-3},
        params=_noise_params(mechanisms.analytic_gaussian),
        guarantee=_claim("central", _UNIT, "analytic Gaussian mechanism at L2 sensitivity 1"),
        release=_gaussian,
        neighbours=_COUNTS,
        exact=lambda data: data,
    ),
    "classical_gaussian": MechanismEntry(
        summary="adds Gaussian noise by the classical formula, which holds for epsilon < 1",
        values={"epsilon": 0.5, "delta": 1e-3},
        params=_noise_params(mechanisms.classical_gaussian),
        guarantee=_claim("central", _UNIT, "classical Gaussian mechanism at L2 sensitivity 1 and epsilon < 1"),
        release=_gaussian,
        neighbours=_COUNTS,
        exact=lambda data: data,
    ),
    "randomized_response": MechanismEntry(
        summary="reports a binary label truthfully with probability sigmoid(epsilon)",
        values={"epsilon": 1.0},
        params=_epsilon_params,
        guarantee=_claim("local", "one label", "randomized response"),
        release=partial(_randomized_response, num_labels=2),
        neighbours=_LABELS,
        exact=lambda data: data,
    ),
    "k_ary_randomized_response": MechanismEntry(
        summary="reports one of K labels, the true one exp(epsilon) times as likely as any other",
        values={"epsilon": 1.0},
        params=_epsilon_params,
        guarantee=_claim("local", "one label", "K-ary randomized response, K = 4"),
        release=partial(_randomized_response, num_labels=4),
        neighbours=_LABELS,
        exact=lambda data: data,
    ),
    "randomize_scalar": MechanismEntry(
        summary="reports a bounded scalar as one random sign, unbiased after scaling",
        values={"epsilon": 1.0},
        params=_epsilon_params,
        guarantee=_claim("local", "one scalar in [-1, 1]", "randomized response with a bias linear in the scalar"),
        release=_randomize_scalar,
        neighbours=_SCALARS,
        exact=None,  # a random sign at every epsilon
    ),
    **{
        f"noisy_max_{noise}": MechanismEntry(
            summary=f"selects the largest of scores with {text}",
            values={"epsilon": 1.0},
            params=_epsilon_params,
            guarantee=_claim("central", _UNIT, f"{text} of scale 2 / epsilon on scores of sensitivity 1"),
            release=partial(_noisy_max, noise=noise),
            neighbours=_SCORES,
            exact=lambda data: jnp.argmax(data, axis=-1).astype(jnp.int32),
        )
        for noise, text in (
            ("laplace", "Laplace noise"),
            ("gumbel", "Gumbel noise (the exponential mechanism)"),
            ("exponential", "one-sided exponential noise (permute-and-flip)"),
        )
    },
    **{
        name: MechanismEntry(
            summary=f"finds the first of many queries above a threshold, {text}",
            values={"epsilon": 1.0},
            params=_epsilon_params,
            guarantee=_claim("central", _UNIT, f"AboveThreshold on queries of sensitivity 1, {text}"),
            release=partial(_above_threshold, split=split),
            neighbours=_QUERIES,
            exact=lambda data: jnp.where(jnp.any(data >= 0.5), jnp.argmax(data >= 0.5), data.size).astype(jnp.int32),
        )
        for name, split, text in (
            ("above_threshold", "even", "epsilon split evenly"),
            ("above_threshold_optimal_split", "optimal", "epsilon split 1 : 2^(2/3)"),
        )
    },
}


def _extremes(low: float, high: float, size: int, dtype: Any) -> Callable[[jax.Array], Users]:
    def draw_user(key: jax.Array) -> Users:
        return Users(jnp.where(jax.random.bernoulli(key, shape=(size,)), high, low).astype(dtype))

    return draw_user


def _one_reward_moves(low: float, high: float, dtype: Any) -> tuple[Users, Users]:
    """Twelve rounds of three arms in turn: the first arm pays nothing, or once; the others pay always."""
    never = np.tile(np.asarray([low, high, high], dtype), (12, 1))
    once = never.copy()
    once[0, 0] = high
    return Users(never), Users(once)


def _all_losses_move(low: float, high: float) -> tuple[Users, Users]:
    """One round of five experts."""
    return Users(np.full((1, 5), float(low))), Users(np.full((1, 5), float(high)))


# Values beyond what a learner clips to are a user's to hold, too.
LEARNERS: dict[str, LearnerEntry] = {
    "explore_then_commit": LearnerEntry(
        summary="plays binary arms in turn, then the one with the largest Laplace-noised total",
        values={"epsilon": 1.0},
        make=lambda: bandits.explore_then_commit(num_arms=3, explore_rounds=12),
        environment=lambda: bandits.bernoulli_bandit([0.2, 0.5, 0.8]),
        horizon=70,
        neighbours=_one_reward_moves(0, 1, np.int32),
        draw_user=_extremes(0, 1, 3, jnp.int32),
    ),
    "explore_then_commit_bounded": LearnerEntry(
        summary="the same for rewards that are clipped to an interval",
        values={"epsilon": 1.0, "low": -1.0, "high": 2.0},
        make=lambda: bandits.explore_then_commit(num_arms=3, explore_rounds=12, rewards="bounded"),
        environment=lambda: bandits.gaussian_bandit([0.2, 0.5, 0.8], stddev=0.5),
        horizon=70,
        neighbours=_one_reward_moves(-5, 5, float),
        draw_user=_extremes(-5, 5, 3, float),
    ),
    "exponential_weights": LearnerEntry(
        summary="plays experts with odds exponential in their reported losses, each report with Laplace noise",
        values={"epsilon": 1.0},
        make=lambda: experts.exponential_weights(num_experts=5, horizon=30),
        environment=lambda: experts.adaptive_losses([0.1, 0.3, 0.5, 0.7, 0.9], penalty=0.1),
        horizon=30,
        neighbours=_all_losses_move(-2, 3),
        draw_user=_extremes(-2, 3, 5, float),
        answer=whole,
    ),
    "exponential_weights_gaussian": LearnerEntry(
        summary="the same with Gaussian noise",
        values={"epsilon": 1.0, "delta": 1e-3},
        make=lambda: experts.exponential_weights(num_experts=5, horizon=30, noise="gaussian"),
        environment=lambda: experts.stochastic_losses([0.1, 0.3, 0.5, 0.7, 0.9]),
        horizon=30,
        neighbours=_all_losses_move(-2, 3),
        draw_user=_extremes(-2, 3, 5, float),
        answer=whole,
    ),
}

ESTIMATORS: dict[str, EstimatorEntry] = {
    "mle": EstimatorEntry(
        summary="maximum likelihood from labels in the clear",
        values={"radius": 3.0},
        make=estimation.mle,
    ),
    "mle_rr": EstimatorEntry(
        summary="maximum likelihood of randomized labels",
        values={"epsilon": 1.0, "radius": 3.0},
        make=estimation.mle_rr,
    ),
    "debiased_rr": EstimatorEntry(
        summary="minimum of the de-biased loss of randomized labels",
        values={"epsilon": 1.0, "radius": 3.0},
        make=estimation.debiased_rr,
    ),
    "sgd": EstimatorEntry(
        summary="one pass of projected SGD over labels in the clear",
        values={"radius": 3.0},
        make=estimation.sgd,
    ),
    "sgd_rr": EstimatorEntry(
        summary="one pass of projected SGD over randomized labels",
        values={"epsilon": 1.0, "radius": 3.0},
        make=estimation.sgd_rr,
    ),
    "objective_perturbation": EstimatorEntry(
        summary="maximum likelihood with a Gaussian-noised sufficient statistic of the labels",
        values={"epsilon": 1.0, "delta": 1e-3, "radius": 3.0},
        make=estimation.objective_perturbation,
    ),
    "sgd_objective_perturbation": EstimatorEntry(
        summary="one pass of projected SGD with a Gaussian-noised sufficient statistic of the labels",
        values={"epsilon": 1.0, "delta": 1e-3, "radius": 3.0},
        make=estimation.sgd_objective_perturbation,
    ),
    "literal_objective_perturbation": EstimatorEntry(
        summary="SGD on raw labels with a noisy linear term, as DP-Reward's simulation reads; no proof of privacy",
        values={"epsilon": 1.0, "delta": 1e-3, "radius": 3.0},
        make=estimation.literal_objective_perturbation,
    ),
}

KINDS = ("mechanism", "learner", "estimator")

# Two records, of which the longer one's label changes: the noise is for the longest, and nothing else hides it.
_ATTACKED_FEATURES = np.asarray([[1.0, 0.0], [0.3, 0.4]])
_ATTACKED_LABELS = (np.asarray([0, 1], np.int32), np.asarray([1, 1], np.int32))


def attacks(names: Iterable[str] | None = None) -> dict[str, Attack]:
    """The registered claims, each with the attack on it, at the entries' values.

    A mechanism is attacked through its release on its neighbours; a learner through its transcript, or one user's
    report; an estimator through its report and its estimate together, on two records one of whose labels changes.

    Args:
        names: of mechanisms, learners and estimators; None is all.

    Returns:
        Attacks by name, in the order asked for.

    Raises:
        ValueError: if a name is not registered.
    """
    known = (*MECHANISMS, *LEARNERS, *ESTIMATORS)
    chosen = known if names is None else tuple(dict.fromkeys(names))
    for name in chosen:
        check_choice("name", name, known)
    return {name: _attack(name) for name in chosen}


def _attack(name: str) -> Attack:
    if name in MECHANISMS:
        entry = MECHANISMS[name]
        return Attack(entry.release, entry.params(**entry.values), entry.neighbours, entry.guarantee(**entry.values))
    if name in LEARNERS:
        entry = LEARNERS[name]
        return learner_attack(entry.make(), entry.values, entry.neighbours, answer=entry.answer)
    entry = ESTIMATORS[name]
    estimator = entry.make()

    def release(key, params, labels):
        features = jnp.asarray(_ATTACKED_FEATURES, jax.dtypes.canonicalize_dtype(float))
        key_privatize, key_fit = jax.random.split(key)
        report = estimator.privatize(key_privatize, params, features, labels)
        return report, estimator.fit(key_fit, params, features, report).theta

    return Attack(release, estimator.params(**entry.values), _ATTACKED_LABELS, estimator.guarantee(**entry.values))


def listing(kind: str | None = None) -> str:
    """A table of what is registered, with what each claims at its example values.

    Args:
        kind: "mechanism", "learner" or "estimator"; None is all.

    Returns:
        Lines of text.

    Raises:
        ValueError: if kind is unknown.
    """
    if kind is not None:
        check_choice("kind", kind, KINDS)
    rows = [("KIND", "NAME", "EXAMPLE CLAIM", "WHAT IT DOES")]
    if kind in (None, "mechanism"):
        rows += [("mechanism", name, _text(e.guarantee(**e.values)), e.summary) for name, e in MECHANISMS.items()]
    for made, entries in (("learner", LEARNERS), ("estimator", ESTIMATORS)):
        if kind in (None, made):
            rows += [(made, name, _text(e.make().guarantee(**e.values)), e.summary) for name, e in entries.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join((*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3])) for row in rows
    )


def _text(claim: Guarantee) -> str:
    if math.isinf(claim.epsilon):
        return "none"
    budget = f"({claim.epsilon:g}, {claim.delta:g})-DP" if claim.delta else f"{claim.epsilon:g}-DP"
    return f"{budget}, {claim.trust_model}, {claim.privacy_unit}"
