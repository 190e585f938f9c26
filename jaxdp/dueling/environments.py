"""Stochastic dueling bandits: a user says which of two arms they prefer."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, Interface, Space, factory, pairs
from jaxdp.dueling.regrets import cast, regret_matrices
from jaxdp.kernels import own_kernel
from jaxdp.lookup import entry, nearest
from jaxdp.preferences import Link, check_preferences, logistic, utility_matrix
from jaxdp.random import binomial, key_uniform
from jaxdp.validation import check_choice

REGRETS = ("strong", "weak", "borda")


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """An instance.

    Attributes:
        preferences: [num_arms, num_arms] float in [0, 1], the probability that the row's arm beats the column's.
        regrets: by the outcome's name, [num_arms, num_arms] float >= 0, of a duel of the row's with the column's arm.
    """

    preferences: np.ndarray
    regrets: dict[str, np.ndarray]


@factory
def utility_duels(utilities: ArrayLike, *, link: Link | str = logistic) -> Environment:
    """Duels of arms with utilities r: the left arm wins with probability F(r[left] - r[right]).

    Args:
        utilities: [num_arms] finite.
        link: F; `logistic` (Bradley-Terry-Luce) or `probit` (Thurstone), another `Link`, or the name of one.

    Returns:
        An environment for pairs of arms ([2] int32 in [0, num_arms): left, right) and feedback [] int32, 1 if the left
        one wins, else 0; with blocks and tallies (of ordered pairs, in the order of a flattened matrix). Outcomes:
        `pseudo_regret`, 2 max r - r[left] - r[right] (DP-Dueling, equation 2); `borda_regret`, `strong_regret` and
        `weak_regret` as for `matrix_duels`, the last two only where one arm is the best alone; `best_duels`, rounds
        whose pseudo-regret is zero; `left_wins`.

    Raises:
        ValueError: if utilities are not a vector of at least two finite numbers, or their differences are beyond the
            range of JAX's default float type; or there is no such link.

    Source: DP-Dueling, section 1.2.
    Deviations: as for `matrix_duels`.
    """
    preferences = utility_matrix(utilities, link)
    utilities = np.asarray(utilities, np.float64)
    gaps = utilities.max() - utilities
    with np.errstate(over="ignore"):
        pseudo_regret = np.add.outer(gaps, gaps)
        if not np.isfinite(cast(pseudo_regret)).all():
            dtype = jax.dtypes.canonicalize_dtype(float)
            raise ValueError(f"utilities must have differences within the range of {dtype}, got {utilities.tolist()}")
    return _duels(preferences, pseudo_regret)


@factory
def matrix_duels(preference_matrix: ArrayLike, *, regret: str = "strong") -> Environment:
    """Duels by a preference matrix P: the left arm wins with probability P[left, right].

    One uniform a round decides every duel that might be played in it, and a user's answer does not depend on which arm
    is on the left.

    Args:
        preference_matrix: [num_arms, num_arms] in [0, 1], P[i, j] + P[j, i] = 1.
        regret: "strong", "weak" or "borda": which regret `pseudo_regret` is.

    Returns:
        An environment for pairs of arms ([2] int32 in [0, num_arms): left, right) and feedback [] int32, 1 if the left
        one wins, else 0; with blocks and tallies (of ordered pairs, in the order of a flattened matrix). Outcomes:
        `pseudo_regret`; `borda_regret`, the largest Borda score less the mean of both arms'; where there is a Condorcet
        winner, `strong_regret`, the sum of its leads over both arms, and `weak_regret`, the smaller of them (a lead
        is P[winner, arm] - 1/2); `best_duels`, rounds whose pseudo-regret is zero; `left_wins`. The regrets of an arm
        outside [0, num_arms) are NaN.

    Raises:
        ValueError: if preference_matrix is not one, regret has another name, or it needs a Condorcet winner and there
            is none.

    Source: strong regret as in DP-Dueling, appendix B (Yue, Broder, Kleinberg & Joachims, 2012, up to a constant); weak
        regret, Yue, Broder, Kleinberg & Joachims (2012); Borda regret, Saha, Koren & Mansour (2021).
    Deviations: in float32 the uniform is a multiple of 2^-23, and so are probabilities, but for tallies.
    """
    preferences = check_preferences("preference_matrix", preference_matrix)
    name = f"{check_choice('regret', regret, REGRETS)}_regret"
    known = regret_matrices(preferences)
    if name not in known:
        raise ValueError(
            f"regret must be borda for a preference_matrix without a Condorcet winner, got {regret!r} for "
            f"{preferences.tolist()}"
        )
    return _duels(preferences, known[name])


def answer(key: jax.Array, preferences: jax.Array, left: jax.Array, right: jax.Array) -> jax.Array:
    """A user's answer to a duel, [] int32: 1 if the left arm wins, which the same key decides for all pairs.

    An arm that is not there is answered for as the nearest one, since integers have no NaN.
    """
    first_wins = key_uniform(key, preferences.dtype) < nearest(
        preferences, jnp.minimum(left, right), jnp.maximum(left, right)
    )
    return (first_wins == (left <= right)).astype(jnp.int32)


def _duels(preferences: np.ndarray, pseudo_regret: np.ndarray) -> Environment:
    num_arms = len(preferences)
    regrets = {"pseudo_regret": pseudo_regret, **regret_matrices(preferences)}
    params = Params(preferences=cast(preferences), regrets={name: cast(each) for name, each in regrets.items()})

    def feedback(key, params: Params, world, action):
        won = answer(key, jnp.asarray(params.preferences), action[0], action[1])
        return world, won, outcome(params, action, won)

    def outcome(params: Params, action, won) -> dict[str, jax.Array]:
        found = {name: entry(jnp.asarray(each), action[0], action[1]) for name, each in params.regrets.items()}
        return {**found, "best_duels": found["pseudo_regret"] == 0, "left_wins": won}

    def block(keys, params: Params, world, contexts: None, actions):
        del contexts
        answers = jax.vmap(answer, (0, None, 0, 0))
        # Arms apart, since pairs in memory would be put together only to be taken apart.
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
        params=lambda: params,  # one object: held once, however many grid points
        init=lambda key, params: (),
        context=None,
        feedback=feedback,
        block=block,
        tally=tally,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )
