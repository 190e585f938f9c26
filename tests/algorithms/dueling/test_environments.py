"""Duels: answers and feedback totals have their distributions, regrets are as defined, bad instances are refused."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import matrix_duels, switching_duels, utility_duels
from jaxdp.preferences import borda_scores, cyclic_matrix, lower_bound_matrix, probit, utility_matrix

KEY = partial(jax.random.key, 61)
ROUNDS = 8_000
MATRIX = np.array([[0.5, 0.7, 1.0], [0.3, 0.5, 0.55], [0.0, 0.45, 0.5]])
PAIRS = list(itertools.product(range(3), repeat=2))


def start(environment):
    params = jax.tree.map(jnp.asarray, environment.params())
    return params, environment.init(KEY(), params)


def all_duels(environment, rounds=ROUNDS):
    """Plays every pair against the same rounds: answers [pairs, rounds], and the outcomes of one round of each."""
    params, world = start(environment)
    keys = jax.random.split(KEY(), rounds)

    @jax.jit
    def play(action):
        actions = jnp.broadcast_to(action, (rounds, 2))
        return environment.block(keys, params, world, None, actions)[1:]

    played = [jax.device_get(play(jnp.asarray(pair, jnp.int32))) for pair in PAIRS]
    return dict(zip(PAIRS, played, strict=True))


def check_mean(values, mean, stddev):
    assert abs(values.mean() - mean) <= 5 * stddev / math.sqrt(len(values))


@pytest.mark.parametrize(
    ("make", "arguments"), [(matrix_duels, [MATRIX]), (switching_duels, [[MATRIX], [0]])], ids=["one", "switching"]
)
def test_answers_and_regrets(make, arguments):
    environment = make(*arguments)
    found = all_duels(environment)
    scores = borda_scores(MATRIX)
    for (left, right), (won, outcomes) in found.items():
        probability = MATRIX[left, right]
        assert won.dtype == np.int32
        assert set(won.tolist()) <= {0, 1}
        check_mean(won, probability, math.sqrt(probability * (1 - probability)))
        with pytest.raises(AssertionError):
            check_mean(won, probability + 0.05, math.sqrt(probability * (1 - probability)))
        gaps = [MATRIX[0, arm] - 0.5 for arm in (left, right)]
        borda = scores.max() - (scores[left] + scores[right]) / 2
        expected = {"strong_regret": sum(gaps), "weak_regret": min(gaps), "borda_regret": borda}
        for name, value in expected.items():
            np.testing.assert_allclose(outcomes[name], value, atol=1e-6, err_msg=name)
        assert (outcomes["left_wins"] == won).all()
        assert (outcomes["best_duels"] == (left == right == 0)).all()
        if left != right:  # users hold one opinion of each pair, whichever arm is on the left
            assert (won + found[right, left][0] == 1).all()


@pytest.mark.parametrize(("regret", "zero"), [("strong", 1), ("weak", 5), ("borda", 1)])
def test_which_regret_is_the_pseudo_regret(regret, zero):
    found = all_duels(matrix_duels(MATRIX, regret=regret), 2)
    for _, outcomes in found.values():
        assert (outcomes["pseudo_regret"] == outcomes[f"{regret}_regret"]).all()
    assert sum(outcomes["best_duels"][0] for _, outcomes in found.values()) == zero


def test_utility_duels():
    utilities = [1.0, -0.5, 0.25]
    for link in (None, probit, "probit"):
        environment = utility_duels(utilities) if link is None else utility_duels(utilities, link=link)
        matrix = utility_matrix(utilities) if link is None else utility_matrix(utilities, link)
        np.testing.assert_allclose(environment.params().preferences, matrix, rtol=1e-6)
    for (left, right), (_, outcomes) in all_duels(utility_duels(utilities), 2).items():
        np.testing.assert_allclose(outcomes["pseudo_regret"], 2 - utilities[left] - utilities[right], rtol=1e-6)
    _, outcomes = all_duels(utility_duels([1.0, 1.0, 0.0]), 2)[0, 1]
    assert outcomes["best_duels"].all()
    assert "strong_regret" not in outcomes


def test_without_a_condorcet_winner():
    _, outcomes = all_duels(matrix_duels(cyclic_matrix(3), regret="borda"), 2)[0, 1]
    assert set(outcomes) == {"pseudo_regret", "borda_regret", "best_duels", "left_wins"}


def test_tallies_are_sums():
    environment = matrix_duels(MATRIX)
    assert environment.feedback_totals is not None
    feedback_totals, params = environment.feedback_totals, start(environment)[0]
    counts = np.array([5, 1000, 40, 7, 0, 300, 11, 2, 90])
    draw = jax.jit(jax.vmap(lambda key: feedback_totals(key, params, (), jnp.asarray(counts))[1:]))
    totals, outcomes = jax.device_get(draw(jax.random.split(KEY(), 4000)))
    for place, (pair, count) in enumerate(zip(PAIRS, counts, strict=True)):
        probability = MATRIX[pair]
        check_mean(totals[:, place], count * probability, math.sqrt(count * probability * (1 - probability)))
    with pytest.raises(AssertionError):  # planted: the pairs the other way around
        check_mean(totals[:, 1], 1000 * MATRIX[1, 0], math.sqrt(210))
    assert (outcomes["left_wins"] == totals.sum(1)).all()
    assert (outcomes["best_duels"] == 5).all()
    for name, matrix in environment.params().regrets.items():
        np.testing.assert_allclose(outcomes[name], counts @ matrix.ravel(), rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (utility_duels, [[0.0, 1.0, 2.0]]),
        (matrix_duels, [MATRIX]),
        (switching_duels, [[MATRIX, MATRIX.T, MATRIX], [0, 9, 20]]),
    ],
    ids=["utilities", "matrix", "switching"],
)
def test_blocks_are_rounds(make, arguments):
    """Plays the same keys and actions, one by one and at once: worlds, answers and outcomes agree bit for bit."""
    environment = make(*arguments)
    params, world = start(environment)
    keys = jax.random.split(KEY(), 32)
    actions = jax.random.randint(jax.random.fold_in(KEY(), 1), (32, 2), 0, 3, jnp.int32)
    worlds, won, outcomes = jax.jit(environment.block)(keys, params, world, None, actions)
    single = jax.jit(environment.feedback)
    for t in range(32):
        world, answer, outcome = single(keys[t], params, world, actions[t])
        here = jax.tree.map(lambda leaf, t=t: leaf[t], (worlds, won, outcomes))
        for one, many in zip(jax.tree.leaves((world, answer, outcome)), jax.tree.leaves(here), strict=True):
            assert (one == many).all()


@pytest.mark.optimised
def test_a_world_that_goes_on_rounds_alike():
    """Plays lanes by rounds and by blocks: no program may round the quotients in Borda regret of six arms with a
    sum.
    """
    first, second = (np.triu(np.random.default_rng(seed).uniform(size=(6, 6)), 1) for seed in (1, 2))
    matrices = [upper + np.tril(1 - upper.T, -1) + np.eye(6) / 2 for upper in (first, second)]
    environment = switching_duels(matrices, [0, 61])
    play_block = environment.block
    assert play_block is not None
    params, world = start(environment)
    keys = jax.random.split(KEY(), 90)

    def by_rounds(actions):
        return jax.lax.fori_loop(0, 90, lambda t, w: environment.feedback(keys[t], params, w, actions[t])[0], world)

    def by_blocks(actions):
        def block(index, world):
            some = (jax.lax.dynamic_slice_in_dim(each, 18 * index, 18) for each in (keys, actions))
            worlds = play_block(next(some), params, world, None, next(some))[0]
            return jax.tree.map(lambda leaf: leaf[-1], worlds)

        return jax.lax.fori_loop(
            0, 5, block, world._replace(round=world.round + 0 * actions[0, 0].astype(world.round.dtype))
        )

    actions = jax.random.randint(jax.random.fold_in(KEY(), 1), (16, 90, 2), 0, 6, jnp.int32)
    rounds, blocks = (jax.jit(jax.vmap(play))(actions) for play in (by_rounds, by_blocks))
    for one, other in zip(jax.tree.leaves(rounds), jax.tree.leaves(blocks), strict=True):
        assert (one == other).all()
    alone = jax.jit(by_rounds)(actions[0])
    assert (alone.borda.total == rounds.borda.total[0]).all()


@pytest.mark.parametrize(("dtype", "num_arms"), [(jnp.int8, 16), (jnp.int8, 200), (jnp.int32, 16), (jnp.uint32, 16)])
def test_arms_of_any_integer_type(dtype, num_arms):
    """Checks 16 arms, with more pairs than an int8 counts, and 200 arms; a duel with an arm outside has no regret."""
    utilities = np.linspace(3, 0, num_arms)
    environment = utility_duels(utilities)
    assert environment.block is not None
    params, world = start(environment)
    for left, right in [(15, 15), (14, 3), (-1, 0), (16, 15)] if dtype != jnp.uint32 else [(2, 3), (2**31 + 5, 1)]:
        action = jnp.array([left, right], dtype)
        one = environment.feedback(KEY(), params, world, action)[2]["pseudo_regret"]
        many = environment.block(KEY()[None], params, world, None, action[None])[2]["pseudo_regret"][0]
        inside = 0 <= left < num_arms and 0 <= right < num_arms
        expected = 2 * utilities.max() - utilities[[left, right]].sum() if inside else math.nan
        np.testing.assert_allclose([one, many], expected, rtol=1e-6)


@pytest.mark.parametrize("action", [(3, 0), (0, 3), (-1, 0), (0, 2**31 - 1)])
@pytest.mark.parametrize("make", [lambda: matrix_duels(MATRIX), lambda: switching_duels([MATRIX, MATRIX], [0, 1])])
def test_an_arm_outside_has_no_regret(make, action):
    """Checks rounds and blocks, and the comparison in hindsight."""
    environment = make()
    params, world = start(environment)
    action = jnp.asarray(action, jnp.int32)
    after, _, outcome = environment.feedback(KEY(), params, world, action)
    _, _, outcomes = environment.block(KEY()[None], params, world, None, action[None])
    for name in params.regrets:
        assert jnp.isnan(outcome[name])
        assert jnp.isnan(outcomes[name]).all()
    assert not outcome["best_duels"]
    if environment.hindsight:
        assert all(jnp.isnan(value) for value in environment.hindsight(params, after).values())


def test_preferences_switch():
    """Lets arm 0 win always, then never; regret compares with the best fixed arm over all rounds so far."""
    first = np.array([[0.5, 1.0], [0.0, 0.5]])
    environment = switching_duels([first, first.T], [0, 6])
    params, world = start(environment)
    won, static, borda = [], [], []
    for t in range(10):
        world, answer, _ = environment.feedback(
            jax.random.fold_in(KEY(), t), params, world, jnp.array([0, 1], jnp.int32)
        )
        assert environment.hindsight is not None
        metrics = environment.hindsight(params, world)
        won.append(int(answer))
        static.append(float(metrics["static_regret"]))
        borda.append(float(metrics["static_borda_regret"]))
    assert won == [1] * 6 + [0] * 4
    # P[0, left] + P[0, right] - 1 is 1/2 while arm 0 is the best, and then -1/2
    lead = np.cumsum([0.25] * 6 + [-0.25] * 4)
    np.testing.assert_allclose(static, np.maximum(lead, -lead), atol=1e-6)
    np.testing.assert_allclose(borda, np.maximum(lead, -lead) * 2, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: matrix_duels([[0.5, 0.6], [0.6, 0.5]]), r"preference_matrix must have P\[i, j\] \+ P\[j, i\] = 1"),
        (lambda: matrix_duels(MATRIX, regret="sum"), r"regret must be one of strong, weak, borda, got 'sum'"),
        (
            lambda: matrix_duels(cyclic_matrix(3)),
            r"regret must be borda for .* without a Condorcet winner, got 'strong'",
        ),
        (lambda: utility_duels([0.0]), r"utilities must be a vector of at least two arms"),
        (lambda: utility_duels([0.0, 1.0], link="cauchit"), r"link must be one of logistic, probit, got 'cauchit'"),
        (lambda: utility_duels([0.0, 1.0], link=None), r"link must be a Link or the name of a link, got None"),  # pyright: ignore[reportArgumentType]
        (lambda: utility_duels([0.0, math.inf]), r"utilities must be finite, got inf"),
        (lambda: switching_duels([MATRIX], 0), r"starts must be a list, got 0"),  # pyright: ignore[reportArgumentType]
        (lambda: switching_duels(None, [0]), r"preference_matrices must be a list, got None"),  # pyright: ignore[reportArgumentType]
        (lambda: switching_duels([], []), r"preference_matrices must hold at least one matrix, got none"),
        (
            lambda: switching_duels([MATRIX, lower_bound_matrix(2)], [0, 5]),
            r"must have one shape, got \(3, 3\) and then",
        ),
        (lambda: switching_duels([MATRIX, MATRIX], [0]), r"starts must be 2 increasing rounds, .*, got \[0\]"),
        (lambda: switching_duels([MATRIX, MATRIX], [0, 0]), r"starts must be 2 increasing rounds"),
        (lambda: switching_duels([MATRIX], [1]), r"starts must be 1 increasing rounds, .* got \[1\]"),
        (lambda: switching_duels([MATRIX], [-1]), r"starts\[0\] must be an integer >= 0, got -1"),
        (lambda: switching_duels([MATRIX, [[0.5]]], [0, 1]), r"preference_matrices\[1\] must be a square matrix"),
    ],
)
def test_bad_instances(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_numbers_that_float32_cannot_hold():
    if jax.config.read("jax_enable_x64"):
        pytest.skip("float64 holds them")
    with pytest.raises(ValueError, match=r"utilities must have twice their largest difference, .* range of float32"):
        utility_duels([3e38, -3e38])


def test_a_bandit_is_no_dueling_bandit():
    with pytest.raises(ValueError, match="action must be the same for learner and environment"):
        jaxdp.simulator(jaxdp.dueling.ebs_phased(num_arms=2), jaxdp.bandits.bernoulli_bandit([0.1, 0.2]), 4)


def test_an_arm_as_an_answer():
    environment = matrix_duels(MATRIX)
    params, world = start(environment)
    assert environment.evaluate is not None
    judged = [environment.evaluate(params, world, jnp.int32(arm)) for arm in range(3)]
    assert [bool(each["correct"]) for each in judged] == [True, False, False]
    np.testing.assert_allclose([each["simple_regret"] for each in judged], [0, 2 * 0.2, 2 * 0.5], rtol=1e-6)
