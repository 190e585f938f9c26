"""Duels that voters answer from their ballots; each voter answers a limited number of duels."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, Interface, Space, UserLevel, arms, factory, pairs
from jaxdp.core.params import pytree_dataclass
from jaxdp.dueling.environments import REGRETS
from jaxdp.dueling.regrets import cast, regret_matrices
from jaxdp.memory import free_host_bytes
from jaxdp.numerics.lookup import entry, nearest_entry
from jaxdp.preferences import Ballots, check_preferences, condorcet_winner
from jaxdp.random import permutation_entry, uniform_from_key
from jaxdp.random.key_bits import GOLDEN, mix
from jaxdp.validation import check_choice, check_count, check_finite, refuse_private

ROWS = 1 << 16  # number of ballots counted in one step
MOST_ROUNDS = 2**31 - 1
VOTER = "voter"


@pytree_dataclass
class Params:
    """The voters' ballots, and the regrets of duels.

    Attributes:
        ranks: [num_voters, num_arms] uint8 (or wider), each voter's rank of each arm: 1 is the best, equal numbers are
            ties, 0 means unranked. All lanes share one array.
        regrets: by outcome name, [num_arms, num_arms] float >= 0, the regret of a duel of the row's arm with the
            column's arm.
    """

    ranks: np.ndarray
    regrets: dict[str, np.ndarray]


class World(NamedTuple):
    """The position in the sequence of voters.

    Attributes:
        round: [] integer, rounds played.
        order: [2] uint32, the random words that determine the order of the voters in every pass.
    """

    round: jax.Array
    order: jax.Array


@factory
def ballot_duels(ballots: Ballots | ArrayLike, *, answers_per_voter: int = 1, regret: str | None = None) -> Environment:
    """Plays duels of alternatives; in each round the next voter answers from their ballot.

    The voters answer in a random order, which each lane draws from the world's key. After all voters have answered, a
    new pass starts in another order. There are `answers_per_voter` passes. A voter names the arm that their ballot
    ranks higher. The answer is a fair coin if the voter did not rank both arms, ranks them as tied, or is asked about
    an arm and itself. The arm that wins does not depend on which arm is on the left, and the answer does not show
    whether a coin was tossed. Coins of different rounds are independent, even for the same voter.

    An unranked arm does not count as worse than a ranked arm. By PrefLib's definition an incomplete order says nothing
    about an unranked arm, so a fair coin decides. `Ballots.answers` calls such an answer "unknown". All lanes share one
    array of ballots.

    Args:
        ballots: `Ballots`, as `read_ballots` returns them; or an array [num_voters, num_arms] of whole numbers in [0,
            2^31), the ranks of the arms on each ballot: 1 is the best, equal numbers are ties, 0 means unranked.
        answers_per_voter: maximum number of duels that a voter answers, >= 1.
        regret: "strong", "weak" or "borda": the regret that `pseudo_regret` reports. None means "strong" if the ballots
            have a Condorcet winner, otherwise "borda".

    Returns:
        An environment for at most answers_per_voter * num_voters rounds, with blocks. Actions are pairs of arms ([2]
        int32 in [0, num_arms): left, right); feedback is [] int32, 1 if the left arm wins, else 0. Outcomes are as for
        `matrix_duels` with the ballots' matrix, P[i, j] = (voters who rank i above j + half of the voters who toss a
        coin) / all voters: `pseudo_regret`, `borda_regret`, and `strong_regret` and `weak_regret` if there is a
        Condorcet winner; `best_duels`, `left_wins`; and `coins`, the number of answers decided by a coin.
        Recommendations are arms: `simple_regret` is the pseudo-regret of a duel of the arm with itself, and `correct`
        says whether it is zero. An arm outside [0, num_arms) is treated as the nearest arm, but its regrets are NaN.
        `user_level` states that a voter answers in at most answers_per_voter rounds, so a run also reports a guarantee
        for a whole voter.

        The engine "counts" cannot be used: voters are asked without replacement, so totals of answers depend on all
        earlier duels and are not binomial. For this engine use `matrix_duels` on `ballot_matrix(ballots)`, which draws
        voters from the ballots with replacement, as from a large electorate with the same proportions of ballots.

    Raises:
        ValueError: if there is no voter or fewer than two arms; if ranks are not a matrix of whole numbers in [0, 2^31)
            (NaN is not allowed) or need more memory than the host has free; if there would be 2^31 rounds or more; if
            answers_per_voter < 1; if regret is unknown, or is "strong" or "weak" and there is no Condorcet winner.

    Privacy:
        - The coins that voters toss are part of their answers.
        - For given duels and coins, replacing one ballot changes the answers of at most answers_per_voter rounds. It
          never changes the order in which voters are asked.
        - So a learner's claim for the outcome of one duel holds for a whole ballot at
          `Guarantee.at_user_level(answers_per_voter)`: for a pure claim, at epsilon times answers_per_voter.
        - The number of voters is public.
        - Regrets, `correct` and `coins` are computed from the exact ballots: use the simulation only if you may see
          the ballots.

    Source:
        Standard; regrets as for `matrix_duels`.

    Deviations:
        The voters' order is a pseudorandom permutation: `jaxdp.random.permutation_entry` computes each entry from two
        random words when it is read.

    Examples:
        >>> import jax, jaxdp
        >>> ballots = jaxdp.preferences.Ballots(("ann", "bob", "cy"), (((0,), (1,), (2,)), ((0,), (2,))), (700, 300))
        >>> duels = ballot_duels(ballots)
        >>> run = jaxdp.simulator(jaxdp.dueling.rucb(num_arms=3), duels, horizon=1000)
        >>> print(run.guarantee(epsilon=2.0)["voter"])
        2-DP, local, one voter
        >>> outputs = run(jax.random.key(0), run.params(epsilon=2.0))
        >>> bool(outputs["best_duels"][-1] > 300)
        True
    """
    ranks, weights = _ranks_and_counts(ballots)
    answers_per_voter = check_count("answers_per_voter", answers_per_voter)
    plain = _matrix(ranks, weights)
    if regret is None:
        regret = "strong" if condorcet_winner(plain) >= 0 else "borda"
    matrices = regret_matrices(plain)
    name = f"{check_choice('regret', regret, REGRETS)}_regret"
    if name not in matrices:
        raise ValueError(f"regret must be borda for ballots without a Condorcet winner, got {regret!r}")
    num_voters, num_arms = int(weights.sum()), ranks.shape[1]
    horizon = answers_per_voter * num_voters
    if horizon > MOST_ROUNDS:
        raise ValueError(f"answers_per_voter must leave at most {MOST_ROUNDS} rounds, got {horizon}")
    regrets = {name: cast(matrix) for name, matrix in {"pseudo_regret": matrices[name], **matrices}.items()}
    params = Params(ranks=_repeat_rows(ranks, weights), regrets=regrets)  # all runs share these arrays

    def init(key, params: Params) -> World:
        del params
        return World(jnp.zeros((), jnp.result_type(int)), jax.random.bits(key, (2,), jnp.uint32))

    def voter(world: World) -> jax.Array:
        """Returns the voter ([] int32) who answers this round."""
        return permutation_entry(
            _order_of_pass(world.order, world.round // num_voters), world.round % num_voters, num_voters
        )

    def reply(key, params: Params, world: World, action) -> tuple[jax.Array, dict[str, jax.Array]]:
        left, right = action[0], action[1]
        ballot = params.ranks[voter(world)]
        first, second = (nearest_entry(ballot, arm).astype(jnp.int32) for arm in (left, right))
        is_coin = (first == 0) | (second == 0) | (first == second)
        heads = (uniform_from_key(key) < 0.5) == (left <= right)  # the winning arm does not depend on the sides
        won = jnp.where(is_coin, heads, first < second).astype(jnp.int32)
        regrets = {name: entry(jnp.asarray(regret), left, right) for name, regret in params.regrets.items()}
        return won, {**regrets, "best_duels": regrets["pseudo_regret"] == 0, "left_wins": won, "coins": is_coin}

    def feedback(key, params: Params, world: World, action):
        won, outcome = reply(key, params, world, action)
        return world._replace(round=world.round + 1), won, outcome

    def block(keys, params: Params, world: World, contexts: None, actions):
        del contexts
        rounds = world.round + jnp.arange(len(keys), dtype=world.round.dtype)

        def reply_in_round(key, round_, action):
            return reply(key, params, World(round_, world.order), action)

        won, outcome = jax.vmap(reply_in_round)(keys, rounds, actions)
        return World(rounds + 1, jnp.broadcast_to(world.order, (len(keys), 2))), won, outcome

    def evaluate(params: Params, world: World, recommendation) -> dict[str, jax.Array]:
        del world
        simple_regret = entry(jnp.asarray(params.regrets["pseudo_regret"]), recommendation, recommendation)
        return {"correct": simple_regret == 0, "simple_regret": simple_regret}

    return Environment(
        params=lambda: params,
        init=init,
        context=None,
        feedback=feedback,
        evaluate=evaluate,
        block=block,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1), recommendation=arms(num_arms)),
        horizon=horizon,
        user_level=UserLevel(VOTER, answers_per_voter),
    )


def ballot_matrix(ballots: Ballots | ArrayLike) -> np.ndarray:
    """Computes the ballots' preference matrix: the probabilities that a random voter prefers one arm to another.

    Args:
        ballots: as for `ballot_duels`.

    Returns:
        [num_arms, num_arms] float64: the fraction of voters who rank the row's arm above the column's arm, plus half of
        the fraction of voters who rank neither arm above the other.

    Raises:
        ValueError: if there is no voter or fewer than two arms; if ranks are not a matrix of whole numbers in [0,
            2^31), or need more memory than the host has free.

    Source:
        Standard.

    Examples:
        >>> ballot_matrix([[1, 2, 0], [1, 2, 3], [2, 1, 1]]).round(3).tolist()
        [[0.5, 0.667, 0.5], [0.333, 0.5, 0.667], [0.5, 0.333, 0.5]]
    """
    return _matrix(*_ranks_and_counts(ballots))


def _order_of_pass(order: jax.Array, number: jax.Array) -> jax.Array:
    """Returns the two random words of the voters' order in pass `number`, counted from 0."""
    # If only the first word changed, and by one, `permutation_entry` would move most entries by one position. So both
    # words are mixed.
    step = number.astype(jnp.uint32) * GOLDEN
    return jnp.stack([mix(order[0] + step), mix(order[1] - step)])


def _ranks_and_counts(ballots: Ballots | ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ranks ([n, num_arms] integers) on n ballots and the number ([n] int64) of voters with each ballot."""
    if isinstance(ballots, Ballots):
        ranks = np.zeros((len(ballots.orders), len(ballots.items)), np.int64)
        for row, order in enumerate(ballots.orders):
            for rank, group in enumerate(order, 1):
                ranks[row, list(group)] = rank
        if ranks.shape[1] < 2:
            raise ValueError(f"ballots must be about at least two arms, got {ranks.shape[1]}")
        weights = np.asarray(ballots.counts, np.int64)
    else:
        values = check_finite("ballots", ballots, is_private=True)
        if values.ndim != 2 or values.shape[0] < 1 or values.shape[1] < 2:
            raise ValueError(
                f"ballots must be [num_voters, num_arms] with at least one voter and two arms, got shape {values.shape}"
            )
        is_wrong = (values < 0) | (values != np.floor(values)) | (values > MOST_ROUNDS)
        refuse_private("ballots", "whole ranks >= 0: 1 is the best rank, 0 means unranked", is_wrong)
        ranks, weights = values.astype(np.int64), np.ones(len(values), np.int64)
    num_bytes, free = int(weights.sum()) * ranks.shape[1] * _small_type(ranks).itemsize, free_host_bytes()
    if free is not None and num_bytes > free:
        raise ValueError(f"ballots must fit into the free memory of {free} bytes, got {num_bytes} bytes")
    return ranks, weights


def _repeat_rows(ranks: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns each voter's row of ranks, in the smallest integer dtype that can represent all ranks."""
    return np.repeat(ranks.astype(_small_type(ranks)), weights, axis=0)


def _small_type(ranks: np.ndarray) -> np.dtype:
    return np.min_scalar_type(ranks.max())


def _matrix(ranks: np.ndarray, weights: np.ndarray) -> np.ndarray:
    num_arms = ranks.shape[1]
    above = np.zeros((num_arms, num_arms), np.int64)  # how many voters rank the row's arm above the column's arm
    for start in range(0, len(ranks), ROWS):
        ballots, count = ranks[start : start + ROWS], weights[start : start + ROWS]
        for arm in range(num_arms):
            ranks_of_arm = ballots[:, arm, None]
            above[arm] += count @ ((ranks_of_arm > 0) & (ballots > 0) & (ranks_of_arm < ballots))
    return check_preferences("the ballots' matrix", 0.5 + (above - above.T) / (2 * int(weights.sum())))
