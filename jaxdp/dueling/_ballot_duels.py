"""Duels that real voters answer: each from their own ballot, and only so often."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import Environment, Interface, Persons, Space, arms, factory, pairs
from jaxdp.dueling.environments import REGRETS
from jaxdp.dueling.regrets import cast, regret_matrices
from jaxdp.memory import free_host_bytes
from jaxdp.numerics.lookup import entry, nearest
from jaxdp.preferences import Ballots, check_preferences, condorcet_winner
from jaxdp.random import key_uniform, permuted
from jaxdp.random.own_words import GOLDEN, mix
from jaxdp.validation import check_choice, check_count, check_finite, refuse_private

ROWS = 1 << 16  # looked through at a time
MOST_ROUNDS = 2**31 - 1
VOTER = "voter"


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """The voters.

    Attributes:
        ranks: [num_voters, num_arms] uint8 (or wider), where each voter has ranked each arm: 1 is the best, equal
            numbers are ties, 0 is not ranked. One array for all lanes.
        regrets: by the outcome's name, [num_arms, num_arms] float >= 0, of a duel of the row's with the column's arm.
    """

    ranks: np.ndarray
    regrets: dict[str, np.ndarray]


class World(NamedTuple):
    """Who is next.

    Attributes:
        round: [] integer, rounds played.
        order: [2] uint32, the words that the order of the voters is made of.
    """

    round: jax.Array
    order: jax.Array


@factory
def ballot_duels(ballots: Ballots | ArrayLike, *, answers_per_voter: int = 1, regret: str | None = None) -> Environment:
    """Duels of alternatives, each of which the next voter answers from their ballot.

    The voters come in a random order, drawn for each lane from the world's key; after all of them they come again in
    another order, until each has been asked `answers_per_voter` times. A voter says which of the two arms their ballot
    ranks higher. One who did not rank both arms answers with a fair coin, and so does one who ranks them as tied, and
    one who is asked about an arm and itself: the answer to a duel does not depend on which arm is on the left, nor
    does whether a coin was tossed show. Coins of different rounds are independent, also those of one voter.

    An unranked arm does not lose against a ranked one: PrefLib defines incomplete orders as silent about it, and
    `Ballots.answers` calls that "unknown".

    No lane holds an order: voter number t of a pass is entry t of a permutation that is computed where it is read
    (`jaxdp.random.permuted`), from two words. All lanes share the one array of ballots.

    Args:
        ballots: `Ballots`, as `read_ballots` reads them; or [num_voters, num_arms] whole numbers >= 0, the places of
            the arms on each ballot: 1 is the best, equal numbers are ties, 0 is not ranked.
        answers_per_voter: how many duels a voter answers at most, >= 1.
        regret: "strong", "weak" or "borda": which regret `pseudo_regret` is. None is strong where the ballots have a
            Condorcet winner, and else borda.

    Returns:
        An environment for at most answers_per_voter * num_voters rounds, of pairs of arms ([2] int32 in [0, num_arms):
        left, right) and feedback [] int32, 1 if the left one wins, else 0; with blocks. Outcomes as for `matrix_duels`
        with the ballots' matrix, P[i, j] = (voters who rank i above j + half of those who toss a coin) / all voters:
        `pseudo_regret`, `borda_regret`, and `strong_regret` and `weak_regret` where there is a Condorcet winner;
        `best_duels`, `left_wins`; and `coins`, how many answers were coins. Answers are arms: `simple_regret` is the
        pseudo-regret of a duel of the arm with itself, `correct` whether that is zero. An arm outside [0, num_arms) is
        answered for as the nearest one; its regrets are NaN. `persons` says that a voter holds answers_per_voter
        rounds, so that a run's guarantee has a line for one voter.

        There is no tally, and so no engine "counts": voters are asked without replacement, and totals of answers are
        sums of hypergeometric variates whose laws depend on everything that was asked before, not binomial ones.
        `matrix_duels` on `ballot_matrix(ballots)` has tallies, and is the same with voters drawn from the ballots with
        replacement: an electorate of any size that votes as this one.

    Raises:
        ValueError: if there is no voter, there are fewer than two arms, places are not whole numbers >= 0 in a matrix
            (NaN is none), they take more memory than the host has free, there would be 2^31 rounds or more,
            answers_per_voter < 1, regret has another name, or it needs a Condorcet winner and there is none.

    Privacy:
        - Voters' own randomness, their coins, is part of their answers.
        - Replacing one ballot changes the answers of answers_per_voter rounds at most, and not who is asked when.
        - So what a learner claims for the outcome of one duel holds for a whole ballot at
          `Guarantee.of_person(answers_per_voter)`: epsilon times answers_per_voter.
        - The number of voters is public.
        - Regrets, `correct` and `coins` are read from the ballots as they are: a simulation for whoever may see them.

    Source:
        Standard; regrets as for `matrix_duels`.

    Deviations:
        The order is that of `permuted`.

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
    ranks, weights = _places(ballots)
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
    regrets = {name: cast(each) for name, each in {"pseudo_regret": matrices[name], **matrices}.items()}
    params = Params(ranks=_each(ranks, weights), regrets=regrets)  # one object for all runs

    def init(key, params: Params) -> World:
        del params
        return World(jnp.zeros((), jnp.result_type(int)), jax.random.bits(key, (2,), jnp.uint32))

    def voter(world: World) -> jax.Array:
        """Who answers this round, [] int32."""
        return permuted(_of_pass(world.order, world.round // num_voters), world.round % num_voters, num_voters)

    def reply(key, params: Params, world: World, action) -> tuple[jax.Array, dict[str, jax.Array]]:
        left, right = action[0], action[1]
        ballot = params.ranks[voter(world)]
        first, second = (nearest(ballot, arm).astype(jnp.int32) for arm in (left, right))
        is_coin = (first == 0) | (second == 0) | (first == second)
        heads = (key_uniform(key) < 0.5) == (left <= right)  # the same for either arm on the left
        won = jnp.where(is_coin, heads, first < second).astype(jnp.int32)
        found = {name: entry(jnp.asarray(each), left, right) for name, each in params.regrets.items()}
        return won, {**found, "best_duels": found["pseudo_regret"] == 0, "left_wins": won, "coins": is_coin}

    def feedback(key, params: Params, world: World, action):
        won, outcome = reply(key, params, world, action)
        return world._replace(round=world.round + 1), won, outcome

    def block(keys, params: Params, world: World, contexts: None, actions):
        del contexts
        rounds = world.round + jnp.arange(len(keys), dtype=world.round.dtype)

        def one(key, round_, action):
            return reply(key, params, World(round_, world.order), action)

        won, outcome = jax.vmap(one)(keys, rounds, actions)
        return World(rounds + 1, jnp.broadcast_to(world.order, (len(keys), 2))), won, outcome

    def judge(params: Params, world: World, answer) -> dict[str, jax.Array]:
        del world
        lost = entry(jnp.asarray(params.regrets["pseudo_regret"]), answer, answer)
        return {"correct": lost == 0, "simple_regret": lost}

    return Environment(
        params=lambda: params,
        init=init,
        context=None,
        feedback=feedback,
        judge=judge,
        block=block,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1), answer=arms(num_arms)),
        horizon=horizon,
        persons=Persons(VOTER, answers_per_voter),
    )


def ballot_matrix(ballots: Ballots | ArrayLike) -> np.ndarray:
    """The preference matrix of ballots: the probability that a voter drawn at random answers for the row's arm.

    Args:
        ballots: as for `ballot_duels`.

    Returns:
        [num_arms, num_arms] float64: the share of voters who rank the row's arm above the column's, and half of the
        share of those who say nothing about the two.

    Raises:
        ValueError: as `ballot_duels`, of the ballots.

    Source:
        Standard.

    Examples:
        >>> ballot_matrix([[1, 2, 0], [1, 2, 3], [2, 1, 1]]).round(3).tolist()
        [[0.5, 0.667, 0.5], [0.333, 0.5, 0.667], [0.5, 0.333, 0.5]]
    """
    return _matrix(*_places(ballots))


def _of_pass(order: jax.Array, number: jax.Array) -> jax.Array:
    """The words of the order in which voters come for the `number`-th time, from 0.

    Both are mixed: by a first word that is larger by one, `permuted` moves most entries as before, one place further.
    """
    step = number.astype(jnp.uint32) * GOLDEN
    return jnp.stack([mix(order[0] + step), mix(order[1] - step)])


def _places(ballots: Ballots | ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Different ballots and how many voters cast each: [n, num_arms] whole numbers, [n] int64."""
    if isinstance(ballots, Ballots):
        ranks = np.zeros((len(ballots.orders), len(ballots.items)), np.int64)
        for row, order in enumerate(ballots.orders):
            for place, group in enumerate(order, 1):
                ranks[row, list(group)] = place
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
        refuse_private("ballots", "places from 1, the best, on, and 0 for what is not ranked", is_wrong)
        ranks, weights = values.astype(np.int64), np.ones(len(values), np.int64)
    num_bytes, free = int(weights.sum()) * ranks.shape[1] * _small_type(ranks).itemsize, free_host_bytes()
    if free is not None and num_bytes > free:
        raise ValueError(f"ballots must fit into the free memory of {free} bytes, got {num_bytes} bytes")
    return ranks, weights


def _each(ranks: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """A row for every voter, of a small type."""
    return np.repeat(ranks.astype(_small_type(ranks)), weights, axis=0)


def _small_type(ranks: np.ndarray) -> np.dtype:
    """The smallest type that holds all places."""
    return np.min_scalar_type(ranks.max())


def _matrix(ranks: np.ndarray, weights: np.ndarray) -> np.ndarray:
    num_arms = ranks.shape[1]
    above = np.zeros((num_arms, num_arms), np.int64)  # how many voters rank the row's arm above the column's
    for start in range(0, len(ranks), ROWS):
        some, count = ranks[start : start + ROWS], weights[start : start + ROWS]
        for arm in range(num_arms):
            mine = some[:, arm, None]
            above[arm] += count @ ((mine > 0) & (some > 0) & (mine < some))
    return check_preferences("the ballots' matrix", 0.5 + (above - above.T) / (2 * int(weights.sum())))
