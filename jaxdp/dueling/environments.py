"""Stochastic dueling bandits: in each round one user says which of two arms they prefer."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import (
    Environment,
    Interface,
    Space,
    Visits,
    add_visits,
    arms,
    default_float,
    factory,
    pairs,
    repeat_outcome,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.dueling.regrets import cast, regret_matrices
from jaxdp.gaps import ROUNDING, with_smallest
from jaxdp.numerics.kernels import own_kernel
from jaxdp.numerics.lookup import entry, nearest_entry
from jaxdp.preferences import Link, check_preferences, logistic, utility_matrix
from jaxdp.random import binomial, uniform_from_key
from jaxdp.validation import check_choice, check_positive

REGRETS = ("strong", "weak", "borda")


@pytree_dataclass
class Params:
    """A problem instance.

    Attributes:
        preferences: [num_arms, num_arms] float in [0, 1], the probability that the row's arm beats the column's arm.
        regrets: by outcome name, [num_arms, num_arms] float >= 0, the regret of a duel with the row's arm on the left
            and the column's arm on the right.
    """

    preferences: np.ndarray
    regrets: dict[str, np.ndarray]


@factory
def utility_duels(utilities: ArrayLike, *, link: Link | str = logistic, visits: Visits | None = None) -> Environment:
    """Plays duels of arms with utilities r: the left arm wins with probability F(s (r[left] - r[right])).

    The factor s is the value `link_scale`.

    Args:
        utilities: r, [num_arms] finite numbers for at least two arms.
        link: F, a `Link` or the name of a link; for example `logistic` (Bradley-Terry-Luce) or `probit` (Thurstone).
        visits: the rounds in which each person participates, as for `jaxdp.bandits.bernoulli_bandit`; None if rounds do
            not belong to persons.

    Returns:
        An environment. Without `visits` it supports blocks and feedback totals. Actions are pairs of arms ([2] int32 in
        [0, num_arms): left, right), and feedback is [] int32, 1 if the left arm wins, else 0. Feedback totals are for
        ordered pairs, in the order of a flattened matrix. Outcomes: `pseudo_regret`, 2 max r - r[left] - r[right]
        (DP-Dueling, Saha & Asi, 2024, equation 2); `borda_regret`, `strong_regret` and `weak_regret` as for
        `matrix_duels` (the last two only if a single arm has the largest utility, and float64 distinguishes all its
        preferences from 1/2); `best_duels`, the number of rounds with a pseudo-regret of zero; `left_wins`, the number
        of rounds that the left arm wins. The regrets of an arm outside [0, num_arms) are NaN. Recommendations are arms,
        as for `matrix_duels`.

    Raises:
        ValueError: if utilities are not a vector of at least two finite numbers, or a pseudo-regret exceeds the range
            of JAX's default float type; if the link is unknown, or visits are not a `Visits`. The result's `params`
            raises this error if link_scale is not finite and > 0, or makes utility differences overflow float64; or
            if float64 rounds a preference to 1/2 at link_scale, but not at link_scale = 1, or the reverse.

    Values:
        link_scale: s > 0, by default 1; multiplies utility differences; as s tends to 0, duels become fair coins.

    Source:
        DP-Dueling (Saha & Asi, 2024), section 1.2.

    Deviations:
        In float32 the probability of a win is a multiple of 2^-23, as for `matrix_duels`.
    """
    plain = utility_matrix(utilities, link)
    utilities = np.array(utilities, np.float64)  # a copy: the caller's array may change before a run reads it
    gaps = utilities.max() - utilities
    with np.errstate(over="ignore"):
        pseudo_regret = np.add.outer(gaps, gaps)
        if not np.isfinite(cast(pseudo_regret)).all():
            dtype = default_float()
            raise ValueError(
                f"utilities must have twice their largest difference, the largest regret, within the range of {dtype}, "
                f"got {utilities.tolist()}"
            )
    regret_leaf = cast(pseudo_regret)  # the same object for every link_scale

    def params(*, link_scale: float = 1.0) -> Params:
        check_positive("link_scale", link_scale)
        with np.errstate(over="ignore"):
            scaled = link_scale * utilities
            if not np.isfinite(np.subtract.outer(scaled, scaled)).all():
                raise ValueError(f"link_scale must leave differences of utilities finite, got {link_scale}")
        preferences = utility_matrix(scaled, link)
        check_apart("link_scale", link_scale, preferences, plain)
        return _instance(preferences, regret_leaf)

    return add_visits(_duels(len(utilities), params), visits)


@factory
def matrix_duels(preference_matrix: ArrayLike, *, regret: str = "strong", visits: Visits | None = None) -> Environment:
    """Plays duels with a preference matrix P: the left arm wins with probability P[left, right].

    One uniform number per round decides every duel that could be played in the round. The winner of a pair does not
    depend on which arm is on the left.

    Args:
        preference_matrix: [num_arms, num_arms] in [0, 1], P[i, j] + P[j, i] = 1.
        regret: "strong", "weak" or "borda": the regret that `pseudo_regret` reports.
        visits: the rounds in which each person participates, as for `jaxdp.bandits.bernoulli_bandit`; None if rounds do
            not belong to persons.

    Returns:
        An environment. Without `visits` it supports blocks and feedback totals. Actions are pairs of arms ([2] int32 in
        [0, num_arms): left, right), and feedback is [] int32, 1 if the left arm wins, else 0. Feedback totals are for
        ordered pairs, in the order of a flattened matrix. Outcomes:

        * `pseudo_regret`, the regret that `regret` names;
        * `borda_regret`, the largest Borda score minus the mean score of both arms. An arm's score is its probability
          of beating a random *other* arm (`jaxdp.preferences.borda_scores`);
        * `strong_regret` and `weak_regret`, if there is a Condorcet winner: with lead(arm) = P[winner, arm] - 1/2, the
          sum of the two arms' leads, and the smaller lead;
        * `best_duels`, the number of rounds with a pseudo-regret of zero; `left_wins`, the number of rounds that the
          left arm wins.

        The regrets of an arm outside [0, num_arms) are NaN. Recommendations are arms: `simple_regret` is the
        pseudo-regret of a duel of the arm with itself, and `correct` says whether it is zero.

    Raises:
        ValueError: if preference_matrix is not a preference matrix, regret is unknown, regret is "strong" or "weak" and
            there is no Condorcet winner, or visits are not a `Visits`. If a gap is given, the result's `params` raises
            this error if gap is not > 0 or outside the range of JAX's default float type, moves a preference out of
            [0, 1] or so close to 1/2 that float64 cannot represent it, or all preferences are 1/2.

    Values:
        gap: in (0, 1/2], the smallest nonzero distance of a preference from 1/2. All distances are multiplied by one
            factor to reach this gap. By default the matrix is not changed.

    Source:
        Strong regret as in DP-Dueling (Saha & Asi, 2024), appendix B (Yue, Broder, Kleinberg & Joachims, 2012, up to a
        constant); weak regret, Yue, Broder, Kleinberg & Joachims (2012); Borda regret, Saha, Koren & Mansour (2021).

    Deviations:
        In float32 the uniform number, and so the probability of a win, is a multiple of 2^-23. Feedback totals draw
        binomial numbers instead.
    """
    plain = check_preferences("preference_matrix", preference_matrix)
    name = f"{check_choice('regret', regret, REGRETS)}_regret"
    if name not in regret_matrices(plain):
        raise ValueError(
            "regret must be borda for a preference_matrix without a Condorcet winner, got "
            f"{regret!r} for {plain.tolist()}"
        )

    def params(*, gap: float | None = None) -> Params:
        preferences = with_gap(plain[None], gap)[0]
        return _instance(preferences, cast(regret_matrices(preferences)[name]))

    return add_visits(_duels(len(plain), params), visits)


def with_gap(matrices: np.ndarray, gap: float | None) -> np.ndarray:
    """Multiplies all distances of preferences from 1/2 by one factor, so that the smallest nonzero distance is `gap`.

    Args:
        matrices: [num_matrices, num_arms, num_arms] float64, as `check_preferences` returns them.
        gap: the smallest nonzero distance in the scaled matrices; None changes nothing.

    Returns:
        The scaled matrices, of the same shape.

    Raises:
        ValueError: if a gap is given, and it is not > 0 or outside the range of JAX's default float type, all
            preferences are 1/2, or a distance becomes larger than 1/2 or too small for float64.
    """
    leads = matrices - 0.5
    scaled = with_smallest(gap, np.abs(leads))
    if gap is None:
        return matrices
    if scaled.max() > 0.5 + ROUNDING:
        raise ValueError(
            f"gap must leave all preferences in [0, 1], got {gap}, which makes the largest {0.5 + scaled.max():g}"
        )
    moved = 0.5 + np.copysign(scaled.clip(max=0.5), leads)
    scaled_matrices = np.stack([check_preferences("preferences with another gap", matrix) for matrix in moved])
    check_apart("gap", gap, scaled_matrices, matrices)
    return scaled_matrices


def check_apart(name: str, value: float, preferences: np.ndarray, plain: np.ndarray) -> None:
    """Checks that the same entries of `preferences` and of `plain` are above 1/2.

    Raises:
        ValueError: if they are not; then a preference is too close to 1/2 for float64.
    """
    if not np.array_equal(preferences > 0.5, plain > 0.5):
        raise ValueError(f"{name} must leave the same preferences above 1/2 in float64, got {value}")


def answer(key: jax.Array, preferences: jax.Array, left: jax.Array, right: jax.Array) -> jax.Array:
    """Returns a user's answer to a duel, [] int32: 1 if the left arm wins, else 0.

    One uniform number from the key decides, for every duel that could be played, whether the arm with the lower number
    wins. The winner does not depend on which arm is on the left. An arm outside [0, num_arms) is treated as the nearest
    arm, since integers have no NaN.
    """
    lower, higher = jnp.minimum(left, right), jnp.maximum(left, right)
    lower_wins = uniform_from_key(key, preferences.dtype) < nearest_entry(preferences, lower, higher)
    return (lower_wins == (left <= right)).astype(jnp.int32)


def _instance(preferences: np.ndarray, pseudo_regret: np.ndarray) -> Params:
    regrets = {name: cast(regret) for name, regret in regret_matrices(preferences).items()}
    return Params(preferences=cast(preferences), regrets={"pseudo_regret": pseudo_regret, **regrets})


def _duels(num_arms: int, params: Callable[..., Params]) -> Environment:
    def feedback(key, params: Params, world, action):
        won = answer(key, jnp.asarray(params.preferences), action[0], action[1])
        return world, won, outcome(params, action, won)

    def regrets_of(params: Params, action) -> dict[str, jax.Array]:
        regrets = {name: entry(jnp.asarray(regret), action[0], action[1]) for name, regret in params.regrets.items()}
        return {**regrets, "best_duels": regrets["pseudo_regret"] == 0}

    def outcome(params: Params, action, won) -> dict[str, jax.Array]:
        return {**regrets_of(params, action), "left_wins": won}

    def unheard(params: Params, world, action, rounds):
        return world, repeat_outcome(regrets_of(params, action), rounds)

    def evaluate(params: Params, world, recommendation) -> dict[str, jax.Array]:
        del world
        regret = entry(jnp.asarray(params.regrets["pseudo_regret"]), recommendation, recommendation)
        return {"correct": regret == 0, "simple_regret": regret}

    def block(keys, params: Params, world, contexts: None, actions):
        del contexts
        answers = jax.vmap(answer, (0, None, 0, 0))
        # Left and right arms are separate arguments. Given pairs, XLA would store them in memory, then split them.
        won = own_kernel(answers, keys, jnp.asarray(params.preferences), actions[:, 0], actions[:, 1])
        return world, won, jax.vmap(lambda action, won: outcome(params, action, won))(actions, won)

    def feedback_totals(key, params: Params, world, counts):
        won = binomial(key, counts, params.preferences.ravel())
        totals = {
            name: jnp.sum(counts.astype(regret.dtype) * regret.ravel(), dtype=regret.dtype)
            for name, regret in params.regrets.items()
        }
        best = jnp.sum(jnp.where(params.regrets["pseudo_regret"].ravel() == 0, counts, 0), dtype=counts.dtype)
        return world, won, {**totals, "best_duels": best, "left_wins": jnp.sum(won, dtype=won.dtype)}

    return Environment(
        params=params,
        init=lambda key, params: (),
        context=None,
        feedback=feedback,
        evaluate=evaluate,
        block=block,
        feedback_totals=feedback_totals,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1), recommendation=arms(num_arms)),
        unheard=unheard,
        drawn=("left_wins",),
    )
