"""Phased elimination: its schedule, its noise, its plays, its promise, and errors."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.core import State
from jaxdp.dueling import ebs_phased, matrix_duels, utility_duels
from jaxdp.dueling._phases import passes_of

KEY = partial(jax.random.key, 81)
DRAWS = 20_000
INTEGER = jnp.result_type(int)


def at(learner, params, *, active, played, phase=0, wins=None):
    state = learner.init(KEY(), params)
    public = state.public._replace(
        active=jnp.asarray(active), played=jnp.asarray(played, INTEGER), phase=jnp.int32(phase)
    )
    private = state.private if wins is None else state.private._replace(wins=jnp.asarray(wins, INTEGER))
    return State(private, public)


# ---- the schedule ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.01, 0.5, math.inf])
def test_lengths_of_phases(epsilon):
    """Checks the least multiple of the number of arms for which both errors together are within a quarter of the
    gap.
    """
    values = {"epsilon": epsilon, "failure_prob": 0.1}
    tight, half = (
        ebs_phased(num_arms=4).params(**values, confidence_multiplier=multiplier).passes for multiplier in (1.0, 0.5)
    )
    split = ebs_phased(num_arms=4, constants="split").params(**values).passes
    for phase, size in [(1, 2), (1, 4), (3, 3), (6, 2)]:
        x, gap = math.log(8 * size * phase**2 / 0.1), 0.5**phase

        def error(duels, x=x, epsilon=epsilon):
            return math.sqrt(x / (2 * duels)) + x / (epsilon * duels)

        passes = int(tight[phase - 1, size])
        assert error(passes * size) <= gap / 4 < error((passes - 1) * size)
        assert abs(half[phase - 1, size] - passes / 2) <= 1
        duels = max(32 * x / gap**2, 8 * x / (epsilon * gap))
        assert split[phase - 1, size] == math.ceil(math.ceil(duels) / size)
        assert tight[phase - 1, size] <= split[phase - 1, size] <= 4 * tight[phase - 1, size]
    assert (tight[-1] == np.iinfo(tight.dtype).max).all()  # never ends
    tiny = ebs_phased(num_arms=2).params(epsilon=1.0, confidence_multiplier=1e-9)
    assert tiny.passes[0].min() == 1


def test_how_much_less_than_split():
    """Checks equality where both terms are equal, at D = 4 epsilon; 4 times less without privacy; 2 times with much."""
    share = {}
    for epsilon in (1e-4, 1 / 32, 0.5, math.inf):
        tight, split = (
            ebs_phased(num_arms=8, constants=constants).params(epsilon=epsilon).passes[2, 8]
            for constants in ("tight", "split")
        )
        share[epsilon] = split / tight
    assert [round(each, 2) for each in share.values()] == [1.92, 1.0, 3.23, 4.0]


def test_counts_are_those_of_the_rounds():
    """Checks any active set, position in the phase and limit; blocks' actions are the same."""
    learner = ebs_phased(num_arms=4)
    assert learner.counts is not None
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=1.0, confidence_multiplier=0.02))
    counts = learner.counts
    plan = jax.jit(lambda public, limit: counts.plan(KEY(), params, public, limit).counts)
    act = jax.jit(jax.vmap(lambda public: learner.act(KEY(), params, public, None)))
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(30):
        active = rng.random(4) < 0.6
        active[rng.integers(4)] = True
        size = int(active.sum())
        length = int(params.passes[0, size]) * size**2 if size > 1 else 10**6
        played, limit = int(rng.integers(min(length, 200))), int(rng.integers(1, 300))
        public = at(learner, params, active=active, played=played).public
        found = np.asarray(plan(public, jnp.asarray(limit, INTEGER))).reshape(4, 4)
        ahead = min(limit, length - played)
        ended += ahead < limit
        rounds = played + jnp.arange(300, dtype=INTEGER)
        every = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (300, *leaf.shape)), public)._replace(played=rounds)
        expected = np.zeros((4, 4), int)
        np.add.at(expected, tuple(np.asarray(act(every))[:ahead].T), 1)
        assert found.tolist() == expected.tolist()
        assert active[np.argwhere(found)].all()
    assert ended > 3


# ---- the release -----------------------------------------------------------------------------------------------------
MULTIPLIER = 0.01


def share_of_drops(wins, epsilon):
    """Returns how often each of two arms is dropped, if the first phase ends with a duel that its left arm loses."""
    learner = ebs_phased(num_arms=2)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=1.0, confidence_multiplier=MULTIPLIER))
    rounds = int(params.passes[0, 2]) * 4
    state = at(learner, params, active=[True, True], played=rounds - 1, wins=wins)
    params = type(params)(epsilon=jnp.asarray(epsilon), passes=params.passes)
    report = jnp.array([1, 1], jnp.int32), jnp.int32(0)
    end = jax.jit(jax.vmap(lambda key: learner.update(key, params, state, report).public))
    public = end(jax.random.split(KEY(), DRAWS))
    assert (public.phase == 1).all()
    assert (public.played == 0).all()
    return 1 - np.asarray(public.active).mean(0), rounds // 2


def check_drops(wins, epsilon, noise):
    found, duels = share_of_drops(wins, epsilon)
    for arm in range(2):
        needed = duels / 4 - (wins[1 - arm] - wins[arm])  # by which noise of the other must be larger
        tail = (0.5 + abs(needed) * noise / 4) * math.exp(-abs(needed) * noise)
        exact = tail if needed >= 0 else 1 - tail
        assert abs(found[arm] - exact) < 5 * math.sqrt(exact * (1 - exact) / DRAWS)


@pytest.mark.parametrize("wins", [(2, 2), (0, 2), (3, 2)])
def test_noise_of_the_release(wins):
    check_drops(wins, 0.5, 0.5)
    for wrong in (0.8, 1.25):
        with pytest.raises(AssertionError):
            check_drops(wins, 0.5 / wrong, 0.5)


def test_without_noise_shares_decide():
    _, duels = share_of_drops((0, 0), math.inf)
    edge = duels // 4  # n D / 2
    for lead, dropped in ((edge, 0.0), (edge + 1, 1.0)):
        found, _ = share_of_drops((lead, 0), math.inf)
        assert found.tolist() == [0.0, dropped]


def test_one_win_on_top_of_large_counts():
    """Starts beyond 2^24, where a float32 count would move by 2, 4, ... or not at all."""
    _, duels = share_of_drops((0, 0), math.inf)
    edge = duels // 4
    for lead, dropped in ((edge, 0.0), (edge + 1, 1.0)):
        found, _ = share_of_drops((2**28 + lead, 2**28), math.inf)
        assert found.tolist() == [0.0, dropped]


def test_wins_are_counted_from_zero_in_each_phase():
    learner = ebs_phased(num_arms=2)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=1.0))
    for played, expected in ((0, [1, 0]), (7, [6, 9])):
        state = at(learner, params, active=[True, True], played=played, wins=[5, 9])
        after = learner.update(KEY(), params, state, (jnp.array([0, 1], jnp.int32), jnp.int32(1000)))  # clipped to 1
        assert after.private.wins.tolist() == expected


# ---- its promise -----------------------------------------------------------------------------------------------------
def test_the_best_arm_stays():
    """Checks failure_prob = 0.05; more daring constants do fail."""
    environment = utility_duels([0.6, 0.0, 0.0, -0.5])
    run = jaxdp.simulator(
        ebs_phased(num_arms=4),
        environment,
        2 * 10**6,
        engine="counts",
        record={"a": lambda snapshot: snapshot.public.active},
    )
    go = jax.jit(jax.vmap(run, (0, None)))
    active = {}
    for multiplier in (1.0, 1e-3):
        params = run.params(epsilon=0.5, failure_prob=0.05, confidence_multiplier=multiplier)
        active[multiplier] = np.asarray(go(jax.random.split(KEY(), 300), params)["a"])[:, -1]
    allowed = 0.05 + 5 * math.sqrt(0.05 * 0.95 / 300)
    assert 1 - active[1.0][:, 0].mean() <= allowed
    assert active[1.0].sum(1).max() == 1  # all others are gone
    assert 1 - active[1e-3][:, 0].mean() > allowed


def test_counts_are_rounds_in_distribution():
    values = {"epsilon": 0.5, "confidence_multiplier": 0.005}
    found = {}
    for engine in ("blocks", "counts"):
        run = jaxdp.simulator(
            ebs_phased(num_arms=3), utility_duels([1.0, 0.2, -0.5]), 400, checkpoints=[150, 400], engine=engine
        )
        keys = jax.random.split(KEY(), 6000)
        found[engine] = np.asarray(jax.jit(jax.vmap(run, (0, None)))(keys, run.params(**values))["pseudo_regret"])
    for first, second in zip(found["blocks"].T, found["counts"].T, strict=True):
        error = math.hypot(first.std(), second.std()) / math.sqrt(6000)
        assert abs(first.mean() - second.mean()) < 5 * error
        assert abs(0.85 * first.mean() - second.mean()) > 5 * error  # planted


def test_a_long_horizon():
    """Plays 2^31 - 1 rounds in 32 bits: no phase wraps, and the lone arm plays to the end."""
    run = jaxdp.simulator(ebs_phased(num_arms=2), matrix_duels([[0.5, 0.9], [0.1, 0.5]]), 2**31 - 1, engine="counts")
    for epsilon in (1.0, 1e-8):  # the first phase does not end in 32 bits
        outputs = jax.jit(run)(KEY(), run.params(epsilon=epsilon))
        best = int(outputs["best_duels"][-1])
        assert best > 2e9 if epsilon == 1.0 else best == 2**29


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0, got 0.0"),
        ({"epsilon": math.nan}, "epsilon must be > 0, got nan"),
        ({"epsilon": 1.0, "failure_prob": 0.0}, r"failure_prob must be in \(0, 1\), got 0.0"),
        ({"epsilon": 1.0, "failure_prob": 1.0}, r"failure_prob must be in \(0, 1\), got 1.0"),
        ({"epsilon": 1.0, "failure_prob": math.nan}, r"failure_prob must be in \(0, 1\), got nan"),
        ({"epsilon": 1.0, "confidence_multiplier": 0.0}, "confidence_multiplier must be > 0, got 0.0"),
        ({"epsilon": 1.0, "confidence_multiplier": math.inf}, "confidence_multiplier must be finite, got inf"),
    ],
)
def test_value_errors(values, message):
    learner = ebs_phased(num_arms=2)
    for function in (learner.params, learner.guarantee):
        with pytest.raises(ValueError, match=message):
            function(**values)


def test_factory_errors():
    with pytest.raises(ValueError, match="num_arms must be an integer >= 2, got 1"):
        ebs_phased(num_arms=1)
    with pytest.raises(ValueError, match="num_arms must have at most"):
        ebs_phased(num_arms=2**30 if jnp.dtype(INTEGER).itemsize == 4 else 2**40)
    with pytest.raises(ValueError, match="constants must be one of tight, split, got 'paper'"):
        ebs_phased(num_arms=2, constants="paper")


@pytest.mark.parametrize("size", [2, 3, 7])
def test_a_phase_of_more_rounds_than_integers_count_is_too_long(size):
    """Plants one pass less, which has too few duels."""
    duels = math.nextafter(float(jnp.iinfo(INTEGER).max) / size, 0)
    passes = passes_of(duels, size)
    assert passes is None or (passes * size >= duels and passes * size**2 <= jnp.iinfo(INTEGER).max)
    assert passes_of(size + 0.5, size) == 2
