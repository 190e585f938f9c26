"""Elimination by effective Borda scores: its radii, its removals, blocks, its promise, and errors."""

import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import ebs_elimination, utility_duels
from jaxdp.dueling._ebs_elimination import arms as ebs_arms
from jaxdp.dueling._ebs_elimination import calibration
from jaxdp.dueling._ebs_elimination import counters as ebs_counters
from jaxdp.dueling._ebs_elimination.radii import noise_lines, score_radii
from jaxdp.mechanisms import tree_radius
from jaxdp.mechanisms.continual_counting import nodes as tree
from jaxdp.mechanisms.continual_counting.arity import level_variances
from jaxdp.mechanisms.continual_counting.noise import node_noise

KEY = partial(jax.random.key, 101)


# ---- radii -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [2, 4])
def test_radii_of_scores_are_the_best_of_lines_stitched_together(size):
    num_arms, horizon, failure_prob, squares = 4, 900, 0.1, []
    for epochs in range(1, 13):
        x = math.log(epochs * 4 * 3 * math.comb(3, size - 1) / failure_prob)
        ratio = horizon ** (1 / epochs)
        times, best_at = np.arange(1, horizon + 1)[:, None], ratio ** (np.arange(epochs) + 0.5)
        lines = np.sqrt(x / 2) * (np.sqrt(best_at / times) + np.sqrt(times / best_at)) / 2  # over sqrt(n)
        squares.append(lines.min(1).max() ** 2)
    assert score_radii(num_arms, horizon, failure_prob)[size] == pytest.approx(min(squares))


@pytest.mark.parametrize(("arity", "horizon"), [(2, 60), (4, 1000), (15, 10**7)])
def test_lines_of_noise_hold_and_are_nearly_tight(arity, horizon):
    levels = math.floor(math.log(horizon, arity)) + 1
    failure_prob = 1e-6
    lines = noise_lines(
        arity=arity,
        levels=levels,
        combine=True,
        noise="laplace",
        scale=float(levels),
        quantum=0.0,
        failure_prob=failure_prob,
    )
    times = np.unique(np.geomspace(1, horizon, 60).astype(int))
    digits = times[:, None] // arity ** np.arange(levels) % arity
    # The line in use is the lowest one at half of the leaves.
    half = np.concatenate([np.full((len(times), 1), arity // 2), digits[:, 1:]], axis=1)
    chosen = (lines.intercepts + half @ lines.slopes).argmin(1)
    found = (lines.intercepts + digits @ lines.slopes)[np.arange(len(times)), chosen]
    exact = tree_radius(times, horizon=horizon, epsilon=1.0, failure_prob=2 * failure_prob, arity=arity)
    assert (found >= exact * (1 - 1e-9)).all()
    if arity > 2:  # of two leaves one is half: then the linear form costs a fifth
        assert np.median(found / exact) <= 1.01
        assert (found <= 1.3 * exact).all()  # where the prefix is but a few blocks


def test_a_gaussian_line_is_the_quantile():
    lines = noise_lines(arity=3, levels=3, combine=False, noise="gaussian", scale=2.0, quantum=0.0, failure_prob=1e-3)
    spread = 2.0 * 3.0902323 * math.sqrt(3)  # one and a half blocks of the lowest level, and of the next
    assert (lines.intercepts + lines.slopes[:2].sum(0) * 1.5).min() == pytest.approx(spread, rel=1e-6)


@pytest.mark.parametrize("arity", [2, 5])
def test_lines_of_noise_cover_rounding(arity):
    """Compares with the counter's own arithmetic, with every node rounded by the largest possible amount, in one
    direction.
    """
    levels = 4
    horizon = arity**levels - 1
    variances = level_variances(arity, levels, True)

    def step(nodes, _):
        done = tree.ending_blocks(nodes, jnp.asarray(0), jnp.asarray(True), arity)
        nodes = tree.advance(nodes, done, tree.combine_estimates(nodes, jnp.ones(levels), variances))
        return nodes, nodes.estimates.sum()

    worst = jax.lax.scan(step, tree.empty(levels, (), (), int, float), length=horizon)[1].max()
    found = [
        noise_lines(
            arity=arity,
            levels=levels,
            combine=True,
            noise="laplace",
            scale=1.0,
            quantum=quantum,
            failure_prob=0.01,
        ).intercepts
        for quantum in (0.0, 2.0)
    ]
    np.testing.assert_allclose(found[1] - found[0], worst, rtol=1e-5)


def ever_off(radius, num_runs=400, rounds=3000):
    """Returns how often a sum of fair bits is too high at any time."""
    bits = np.random.default_rng(0).integers(0, 2, (num_runs, rounds), dtype=np.int8) - 0.5
    times = np.arange(1, rounds + 1)
    return np.mean((bits.cumsum(1) >= radius * np.sqrt(times)).any(1))


def test_shares_of_wins_are_within_their_radius_at_all_times():
    """Checks the two arms and the one set of K = 2: each fails with half of the probability."""
    for failure_prob in (0.5, 0.1):
        radius = math.sqrt(score_radii(2, 3000, failure_prob)[2])
        spread = 5 * math.sqrt(failure_prob / 2 / 400)
        assert ever_off(radius) <= failure_prob / 2 + spread
        assert ever_off(radius / 3) > failure_prob / 2 + spread  # planted


def test_tables_of_the_two_constants():
    paper = ebs_elimination(num_arms=4, horizon=1000, constants="paper").params(epsilon=0.5, failure_prob=0.1)
    events = math.log(4 * 1000 / 0.1)
    assert paper.squared_radius[3] == pytest.approx(events, rel=1e-6)
    assert paper.intercepts[0] == pytest.approx(16 * events * math.log(1000) ** 2.5 / 0.5, rel=1e-4)
    assert (paper.slopes == 0).all()
    tight = ebs_elimination(num_arms=4, horizon=1000).params(epsilon=0.5, failure_prob=0.1)
    assert (tight.squared_radius < paper.squared_radius)[2:].all()
    assert float(tight.noise.epsilon) == 0.25
    gaussian = ebs_elimination(num_arms=4, horizon=1000, noise="gaussian", arity=11).params(epsilon=0.5, delta=1e-5)
    assert gaussian.noise.l2_sensitivity == pytest.approx(math.sqrt(2 * 3))  # three levels


def test_half_of_the_failure_probability_is_for_the_counters(monkeypatch):
    """Checks that each counter at each of its clocks has an equal share of it."""
    shares = []

    def note_shares(**values):
        shares.append(values["failure_prob"])
        return noise_lines(**values)

    monkeypatch.setattr(calibration, "noise_lines", note_shares)
    ebs_elimination(num_arms=4, horizon=1000).params(epsilon=0.5, failure_prob=0.1)
    assert shares == [pytest.approx(0.1 / 2 / (4 * (1000 + 4)), rel=1e-12)]


# ---- removals --------------------------------------------------------------------------------------------------------
def estimates_and_wins(num_rounds=200):
    """Returns, after each round without noise, the counters' values for active arms, and their wins over active
    ones.
    """
    learner = ebs_elimination(num_arms=4, horizon=200, arity=3)
    duels = utility_duels([2.0, 1.0, 0.0, -1.0])
    params = {
        "learner": jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf, confidence_multiplier=0.3)),
        "environment": jax.tree.map(jnp.asarray, duels.params()),
    }

    def step(state, key):
        key_act, key_world, key_update = jax.random.split(key, 3)
        mine = params["learner"]
        action = learner.act(key_act, mine, state.public, None)
        _, won, _ = duels.feedback(key_world, params["environment"], (), action)
        after = learner.update(key_update, mine, state, (action, won))
        counted = after.public.estimates.sum(0)
        # The removal of what this round dropped comes with the next one.
        active = state.public.active & after.public.active
        wins = jnp.sum(jnp.where(state.public.active[None, :], after.private.wins, 0), axis=1)
        return after, (jnp.where(active, counted, 0), jnp.where(active, wins, 0), after.public.active)

    _, found = jax.lax.scan(
        step, learner.init(jax.random.key(1), params["learner"]), jax.random.split(KEY(), num_rounds)
    )
    return tuple(np.asarray(column) for column in found)


def apart_if_reversed(lanes=3000):
    """Returns the largest difference of shares of duels and of drops, in standard errors, if arms are reversed."""
    learner = ebs_elimination(num_arms=3, horizon=22)  # it ends within a sweep
    record = {"plays": lambda snapshot: snapshot.public.plays.sum(1), "active": lambda snapshot: snapshot.public.active}
    worlds, found = [utility_duels(utilities) for utilities in ([2.0, 0.0, 0.0], [0.0, 0.0, 2.0])], []
    run = jaxdp.simulator(learner, worlds[0], 22, record=record, engine="rounds")
    go, params = jax.jit(jax.vmap(run, (0, None))), run.params(epsilon=math.inf, confidence_multiplier=0.4)
    for world in worlds:
        keys = jax.random.split(jax.random.fold_in(KEY(), len(found)), lanes)
        outputs = go(keys, {**params, "environment": world.params()})
        found.append({name: np.asarray(outputs[name], float)[:, -1] for name in record})
    scores = []
    for name in record:
        first, second = found[0][name], found[1][name][:, ::-1]
        error = np.sqrt((first.var(0) + second.var(0)) / lanes)
        scores.append(np.max(np.abs(first.mean(0) - second.mean(0)) / np.maximum(error, 1e-9)))
    assert 0.1 < 1 - found[0]["active"].mean() < 0.6  # drops are frequent
    return max(scores)


def test_duels_and_drops_do_not_depend_on_the_order_of_arms(monkeypatch):
    assert apart_if_reversed() < 5
    monkeypatch.setattr(ebs_arms, "random_turns", lambda key, num_arms: jnp.arange(num_arms, dtype=jnp.int32))
    assert apart_if_reversed() > 5  # planted: turns by number


def check_removals():
    counted, wins, active = estimates_and_wins()
    sizes = active.sum(1)
    assert sizes[-1] == 1
    assert len(np.unique(sizes)) >= 3
    played = np.concatenate([[True], sizes[:-1] > 1])
    np.testing.assert_allclose(counted[played], wins[played], atol=1e-3)


def test_a_removal_takes_all_wins_over_the_dropped_arms(monkeypatch):
    check_removals()
    # Planted: as printed, every arm that is left loses one win.
    whole = ebs_counters.remove

    def one(trees, key, params, public, private):
        return whole(trees, key, params, public, private._replace(wins=jnp.ones_like(private.wins)))

    monkeypatch.setattr(ebs_counters, "remove", one)
    with pytest.raises(AssertionError):
        check_removals()


def check_noise_of_removals(noise, lanes=20_000):
    """Checks binary trees in which the entry is a leaf of the first arm, ends two levels of the second, and three
    of the third.
    """
    levels, integer = 3, jnp.result_type(int)
    trees = ebs_counters.Trees(2, level_variances(2, levels, True), node_noise(noise, levels), noise)
    learner = ebs_elimination(num_arms=4, horizon=3, arity=2, noise=noise)
    params = learner.params(epsilon=1.0, **({} if noise == "laplace" else {"delta": 1e-3}))
    digits = jnp.array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]], jnp.int32)
    sums, lost = 5 * digits.astype(integer), jnp.array([3, 2, 1, 0])
    public = ebs_arms.Public(
        active=jnp.arange(4) < 3,
        dropped=jnp.arange(4) == 3,
        plays=jnp.zeros((4, 4), integer),
        digits=digits,
        estimates=sums.astype(jnp.result_type(float)),
        tie_rank=jnp.arange(4, dtype=jnp.int32),
    )
    private = ebs_arms.Private(jnp.zeros((4, 4), integer).at[:, 3].set(lost), sums)
    remove = jax.jit(lambda keys: jax.vmap(lambda key: ebs_counters.remove(trees, key, params, public, private))(keys))
    after = remove(jax.random.split(KEY(), lanes))
    np.testing.assert_array_equal(after.digits[0], [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    errors = np.asarray(after.estimates, np.float64).sum(1)[:, :3] - np.asarray(sums.sum(0) - lost)[:3]
    variances = [1.0]  # in units of a node's: children that ended before were exact
    for own in trees.variances[1:]:
        variances.append(own**2 + (1 - own) ** 2 * variances[-1])
    variances = float(trees.noise.variance(params.noise)) * np.asarray(variances)
    assert (np.abs(errors.mean(0)) <= 5 * np.sqrt(variances / lanes)).all()
    assert (np.abs(errors.var(0) / variances - 1) <= 5 * math.sqrt(5 / lanes)).all()  # kurtosis at most Laplace's
    assert (np.abs(np.corrcoef(errors.T) - np.eye(3)) <= 5 / math.sqrt(lanes)).all()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_every_node_of_a_removal_has_noise_of_its_own(monkeypatch, noise):
    check_noise_of_removals(noise)
    right, feed = ebs_counters._record_and_draw, ebs_counters.feed

    def exact_inner_nodes(trees, key, params, sums, shape, nodes):
        value, drawn = right(trees, key, params, sums, shape, nodes)
        return value, jnp.zeros_like(drawn) if len(shape) == 2 else drawn

    def one_noise(*arguments, shared):
        return feed(*arguments, shared=True)

    for name, wrong in (("_record_and_draw", exact_inner_nodes), ("feed", one_noise)):
        with monkeypatch.context() as patch:
            patch.setattr(ebs_counters, name, wrong)
            with pytest.raises(AssertionError):
                check_noise_of_removals(noise)


# ---- its promise -----------------------------------------------------------------------------------------------------
@functools.cache
def program(num_arms, horizon):
    """Builds a run, and the run of many lanes, compiled once."""
    utilities = np.concatenate([[1.0], np.zeros(num_arms - 1)])
    learner = ebs_elimination(num_arms=num_arms, horizon=horizon)
    run = jaxdp.simulator(
        learner, utility_duels(utilities), horizon, record={"active": lambda snapshot: snapshot.public.active}
    )
    return run, jax.jit(jax.vmap(run, (0, None)))


@functools.cache
def kept(num_arms, horizon, epsilon, multiplier, lanes):
    """Returns how often the best arm stays, and how often it is alone at the end."""
    run, go = program(num_arms, horizon)
    params = run.params(epsilon=epsilon, failure_prob=0.1, confidence_multiplier=multiplier)
    active = np.asarray(go(jax.random.split(KEY(), lanes), params)["active"])[:, -1]
    return active[:, 0].mean(), (active.sum(1) == 1).mean()


def check_kept(lanes, **options):
    spread = 5 * math.sqrt(0.1 * 0.9 / lanes)
    stays, alone = kept(lanes=lanes, multiplier=1.0, **options)
    assert stays >= 0.9 - spread
    assert alone > 0.5
    stays, _ = kept(lanes=lanes, multiplier=0.1, **options)  # planted
    assert stays < 0.9 - spread


@pytest.mark.optimised
def test_the_best_arm_stays():
    check_kept(300, num_arms=3, horizon=2500, epsilon=20.0)


def test_the_best_arm_stays_in_many_runs():
    check_kept(10_000, num_arms=4, horizon=20_000, epsilon=4.0)


def last_drop(constants, lanes=16, horizon=10**7):
    """Returns the median round by which one of eight arms is left; infinite if that is not by the horizon."""
    learner = ebs_elimination(num_arms=8, horizon=horizon, constants=constants, arity=16)
    looks = np.unique(np.geomspace(1000, horizon, 200).astype(int)).tolist()
    left = {"left": lambda snapshot: snapshot.public.active.sum()}
    duels = utility_duels(np.linspace(1, 0, 8))
    run = jaxdp.simulator(learner, duels, horizon, checkpoints=looks, record=left, engine="blocks")
    outputs = jax.jit(jax.vmap(run, (0, None)))(jax.random.split(KEY(), lanes), run.params(epsilon=1.0))
    sizes = np.asarray(outputs["left"])
    return np.median(np.asarray([*looks, np.inf])[(sizes > 1).sum(1)])


def test_drops_come_twenty_times_as_early_as_with_the_papers_constants():
    """Checks that with the paper's constants no lane drops the last arm but one by the horizon."""
    assert 20 * last_drop("tight") <= 10**7
    assert last_drop("paper") == np.inf


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": 0.0}, r"epsilon must be > 0, got 0.0"),
        ({"epsilon": math.nan}, r"epsilon must be > 0, got nan"),
        ({"epsilon": 1.0, "failure_prob": 0.0}, r"failure_prob must be in \(0, 1\), got 0.0"),
        ({"epsilon": 1.0, "failure_prob": 1.0}, r"failure_prob must be in \(0, 1\), got 1.0"),
        ({"epsilon": 1.0, "failure_prob": math.nan}, r"failure_prob must be in \(0, 1\), got nan"),
        ({"epsilon": 1.0, "confidence_multiplier": 0.0}, r"confidence_multiplier must be > 0, got 0.0"),
        ({"epsilon": 1.0, "confidence_multiplier": math.inf}, r"confidence_multiplier must be finite, got inf"),
        ({"epsilon": 1.0, "failure_prob": 5e-324}, r"failure_prob must be larger: .*, got 5e-324"),
        (
            {"epsilon": 1.0, "confidence_multiplier": 1e200},
            r"bounds within the range of float.*, got 1.0 and 1e\+200",
        ),
        ({"epsilon": 1.0, "confidence_multiplier": 1e-200}, r"bounds within the range of float.* and 1e-200"),
    ],
)
def test_value_errors(values, message):
    learner = ebs_elimination(num_arms=2, horizon=10)
    for function in (learner.params, learner.guarantee):
        with pytest.raises(ValueError, match=message):
            function(**values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_arms": 1}, r"num_arms must be an integer >= 2, got 1"),
        ({"horizon": 0}, r"horizon must be an integer >= 1, got 0"),
        ({"horizon": math.nan}, r"horizon must be an integer >= 1, got nan"),
        ({"horizon": 2**63 - 1}, r"horizon must be <= "),
        ({"constants": "loose"}, r"constants must be one of tight, paper, got 'loose'"),
        ({"noise": "uniform"}, r"noise must be one of laplace, gaussian, got 'uniform'"),
        ({"arity": 1}, r"arity must be an integer >= 2, got 1"),
        ({"noise": "gaussian", "constants": "paper"}, r"constants must be 'tight' with Gaussian noise, got 'paper'"),
    ],
)
def test_factory_errors(options, message):
    with pytest.raises(ValueError, match=message):
        ebs_elimination(**{"num_arms": 2, "horizon": 10, **options})


def test_delta_is_for_gaussian_noise():
    with pytest.raises(TypeError, match=r"delta"):
        ebs_elimination(num_arms=2, horizon=10).params(epsilon=1.0, delta=1e-3)
    gaussian = ebs_elimination(num_arms=2, horizon=10, noise="gaussian")
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\), got 0.0"):
        gaussian.params(epsilon=1.0, delta=0.0)
    with pytest.raises(TypeError, match=r"ebs_elimination.* missing a required argument: 'delta'"):
        gaussian.params(epsilon=1.0)
