"""Shifting losses: when the good expert changes, the distribution of losses, and many rounds at once."""

import functools
import itertools
import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits import bernoulli_bandit
from jaxdp.experts import alternating_losses, loss_sequence, lower_bound_losses, sample_losses, shifting_losses

KEY = partial(jax.random.key, 53)
SIZES: dict[str, Any] = {"num_experts": 4, "horizon": 60}


def begin(environment, key=None, **values):
    params = jax.tree.map(jnp.asarray, environment.params(**values))
    return params, environment.init(KEY() if key is None else key, params)


def worlds_of(environment, lanes, **values):
    params = environment.params(**values)
    return jax.jit(jax.vmap(lambda key: environment.init(key, params)))(jax.random.split(KEY(), lanes))


def losses_at(environment, round_, draws=20_000, **values):
    params, world = begin(environment, **values)
    world = world._replace(round=jnp.asarray(round_, world.round.dtype))
    answer = jax.jit(jax.vmap(lambda key: environment.feedback(key, params, world, jnp.int32(0))[1:]))
    return jax.tree.map(np.asarray, answer(jax.random.split(KEY(), draws)))


def check_means(draws, means):
    errors = draws.std(0) / math.sqrt(len(draws))
    assert (np.abs(draws.mean(0) - means) <= 5 * errors + 1e-9).all()


@pytest.mark.parametrize("distribution", ["bernoulli", "beta"])
def test_each_segment_has_its_good_expert(distribution):
    environment = shifting_losses(**SIZES, shift_times=[20, 25], good_experts=[3, 1, 3], distribution=distribution)
    for round_, good in ((0, 3), (19, 3), (20, 1), (24, 1), (25, 3), (59, 3)):
        losses, outcome = losses_at(environment, round_, 5_000, gap=0.3)
        means = np.where(np.arange(4) == good, 0.2, 0.5)
        check_means(losses, means)
        with pytest.raises(AssertionError):
            check_means(losses, np.roll(means, 1))
        np.testing.assert_array_equal(outcome["loss"], losses[:, 0])
        np.testing.assert_allclose(outcome["pseudo_regret"], 0.3, rtol=1e-6)
        np.testing.assert_allclose(outcome["planted_regret"], losses[:, 0] - losses[:, good], rtol=1e-6)
        if distribution == "beta":
            variances = means * (1 - means) / 11
            np.testing.assert_allclose(losses.var(0), variances, rtol=5 * math.sqrt(3 / len(losses)))
            assert 0 < losses.min() < losses.max() < 1


def test_equal_segments_as_a_value():
    environment = shifting_losses(**SIZES, num_shifts=5)
    assert environment.params().shift_times.tolist() == [10, 20, 30, 40, 50]
    assert environment.params(num_shifts=2).shift_times.tolist() == [20, 40, 60, 60, 60]
    assert environment.params(num_shifts=0).shift_times.tolist() == [60] * 5
    two, five = (begin(environment, num_shifts=shifts)[1].good_experts for shifts in (2, 5))
    assert two.tolist() == five.tolist()  # of one key


@pytest.mark.always
def test_drawn_times_are_ascending_rounds():
    times = worlds_of(shifting_losses(num_experts=2, horizon=6, num_shifts=3, shift_times="drawn"), 20).shift_times
    assert times.shape == (20, 3)
    assert (np.diff(times, prepend=0, append=6) > 0).all()


def test_drawn_times_are_all_sets_of_rounds():
    environment = shifting_losses(num_experts=2, horizon=6, num_shifts=3, shift_times="drawn")
    lanes = 20_000
    times = np.asarray(worlds_of(environment, lanes, num_shifts=2).shift_times)
    assert (times[:, 2] == 6).all()
    sets = list(itertools.combinations(range(1, 6), 2))
    shares = [(times[:, :2] == each).all(1).mean() for each in sets]
    assert sum(shares) == pytest.approx(1)
    error = math.sqrt(0.1 * 0.9 / lanes)
    assert np.abs(np.array(shares) - 0.1).max() < 5 * error
    all_rounds = worlds_of(shifting_losses(num_experts=2, horizon=4, num_shifts=3, shift_times="drawn"), 5)
    assert all_rounds.shift_times.tolist() == [[1, 2, 3]] * 5


def test_drawn_experts_differ_from_the_one_before():
    lanes = 20_000
    good = np.asarray(worlds_of(shifting_losses(**SIZES, num_shifts=2), lanes).good_experts)
    assert good.dtype == np.int32
    assert (good[:, 1:] != good[:, :-1]).all()
    error = math.sqrt(0.25 * 0.75 / lanes)
    for segment in range(3):
        assert np.abs(np.bincount(good[:, segment], minlength=4) / lanes - 0.25).max() < 5 * error
    steps = (good[:, 1:] - good[:, :-1]) % 4
    assert np.abs(np.bincount(steps.ravel(), minlength=4)[1:] / steps.size - 1 / 3).max() < 5 * error


def test_phases_have_experts_of_their_own():
    environment = lower_bound_losses(num_experts=7, horizon=60, num_phases=3)
    good = np.asarray(worlds_of(environment, 500).good_experts)
    assert [set(column.tolist()) for column in good.T] == [{0, 1}, {2, 3}, {4, 5, 6}]
    losses = sample_losses(environment, KEY())
    assert losses.shape == (60, 7)
    assert losses.dtype == np.uint8
    good_ones = (losses.reshape(3, 20, 7).sum(1) == 0).nonzero()
    assert good_ones[0].tolist() == [0, 1, 2]
    ones = sample_losses(environment, KEY(), gap=1, other_mean=1)
    assert ones.sum() == 60 * 6
    assert str(environment).startswith("lower_bound_losses(")


def test_a_larger_gap_never_raises_a_loss():
    environment = shifting_losses(**SIZES, num_shifts=3, shift_times="drawn")
    small, large = (sample_losses(environment, KEY(), gap=gap) for gap in (0.1, 0.4))
    assert (large <= small).all()
    assert (large < small).any(1).sum() > 2
    assert ((large < small).sum(1) <= 1).all()  # the good one's alone


@pytest.mark.parametrize(
    "options",
    [
        {"num_shifts": 3},
        {"num_shifts": 3, "shift_times": "drawn", "num_switches": 2},
        {"shift_times": [3], "distribution": "beta", "num_switches": 0},
    ],
)
def test_a_block_is_its_rounds_bit_for_bit(options):
    check_block(shifting_losses(num_experts=4, horizon=12, **options))


def check_block(environment, rounds=12):
    params, world = begin(environment)
    keys = jax.random.split(jax.random.fold_in(KEY(), 1), rounds)
    actions = jnp.arange(rounds, dtype=jnp.int32) % 4
    worlds, losses, outcomes = jax.jit(environment.block)(keys, params, world, None, actions)
    feedback = jax.jit(environment.feedback)
    for index in range(rounds):
        world, *shown = feedback(keys[index], params, world, actions[index])
        here = jax.tree.map(lambda leaf, i=index: leaf[i], (worlds, losses, outcomes))
        for one, other in zip(jax.tree.leaves((world, *shown)), jax.tree.leaves(here), strict=True):
            np.testing.assert_array_equal(one, other)


def totals_by_rounds(environment, actions, lanes, first):
    """Sums of losses and outcomes of lanes that play these actions from round `first` on."""
    params, world = begin(environment)
    world = world._replace(round=jnp.asarray(first, world.round.dtype))

    def one(key):
        _, losses, outcome = environment.block(jax.random.split(key, len(actions)), params, world, None, actions)
        return losses.sum(0), jax.tree.map(jnp.sum, outcome)

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(jax.random.split(KEY(), lanes)))


def totals_at_once(environment, counts, lanes, first):
    params, world = begin(environment)
    world = world._replace(round=jnp.asarray(first, world.round.dtype))
    feedback_totals = jax.jit(
        jax.vmap(lambda key: environment.feedback_totals(key, params, world, jnp.asarray(counts, world.round.dtype)))
    )
    after, *found = feedback_totals(jax.random.split(jax.random.fold_in(KEY(), 1), lanes))
    assert (after.round == first + sum(counts)).all()
    return jax.tree.map(np.asarray, found)


def check_same_distribution(one, other, lanes):
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        left, right = left.astype(float), right.astype(float)
        spread = np.maximum(left.std(0), 1e-4)
        assert (np.abs(left.mean(0) - right.mean(0)) < 5 * spread * math.sqrt(2 / lanes)).all()
        assert (np.abs(left.std(0) / spread - right.std(0) / spread) < 5 * math.sqrt(2 / lanes)).all()


ENVIRONMENT = functools.cache(
    lambda: shifting_losses(num_experts=4, horizon=60, shift_times=[10, 14], good_experts=[1, 2, 0], gap=0.4)
)


@pytest.mark.parametrize(("counts", "first"), [([0, 20, 0, 0], 3), ([3, 4, 0, 2], 20), ([2, 3, 0, 0], 5)])
def test_feedback_totals_have_the_distribution_of_rounds(counts, first):
    lanes = 4000
    actions = jnp.asarray(np.repeat(np.arange(4), counts), jnp.int32)
    rounds = totals_by_rounds(ENVIRONMENT(), actions, lanes, first)
    tallies = totals_at_once(ENVIRONMENT(), counts, lanes, first)
    assert np.issubdtype(tallies[0].dtype, np.integer)
    check_same_distribution(rounds, tallies, lanes)
    if first == 3:  # a world that knows no shifts has another distribution
        still = shifting_losses(num_experts=4, horizon=60, num_shifts=0, good_experts=[1], gap=0.4)
        with pytest.raises(AssertionError):
            check_same_distribution(rounds, totals_at_once(still, counts, lanes, first), lanes)


def test_feedback_totals_do_not_guess_who_was_played_when():
    losses, outcomes = totals_at_once(ENVIRONMENT(), [5, 15, 0, 0], 4000, 3)
    check_same_distribution(totals_by_rounds(ENVIRONMENT(), jnp.zeros(20, jnp.int32), 4000, 3)[0], losses, 4000)
    assert all(np.isnan(value).all() for value in outcomes.values())


def test_no_feedback_totals_of_beta_losses():
    assert shifting_losses(**SIZES, num_shifts=1, distribution="beta").feedback_totals is None
    assert shifting_losses(**SIZES, num_shifts=1, num_switches=1).feedback_totals is None


def test_drawn_losses_as_a_sequence():
    beta = shifting_losses(**SIZES, num_shifts=1, distribution="beta")
    losses = sample_losses(beta, KEY())
    assert losses.dtype == jax.dtypes.canonicalize_dtype(float)
    assert loss_sequence(losses, num_switches=1).horizon == 60
    assert sample_losses(beta, KEY(), horizon=5).tolist() == losses[:5].tolist()
    with pytest.raises(ValueError, match="horizon must be <= 60, the environment's, got 61"):
        sample_losses(beta, KEY(), horizon=61)


def test_alternating_losses():
    losses = alternating_losses(num_experts=3, horizon=6, period=2)
    assert losses.tolist() == [[0.5, 0, 0.5]] * 2 + [[0, 1, 0]] * 2 + [[1, 0, 1]] * 2
    assert losses.dtype == np.float16
    with pytest.raises(ValueError, match="period must be an integer >= 1, got 0"):
        alternating_losses(num_experts=3, horizon=6, period=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_experts": 1, "num_shifts": 1}, "num_experts must be an integer >= 2, got 1"),
        ({"horizon": 0, "num_shifts": 0}, "horizon must be an integer >= 1, got 0"),
        ({}, "num_shifts must be an integer >= 0, got None"),
        ({"num_shifts": 60}, r"num_shifts must be an integer in \[0, 59\], got 60"),
        ({"num_shifts": 2, "shift_times": [3]}, "num_shifts must be None or the number of shift_times, 1, got 2"),
        ({"shift_times": [3, 3]}, r"shift_times must be ascending, in \[1, horizon = 60\), got \[3, 3\]"),
        ({"shift_times": [60]}, r"shift_times must be ascending, in \[1, horizon = 60\), got \[60\]"),
        ({"shift_times": [0]}, "shift_times must be an integer >= 1, got 0"),
        ({"shift_times": 5}, "shift_times must be a list, got 5"),
        ({"num_shifts": 1, "good_experts": 3}, "good_experts must be a list, got 3"),
        ({"num_shifts": 1, "shift_times": "even"}, "shift_times must be one of equal, drawn, got 'even'"),
        ({"num_shifts": 1, "good_experts": [1, 1]}, "good_experts must be 2 of 4 experts with different neighbours"),
        ({"num_shifts": 1, "good_experts": [1, 4]}, "good_experts must be 2 of 4 experts with different neighbours"),
        ({"num_shifts": 1, "good_experts": [1]}, "good_experts must be 2 of 4 experts with different neighbours"),
        ({"num_shifts": 4, "good_experts": "own_parts"}, "own_parts must have an expert for each of 5 segments, got 4"),
        ({"num_shifts": 1, "distribution": "normal"}, "distribution must be one of bernoulli, beta, got 'normal'"),
        ({"num_shifts": 1, "gap": 0.6}, "gap must be <= other_mean = 0.5, got 0.6"),
        ({"num_shifts": 1, "gap": 0}, "gap must be > 0, got 0"),
        ({"num_shifts": 1, "gap": math.nan}, "gap must be > 0, got nan"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        shifting_losses(**{**SIZES, **options})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_shifts": 3}, r"num_shifts must be an integer in \[0, 2\], got 3"),
        ({"other_mean": 1.2}, r"other_mean must be in \[0, 1\], got 1.2"),
        ({"other_mean": math.nan}, "other_mean must be > 0, got nan"),
        (
            {"concentration": 1},
            r"concentration must make the parameters m c and \(1 - m\) c of Beta distributions >= 1",
        ),
        ({"gap": 0.5}, "concentration must make the parameters"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        shifting_losses(**SIZES, num_shifts=2, distribution="beta").params(**values)


def test_values_that_do_not_matter_are_refused():
    with pytest.raises(TypeError, match="num_shifts"):
        shifting_losses(**SIZES, shift_times=[5]).params(num_shifts=1)
    with pytest.raises(TypeError, match="concentration"):
        shifting_losses(**SIZES, num_shifts=1).params(concentration=5)


def test_errors_name_arguments_of_the_lower_bound():
    for num_phases, horizon in ((4, 3), (5, 100)):
        with pytest.raises(ValueError, match=rf"^num_phases must be <= {min(4, horizon)}, got {num_phases}"):
            lower_bound_losses(num_experts=4, horizon=horizon, num_phases=num_phases)


def test_environments_without_losses_are_refused():
    with pytest.raises(ValueError, match=r"^environment must have losses of experts"):
        sample_losses(bernoulli_bandit([0.2, 0.5]), KEY(), horizon=5)
