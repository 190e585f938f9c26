"""Duels with a preference matrix that an adversary replaces at rounds fixed in advance."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, Interface, Space, default_float, factory, pairs
from jaxdp.core.params import pytree_dataclass
from jaxdp.dueling.environments import answer, with_gap
from jaxdp.dueling.regrets import cast, regret_matrices
from jaxdp.numerics import compensated
from jaxdp.numerics.lookup import entry
from jaxdp.preferences import borda_scores, check_preferences
from jaxdp.validation import check_count, check_list


@pytree_dataclass
class Params:
    """A problem instance.

    Attributes:
        preferences: [num_stages, num_arms, num_arms] float in [0, 1], one preference matrix per stage.
        borda_scores: [num_stages, num_arms] float in [0, 1], the Borda scores of the arms in each stage.
        starts: [num_stages] integers, the first round of each stage, counted from 0.
        regrets: by outcome name, [num_stages, num_arms, num_arms] float >= 0, the regret of a duel of the row's arm
            (left) with the column's arm (right).
    """

    preferences: np.ndarray
    borda_scores: np.ndarray
    starts: np.ndarray
    regrets: dict[str, np.ndarray]


class World(NamedTuple):
    """The number of rounds played, and the sums that determine the regret against the best fixed arm.

    Attributes:
        round: [] integer, rounds played.
        leads: [num_arms] compensated sums of (P[i, left] + P[i, right] - 1) / 2.
        borda: [num_arms] compensated sums of b[i] - (b[left] + b[right]) / 2 for the Borda scores b of the round.
    """

    round: jax.Array
    leads: compensated.Sum
    borda: compensated.Sum


@factory
def switching_duels(preference_matrices: Sequence[ArrayLike], starts: Sequence[int]) -> Environment:
    """Plays duels with a preference matrix that changes at rounds fixed in advance (an oblivious adversary).

    Args:
        preference_matrices: one [num_arms, num_arms] matrix per stage, as for `matrix_duels`.
        starts: the first round of each stage, counted from 0, in increasing order; starts[0] is 0.

    Returns:
        An environment with blocks. Actions are pairs of arms ([2] int32 in [0, num_arms): left, right), and feedback is
        [] int32, 1 if the left arm wins, else 0. Outcomes are computed from the current stage's matrix, relative to
        this stage's best arm: `pseudo_regret` and `borda_regret`, which are equal; `strong_regret` and `weak_regret` if
        every stage has a Condorcet winner; `best_duels`, the number of rounds with a pseudo-regret of zero;
        `left_wins`. Metrics in hindsight are relative to the best fixed arm i so far: `static_regret`, the largest sum
        over rounds of (P[i, left] + P[i, right] - 1) / 2; `static_borda_regret`, the largest sum over rounds of b[i] -
        (b[left] + b[right]) / 2 for the Borda scores b. The regrets of an arm outside [0, num_arms) are NaN.

    Raises:
        ValueError: if there is no matrix, or a matrix is not a preference matrix or differs in shape from the first; if
            starts are not increasing integers that begin with 0, one for each matrix. The result's `params` raises this
            error as for `matrix_duels`.

    Values:
        gap: in (0, 1/2], the smallest nonzero distance of a preference from 1/2 in any stage. All distances are
            multiplied by one factor to reach this gap. By default the matrices are not changed.

    Source:
        Saha & Gaillard (2022), section 2, for `static_regret`; Saha, Koren & Mansour (2021) for the Borda forms.

    Deviations:
        In float32 the probability of a win is a multiple of 2^-23, as for `matrix_duels`.
    """
    matrices = [
        check_preferences(f"preference_matrices[{stage}]", matrix)
        for stage, matrix in enumerate(check_list("preference_matrices", preference_matrices))
    ]
    if not matrices:
        raise ValueError("preference_matrices must hold at least one matrix, got none")
    for stage, matrix in enumerate(matrices):
        if matrix.shape != matrices[0].shape:
            raise ValueError(
                f"preference_matrices must have one shape, got {matrices[0].shape} and then {matrix.shape} at {stage}"
            )
    first_rounds = [check_count(f"starts[{m}]", start, 0) for m, start in enumerate(check_list("starts", starts))]
    increasing = all(start < later for start, later in itertools.pairwise(first_rounds))
    if len(first_rounds) != len(matrices) or first_rounds[0] != 0 or not increasing:
        raise ValueError(
            f"starts must be {len(matrices)} increasing rounds, one for each matrix, the first 0, got {first_rounds}"
        )
    plain, num_arms = np.stack(matrices), len(matrices[0])
    rounds = np.asarray(first_rounds, jax.dtypes.canonicalize_dtype(int))  # the same object for every gap

    def params(*, gap: float | None = None) -> Params:
        preferences = with_gap(plain, gap)
        stages = [regret_matrices(matrix) for matrix in preferences]
        names = [name for name in stages[0] if all(name in stage for stage in stages)]
        regrets = {name: cast(np.stack([stage[name] for stage in stages])) for name in names}
        return Params(
            preferences=cast(preferences),
            borda_scores=cast(np.stack([borda_scores(matrix) for matrix in preferences])),
            starts=rounds,
            regrets={"pseudo_regret": regrets["borda_regret"], **regrets},
        )

    def init(key, params: Params) -> World:
        del key, params
        zeros = compensated.zero(jnp.zeros(num_arms, default_float()))
        return World(jnp.zeros((), jnp.result_type(int)), zeros, zeros)

    def feedback(key, params: Params, world: World, action):
        stage = jnp.sum(params.starts <= world.round) - 1
        preferences = jnp.asarray(params.preferences)[stage]
        left, right = action[0], action[1]
        won = answer(key, preferences, left, right)
        leads = (entry(preferences.T, left) + entry(preferences.T, right) - 1) / 2
        # Scores are computed in advance: XLA might fuse a quotient with the difference, which rounds differently.
        scores = jnp.asarray(params.borda_scores)[stage]
        # Blocks and single rounds must round equally, so neither may use a fused multiply-add.
        terms = jax.lax.optimization_barrier((leads, scores - (entry(scores, left) + entry(scores, right)) / 2))
        after = World(world.round + 1, *map(compensated.add, (world.leads, world.borda), terms))
        outcome = {name: entry(jnp.asarray(regret), stage, left, right) for name, regret in params.regrets.items()}
        return after, won, {**outcome, "best_duels": outcome["pseudo_regret"] == 0, "left_wins": won}

    def block(keys, params: Params, world: World, contexts: None, actions):
        del contexts

        def step(world: World, round_: tuple[jax.Array, jax.Array]):
            after, won, outcome = feedback(round_[0], params, world, round_[1])
            return after, (after, won, outcome)

        return jax.lax.scan(step, world, (keys, actions))[1]

    def hindsight(params: Params, world: World) -> dict[str, jax.Array]:
        del params
        return {"static_regret": world.leads.total.max(), "static_borda_regret": world.borda.total.max()}

    return Environment(
        params=params,
        init=init,
        context=None,
        feedback=feedback,
        hindsight=hindsight,
        block=block,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )
