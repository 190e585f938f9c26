"""Stochastic dueling bandits: a user says which of two arms they prefer."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, Interface, Space, arms, default_float, factory, pairs
from jaxdp.dueling.regrets import cast, regret_matrices
from jaxdp.gaps import ROUNDING, with_smallest
from jaxdp.numerics.kernels import own_kernel
from jaxdp.numerics.lookup import entry, nearest
from jaxdp.preferences import Link, check_preferences, logistic, utility_matrix
from jaxdp.random import binomial, key_uniform
from jaxdp.validation import check_choice, check_positive

REGRETS = ("strong", "weak", "borda")


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """An instance.

    Attributes:
        preferences: [num_arms, num_arms] float in [0, 1], the probability that the row's arm beats the column's.
        regrets: by the outcome's name, [num_arms, num_arms] float >= 0, the regret of a duel with the row's arm on the
            left and the column's on the right.
    """

    preferences: np.ndarray
    regrets: dict[str, np.ndarray]


@factory
def utility_duels(utilities: ArrayLike, *, link: Link | str = logistic) -> Environment:
    """Duels of arms with utilities r: the left arm wins with probability F(s (r[left] - r[right])), s = `link_scale`.

    Args:
        utilities: [num_arms] finite.
        link: F; `logistic` (Bradley-Terry-Luce) or `probit` (Thurstone), another `Link`, or the name of one.

    Returns:
        An environment for pairs of arms ([2] int32 in [0, num_arms): left, right) and feedback [] int32, 1 if the left
        one wins, else 0; with blocks and tallies (of ordered pairs, in the order of a flattened matrix). Outcomes:
        `pseudo_regret`, 2 max r - r[left] - r[right] (DP-Dueling, Saha & Asi, 2024, equation 2); `borda_regret`,
        `strong_regret` and `weak_regret` as for `matrix_duels`, the last two only where one arm is the best alone;
        `best_duels`, rounds whose pseudo-regret is zero; `left_wins`.

    Raises:
        ValueError: if utilities are not a vector of at least two finite numbers, or their differences are beyond the
            range of JAX's default float type; or there is no such link; from `params`, if link_scale is not finite and
            > 0, or makes differences that float64 does not hold.

    Values:
        link_scale: > 0, by default 1: how sure users are of a difference in utility, which is 0 for a fair coin.

    Source:
        DP-Dueling (Saha & Asi, 2024), section 1.2.

    Deviations:
        As for `matrix_duels`.
    """
    plain = utility_matrix(utilities, link)
    utilities = np.asarray(utilities, np.float64)
    gaps = utilities.max() - utilities
    with np.errstate(over="ignore"):
        pseudo_regret = np.add.outer(gaps, gaps)
        if not np.isfinite(cast(pseudo_regret)).all():
            dtype = default_float()
            raise ValueError(f"utilities must have differences within the range of {dtype}, got {utilities.tolist()}")
    regret_leaf = cast(pseudo_regret)  # one object at every link_scale

    def params(*, link_scale: float = 1.0) -> Params:
        check_positive("link_scale", link_scale)
        with np.errstate(over="ignore"):
            scaled = link_scale * utilities
            if not np.isfinite(np.subtract.outer(scaled, scaled)).all():
                raise ValueError(f"link_scale must leave differences of utilities finite, got {link_scale}")
        preferences = utility_matrix(scaled, link)
        check_apart("link_scale", link_scale, preferences, plain)
        return _instance(preferences, regret_leaf)

    return _duels(len(utilities), params)


@factory
def matrix_duels(preference_matrix: ArrayLike, *, regret: str = "strong") -> Environment:
    """Duels by a preference matrix P: the left arm wins with probability P[left, right].

    One uniform a round decides every duel that might be played in it, and which arm of a pair wins does not depend on
    which is on the left.

    Args:
        preference_matrix: [num_arms, num_arms] in [0, 1], P[i, j] + P[j, i] = 1.
        regret: "strong", "weak" or "borda": which regret `pseudo_regret` is.

    Returns:
        An environment for pairs of arms ([2] int32 in [0, num_arms): left, right) and feedback [] int32, 1 if the left
        one wins, else 0; with blocks and tallies (of ordered pairs, in the order of a flattened matrix). Outcomes:
        `pseudo_regret`; `borda_regret`, the largest Borda score less the mean of both arms', where an arm's score is
        its probability of beating a random *other* arm (`jaxdp.preferences.borda_scores`); where there is a Condorcet
        winner, `strong_regret`, the sum of its leads over both arms, and `weak_regret`, the smaller of them (a lead
        is P[winner, arm] - 1/2); `best_duels`, rounds whose pseudo-regret is zero; `left_wins`. The regrets of an arm
        outside [0, num_arms) are NaN. Answers are arms: `simple_regret` is the pseudo-regret of a duel of the arm with
        itself, `correct` whether that is zero.

    Raises:
        ValueError: if preference_matrix is not one, regret has another name, or it needs a Condorcet winner and there
            is none; from `params`, if gap moves a preference out of [0, 1] or too close to 1/2 for float64, or there is
            none to change.

    Values:
        gap: in (0, 1/2], the smallest distance above zero of a preference from 1/2: all distances change in proportion;
            by default that of the matrix.

    Source:
        Strong regret as in DP-Dueling (Saha & Asi, 2024), appendix B (Yue, Broder, Kleinberg & Joachims, 2012, up to a
        constant); weak regret, Yue, Broder, Kleinberg & Joachims (2012); Borda regret, Saha, Koren & Mansour (2021).

    Deviations:
        In float32 the uniform is a multiple of 2^-23, and so is the probability of a win, except in tallies, which
        draw binomial numbers.
    """
    plain = check_preferences("preference_matrix", preference_matrix)
    name = f"{check_choice('regret', regret, REGRETS)}_regret"
    if name not in regret_matrices(plain):
        raise ValueError(
            f"regret must be borda for a preference_matrix without a Condorcet winner, got {regret!r} for "
            f"{plain.tolist()}"
        )

    def params(*, gap: float | None = None) -> Params:
        preferences = with_gap(plain[None], gap)[0]
        return _instance(preferences, cast(regret_matrices(preferences)[name]))

    return _duels(len(plain), params)


def with_gap(matrices: np.ndarray, gap: float | None) -> np.ndarray:
    """Preference matrices, [num_matrices, num_arms, num_arms] float64, whose leads over 1/2 are scaled by one factor.

    Args:
        matrices: as `check_preferences` returns them.
        gap: the smallest lead above zero in any of them; None leaves them as they are.

    Raises:
        ValueError: if gap is not > 0, all preferences are 1/2, or a lead becomes larger than 1/2 or too small for
            float64.
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
    scaled_matrices = np.stack([check_preferences("preferences with another gap", each) for each in moved])
    check_apart("gap", gap, scaled_matrices, matrices)
    return scaled_matrices


def check_apart(name: str, value: float, preferences: np.ndarray, plain: np.ndarray) -> None:
    """Checks that with a value every arm is still preferred to the same others.

    Raises:
        ValueError: if not: a preference should be closer to 1/2 than float64 holds.
    """
    if not np.array_equal(preferences > 0.5, plain > 0.5):
        raise ValueError(f"{name} must leave the same preferences above 1/2 in float64, got {value}")


def answer(key: jax.Array, preferences: jax.Array, left: jax.Array, right: jax.Array) -> jax.Array:
    """A user's answer to a duel, [] int32: 1 if the left arm wins.

    One uniform of the key decides all duels that might be played; of two arms in a duel it decides whether the one of
    lower number wins, whichever is on the left. An arm outside [0, num_arms) is answered for as the nearest arm in it,
    since integers have no NaN.
    """
    lower, higher = jnp.minimum(left, right), jnp.maximum(left, right)
    lower_wins = key_uniform(key, preferences.dtype) < nearest(preferences, lower, higher)
    return (lower_wins == (left <= right)).astype(jnp.int32)


def _instance(preferences: np.ndarray, pseudo_regret: np.ndarray) -> Params:
    regrets = {name: cast(each) for name, each in regret_matrices(preferences).items()}
    return Params(preferences=cast(preferences), regrets={"pseudo_regret": pseudo_regret, **regrets})


def _duels(num_arms: int, params: Callable[..., Params]) -> Environment:
    def feedback(key, params: Params, world, action):
        won = answer(key, jnp.asarray(params.preferences), action[0], action[1])
        return world, won, outcome(params, action, won)

    def outcome(params: Params, action, won) -> dict[str, jax.Array]:
        regrets = {name: entry(jnp.asarray(each), action[0], action[1]) for name, each in params.regrets.items()}
        return {**regrets, "best_duels": regrets["pseudo_regret"] == 0, "left_wins": won}

    def judge(params: Params, world, answer) -> dict[str, jax.Array]:
        del world
        regret = entry(jnp.asarray(params.regrets["pseudo_regret"]), answer, answer)
        return {"correct": regret == 0, "simple_regret": regret}

    def block(keys, params: Params, world, contexts: None, actions):
        del contexts
        answers = jax.vmap(answer, (0, None, 0, 0))
        # Left and right arms go in apart: as pairs XLA would put them together in memory, only to take them apart.
        won = own_kernel(answers, keys, jnp.asarray(params.preferences), actions[:, 0], actions[:, 1])
        return world, won, jax.vmap(lambda action, won: outcome(params, action, won))(actions, won)

    def tally(key, params: Params, world, counts):
        won = binomial(key, counts, params.preferences.ravel())
        totals = {
            name: jnp.sum(counts.astype(each.dtype) * each.ravel(), dtype=each.dtype)
            for name, each in params.regrets.items()
        }
        best = jnp.sum(jnp.where(params.regrets["pseudo_regret"].ravel() == 0, counts, 0), dtype=counts.dtype)
        return world, won, {**totals, "best_duels": best, "left_wins": jnp.sum(won, dtype=won.dtype)}

    return Environment(
        params=params,
        init=lambda key, params: (),
        context=None,
        feedback=feedback,
        judge=judge,
        block=block,
        tally=tally,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1), answer=arms(num_arms)),
    )
