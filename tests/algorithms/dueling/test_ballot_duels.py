"""Duels that voters answer: against a NumPy version voter by voter, how often each ballot is asked, and claims."""

import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.core import Guarantee, UserLevel
from jaxdp.dueling import _ballot_duels, ballot_duels, ballot_matrix, matrix_duels, rucb
from jaxdp.preferences import Ballots, condorcet_winner

KEY = partial(jax.random.key, 12)
ORDERS = (((0,), (1, 2)), ((2,), (0,)), ((1,), (2,), (0,)), ((0, 1), (2,)), ((1,),))
BALLOTS = Ballots(("a", "b", "c"), ORDERS, (2, 2, 1, 1, 1))
PLACES = np.repeat([[1, 2, 2], [2, 0, 1], [3, 1, 2], [1, 1, 2], [0, 1, 0]], BALLOTS.counts, axis=0)
VOTERS, LANES = 7, 4000
DUELS = np.array([[0, 1], [1, 2], [2, 0], [1, 0], [0, 2], [0, 1], [2, 1]], np.int32)


def program(environment):
    """Builds (params, actions, key of a lane) -> answers and outcomes, for lanes with worlds of their own."""
    assert environment.block is not None

    def lane(params, actions, key):
        key_world, key_rounds = jax.random.split(key)
        world = environment.init(key_world, params)
        return environment.block(jax.random.split(key_rounds, len(actions)), params, world, None, actions)[1:]

    return jax.jit(jax.vmap(lane, (None, None, 0)))


def play(environment, actions, lanes=LANES):
    """Returns answers [lanes, rounds] and the outcomes."""
    params = jax.tree.map(jnp.asarray, environment.params())
    return jax.device_get(program(environment)(params, jnp.asarray(actions, jnp.int32), jax.random.split(KEY(), lanes)))


def in_numpy(rng, places, actions, lanes=LANES, *, coin=0.5, replace=False):
    """Plays the definition in NumPy: an order of all voters for each pass, and a coin where one arm is not ranked."""
    voters, found = len(places), np.empty((lanes, len(actions)), int)
    for lane in range(lanes):
        passes = [rng.permutation(voters) for _ in range(-(-len(actions) // voters))]
        asked = rng.integers(voters, size=len(actions)) if replace else np.concatenate(passes)
        for t, (left, right) in enumerate(actions):
            first, second = places[asked[t]][[left, right]]
            says_nothing = 0 in (first, second) or first == second
            found[lane, t] = rng.random() < coin if says_nothing else first < second
    return found


def check_alike(ours, theirs):
    """Checks means of rounds and of pairs of rounds, and the distribution of the total: within 5 standard errors."""
    for statistic in (lambda won: won, lambda won: (won[:, :, None] * won[:, None, :]).reshape(len(won), -1)):
        a, b = statistic(ours), statistic(theirs)
        error = np.sqrt(a.var(0) / len(a) + b.var(0) / len(b)) + 1e-9
        assert np.all(np.abs(a.mean(0) - b.mean(0)) <= 5 * error)
    shares = [np.bincount(won.sum(1), minlength=won.shape[1] + 1) / len(won) for won in (ours, theirs)]
    pooled = (shares[0] + shares[1]) / 2
    error = np.sqrt(pooled * (1 - pooled) * (1 / len(ours) + 1 / len(theirs))) + 1e-9
    assert np.all(np.abs(shares[0] - shares[1]) <= 5 * error)


def test_answers_have_the_distribution_of_the_definition():
    passes = 2
    actions = np.concatenate([DUELS] * passes)
    ours, outcomes = play(ballot_duels(BALLOTS, answers_per_voter=passes), actions)
    assert set(np.unique(ours)) == {0, 1}
    assert (outcomes["left_wins"] == ours).all()
    rng = np.random.default_rng(passes)
    check_alike(ours, in_numpy(rng, PLACES, actions))
    with pytest.raises(AssertionError):  # planted: a coin that is not fair
        check_alike(ours, in_numpy(rng, PLACES, actions, coin=0.8))
    with pytest.raises(AssertionError):  # planted: an arm that is not ranked loses
        check_alike(ours, in_numpy(rng, np.where(PLACES == 0, 9, PLACES), actions))


def test_with_replacement_is_seen_where_all_are_asked_the_same():
    """Checks that asking each voter once gives a fixed total over a pass of voters who rank both arms."""
    strict = np.array([[1, 2], [1, 2], [2, 1], [1, 2]])
    won, outcomes = play(ballot_duels(strict, answers_per_voter=3), [[0, 1]] * 12, lanes=50)
    assert (won.reshape(50, 3, 4).sum(2) == 3).all()
    replaced = in_numpy(np.random.default_rng(0), strict, [[0, 1]] * 12, 50, replace=True)
    assert not (replaced.reshape(50, 3, 4).sum(2) == 3).all()
    assert not outcomes["coins"].any()
    orders = won.reshape(50, 3, 4)
    assert not (orders[:, 0] == orders[:, 1]).all()  # another order in the next pass


def largest_correlation(won, voters):
    """Returns the largest correlation, over all lags, of the answers of one pass and the next, in standard
    deviations.
    """
    spectra = np.fft.fft(2.0 * won.reshape(-1, 2, voters) - 1)
    return np.abs(np.real(np.fft.ifft(spectra[:, 1] * np.conj(spectra[:, 0])))).max() / math.sqrt(voters)


def test_orders_of_different_passes_have_nothing_in_common(monkeypatch):
    """Lets the first half of the voters rank one arm higher, and tries every lag between two orders."""
    voters = 5000
    ballots = np.where(np.arange(voters)[:, None] < voters // 2, [1, 2], [2, 1])
    actions = np.tile([0, 1], (2 * voters, 1))
    won, _ = play(ballot_duels(ballots, answers_per_voter=2), actions, lanes=4)
    assert largest_correlation(won, voters) < 6.5

    def shifted(order, number):
        return jnp.stack([order[0] + number.astype(jnp.uint32), order[1]])

    monkeypatch.setattr(_ballot_duels, "_order_of_pass", shifted)  # planted: words that are next to each other
    won, _ = play(ballot_duels(ballots, answers_per_voter=2), actions, lanes=4)
    assert largest_correlation(won, voters) > 20


def test_every_voter_is_asked_as_often_as_they_may_be():
    """Lets voter v alone rank arm v, above the last arm: in duels of these two all other answers are coins."""
    voters, passes = 5, 3
    places = np.zeros((voters, voters + 1), int)
    places[np.arange(voters), np.arange(voters)], places[:, -1] = 1, 2
    environment = ballot_duels(places, answers_per_voter=passes)
    assert environment.horizon == passes * voters
    keys, run = jax.random.split(KEY(), 20), program(environment)
    for arm in range(voters):
        won, outcomes = run(environment.params(), jnp.tile(jnp.array([arm, voters]), (passes * voters, 1)), keys)
        own = ~np.asarray(outcomes["coins"]).reshape(20, passes, voters)
        assert (own.sum(2) == 1).all()  # once in every pass
        assert np.asarray(won)[own.reshape(20, -1)].all()


def test_replacing_one_ballot_changes_few_answers():
    """Checks that at most answers_per_voter answers of a run differ; a second replaced ballot changes more."""
    passes = 2
    rng = np.random.default_rng(5)
    places = rng.permuted(np.tile(np.arange(1, 5), (30, 1)), axis=1)
    other, third = places.copy(), places.copy()
    other[11] = 5 - places[11]  # the opposite order changes every answer of that voter
    third[[11, 12]] = 5 - places[[11, 12]]
    actions = jnp.asarray(np.stack([rng.permutation(4)[:2] for _ in range(30 * passes)]), jnp.int32)
    environment = ballot_duels(places, answers_per_voter=passes)
    params, run, keys = environment.params(), program(environment), jax.random.split(KEY(), 40)
    won, changed, more = (
        np.asarray(run(dataclasses.replace(params, ranks=each.astype(params.ranks.dtype)), actions, keys)[0])
        for each in (places, other, third)
    )
    assert ((won != changed).sum(1) == passes).all()
    assert ((won != changed)[:, :30].sum(1) == 1).all()  # once in the first pass
    assert ((won != more).sum(1) == 2 * passes).all()  # planted: not the voter alone


def test_coins_are_fair_and_blind_to_sides():
    silent = np.array([[1, 0, 2], [0, 0, 0], [1, 2, 2]])
    environment = ballot_duels(silent, answers_per_voter=4)
    run, keys = program(environment), jax.random.split(KEY(), LANES)
    won, turned = (
        np.asarray(run(environment.params(), jnp.tile(jnp.array(pair), (12, 1)), keys)[0]) for pair in ([1, 2], [2, 1])
    )
    assert (won + turned == 1).all()
    assert abs(won.mean() - 0.5) <= 5 * 0.5 / math.sqrt(won.size)
    pairs = (won[:, ::3] * won[:, 1::3]).mean()
    assert abs(pairs - 0.25) <= 5 * math.sqrt(3 / 16 / (4 * LANES))  # independent ones


def test_the_matrix_and_regrets():
    matrix = ballot_matrix(BALLOTS)
    np.testing.assert_allclose(matrix, ballot_matrix(PLACES))
    half = [
        [
            sum(0.5 if 0 in (b[i], b[j]) or b[i] == b[j] else float(b[i] < b[j]) for b in PLACES) / VOTERS
            for j in range(3)
        ]
        for i in range(3)
    ]
    np.testing.assert_allclose(matrix, half, atol=1e-12)
    assert condorcet_winner(matrix) == -1
    clear = Ballots(BALLOTS.items, ORDERS, (5, 2, 1, 1, 1))
    mine, theirs = (each.params().regrets for each in (ballot_duels(clear), matrix_duels(ballot_matrix(clear))))
    assert mine.keys() == theirs.keys()
    for name, values in mine.items():
        np.testing.assert_array_equal(values, theirs[name])
    cycle = ballot_duels([[1, 2, 3], [3, 1, 2], [2, 3, 1]])
    assert set(cycle.params().regrets) == {"pseudo_regret", "borda_regret"}
    judged = ballot_duels(clear).evaluate
    assert judged is not None
    told = [judged(ballot_duels(clear).params(), None, jnp.int32(arm)) for arm in range(3)]
    assert [bool(each["correct"]) for each in told] == [True, False, False]


def test_blocks_are_rounds():
    environment = ballot_duels(BALLOTS, answers_per_voter=2)
    params = jax.tree.map(jnp.asarray, environment.params())
    world, keys = environment.init(KEY(), params), jax.random.split(KEY(), 14)
    actions = jnp.asarray(np.concatenate([DUELS] * 2))
    assert environment.block is not None
    worlds, *found = jax.jit(environment.block)(keys, params, world, None, actions)
    single = jax.jit(environment.feedback)
    for t in range(14):
        world, *answers = single(keys[t], params, world, actions[t])
        here = jax.tree.map(lambda leaf, t=t: leaf[t], (worlds, *found))
        for one, many in zip(jax.tree.leaves((world, *answers)), jax.tree.leaves(here), strict=True):
            assert (one == many).all()
    assert environment.feedback_totals is None


def test_a_run_has_the_claim_of_one_voter():
    environment = ballot_duels(BALLOTS, answers_per_voter=3)
    assert environment.user_level == UserLevel("voter", 3)
    run = jaxdp.simulator(rucb(num_arms=3), environment, horizon=21)
    claims = run.guarantee(epsilon=0.5)
    assert [str(claim) for claim in claims.values()] == [
        "0.5-DP, local, one duel's outcome",
        "1.5-DP, local, one voter",
    ]
    with pytest.raises(ValueError, match="horizon must be <= the environment's 21, got 22"):
        jaxdp.simulator(rucb(num_arms=3), environment, horizon=22)


def test_the_claim_of_one_voter_is_reached_and_not_passed():
    """Enumerates all reports of two answers by randomized response, for a voter and the opposite one."""
    epsilon, passes = 0.7, 2
    truth = 1 / (1 + math.exp(-epsilon))
    losses = [
        math.log(
            math.prod(truth if bit else 1 - truth for bit in bits)
            / math.prod(1 - truth if bit else truth for bit in bits)
        )
        for bits in np.ndindex(*[2] * passes)
    ]
    claim = Guarantee.pure(
        epsilon, trust_model="local", privacy_unit="one duel's outcome", argument="randomized response"
    )
    assert max(losses) == pytest.approx(claim.at_user_level(passes, privacy_unit="one voter").epsilon)
    assert max(losses) > claim.epsilon + 0.1  # planted: the claim of one answer


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"ballots": np.zeros((0, 3))},
            r"ballots must be \[num_voters, num_arms\] with at least one voter and two arms",
        ),
        ({"ballots": [[1], [1]]}, r"at least one voter and two arms, got shape \(2, 1\)"),
        ({"ballots": Ballots(("a",), (((0,),),), (1,))}, "ballots must be about at least two arms, got 1"),
        ({"ballots": [1, 2, 3]}, "got shape .3,."),
        ({"ballots": [[1, np.nan]]}, "ballots must be finite, got 1 of 2 that are not$"),
        ({"ballots": [[1, 2], [1]]}, "ballots must be an array of numbers"),
        ({"ballots": [["a", "b"]]}, "ballots must be numbers"),
        ({"ballots": [[1, -1]]}, "ballots must be whole ranks >= 0: .* got 1 of 2 that are not$"),
        ({"ballots": [[1, 1.5]]}, "ballots must be whole ranks .* got 1 of 2 that are not$"),
        ({"answers_per_voter": 0}, "answers_per_voter must be an integer >= 1, got 0"),
        ({"answers_per_voter": 2**30}, "answers_per_voter must leave at most 2147483647 rounds, got 7516192768"),
        ({"regret": "best"}, "regret must be one of strong, weak, borda, got 'best'"),
        ({"ballots": [[1, 2, 3], [3, 1, 2], [2, 3, 1]], "regret": "weak"}, "regret must be borda for ballots without"),
    ],
)
def test_errors(values, message):
    with pytest.raises(ValueError, match=message):
        ballot_duels(**{"ballots": BALLOTS, **values})
