"""Blocks give the results of rounds bit for bit, counts their distribution; a planted off-by-one is noticed."""

import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxdp
from jaxdp.bandits import bernoulli_bandit, explore_then_commit, gaussian_bandit
from jaxdp.core import Blocks, CountPlan, Learner
from jaxdp.simulation import simulator
from jaxdp.simulation.run.engines import choose_engine
from tests.lazily import Lazy
from tests.simulation.learners import linear_bandit, stay_or_switch, successive_elimination
from tests.simulation.worlds import linear_rewards, rotting_rewards, with_plays

pytestmark = pytest.mark.optimised

KEY = partial(jax.random.key, 11)
LEVEL = 1e-4  # of tests with fixed keys
LANES = 3000


# ---- blocks ----------------------------------------------------------------------------------------------------------
def record(snapshot):
    """Records all releases, and the latest action."""
    leaves = [
        jnp.atleast_1d(leaf).astype(jnp.result_type(float))
        for leaf in jax.tree.leaves((snapshot.public, snapshot.action))
    ]
    return jnp.concatenate(leaves)


def in_stages(num_arms: int) -> Learner:
    """Builds other blocks from the third phase on, which lanes reach at other rounds, and stop at others."""
    learner, shorter = (successive_elimination(num_arms=num_arms, block=block) for block in (20, 7))
    first = learner.blocks[0]._replace(switch_when=lambda params, public: public.phase >= 2)
    return learner._replace(blocks=(first, *shorter.blocks))


PAIRS = Lazy(
    {
        # exploration ends within a block, and the horizon too
        "binary": lambda: (explore_then_commit(num_arms=3, explore_rounds=75), bernoulli_bandit([0.4, 0.5, 0.45]), 131),
        "bounded": lambda: (
            explore_then_commit(num_arms=2, explore_rounds=70, rewards="bounded"),
            gaussian_bandit([0.3, 0.4]),
            131,
        ),
        "stopping": lambda: (successive_elimination(num_arms=4, block=20), bernoulli_bandit([0.1, 0.9, 0.2, 0.3]), 500),
        "memory": lambda: (stay_or_switch(num_arms=3), rotting_rewards([0.95, 0.8, 0.9]), 131),
        "stages": lambda: (in_stages(4), rotting_rewards([0.1, 0.95, 0.2, 0.5], plays_per_stage=200), 600),
    }
)
EPSILONS = [0.3, 3.0, math.inf]


def run_of(name, engine):
    learner, environment, horizon = PAIRS[name]
    return simulator(
        learner, environment, horizon, checkpoints=[1, 40, 74, 75, horizon], record={"seen": record}, engine=engine
    )


def assert_equal(first, second):
    assert set(first) == set(second)
    for output, values in first.items():
        np.testing.assert_array_equal(values, second[output], err_msg=output)


@functools.cache
def swept(name, engine):
    run = run_of(name, engine)
    return jaxdp.sweep(lambda: run, axes={"epsilon": EPSILONS}, num_seeds=32, tile_size=48, key=KEY())


@pytest.mark.parametrize("name", PAIRS)
def test_blocks_are_rounds_in_a_sweep(name):
    blocks, rounds = swept(name, "blocks"), swept(name, "rounds")
    assert blocks.identical(rounds.assign_attrs(blocks.attrs))
    varying = rounds.pseudo_regret.isel(round=-1)
    assert len(np.unique(varying)) > 1  # else this would prove little


@pytest.mark.parametrize("name", PAIRS)
def test_blocks_are_rounds_in_one_lane(name):
    runs = [run_of(name, engine) for engine in ("blocks", "rounds")]
    blocks, rounds = (jax.jit(run)(KEY(), run.params(epsilon=1.0)) for run in runs)
    assert_equal(blocks, rounds)


def cut_late(blocks: Blocks) -> Blocks:
    """Uses a round more than it should."""

    def update_block(keys, params, state, plan, report):
        state, used = blocks.update_block(keys, params, state, plan, report)
        return state, jnp.minimum(used + 1, plan.length)

    return blocks._replace(update_block=update_block)


def other_key(blocks: Blocks) -> Blocks:
    """Updates with the key of the block's first round instead of the last one used."""
    return blocks._replace(
        update_block=lambda keys, *rest: blocks.update_block(jnp.broadcast_to(keys[0], keys.shape), *rest)
    )


@pytest.mark.parametrize("mutate", [cut_late, other_key])
def test_blocks_that_are_not_rounds_are_noticed(mutate):
    learner, environment, horizon = PAIRS["memory"]
    mutant = learner._replace(blocks=(mutate(learner.blocks[0]),))
    run = simulator(mutant, environment, horizon, checkpoints=[1, 40, 74, 75, horizon], record={"seen": record})
    found = jaxdp.sweep(lambda: run, axes={"epsilon": EPSILONS}, num_seeds=32, tile_size=48, key=KEY())
    assert not np.array_equal(found.seen, swept("memory", "rounds").seen)


def test_a_wrong_stage_is_noticed():
    learner, environment, horizon = PAIRS["stages"]
    first, second = learner.blocks
    run = simulator(learner._replace(blocks=(first, other_key(second))), environment, horizon)
    found = jaxdp.sweep(lambda: run, axes={"epsilon": EPSILONS}, num_seeds=32, tile_size=48, key=KEY())
    rounds = swept("stages", "rounds")
    assert not np.array_equal(found.plays.isel(round=-1), rounds.plays.isel(round=-1))
    assert len(np.unique(rounds.rounds)) > 3
    assert rounds.censored.any()


def test_a_block_that_is_cut_goes_on_from_the_right_world():
    """Plays that the world counts are as many as rounds; blocks are cut often, and never end where they began."""
    run = run_of("memory", "blocks")
    outputs = jax.jit(run)(KEY(), run.params(epsilon=math.inf))
    assert outputs["plays"].sum(-1).tolist() == run.coords["round"]
    assert (outputs["plays"][-1] > 0).sum() > 1


# ---- counts ----------------------------------------------------------------------------------------------------------
def p_value(first, second):
    """Tests two samples for one distribution: by chi-square where values repeat, else Kolmogorov-Smirnov."""
    values, index = np.unique(np.concatenate([first, second]), return_inverse=True)
    if len(values) > 60:
        return scipy.stats.ks_2samp(first, second)[1]
    table = np.stack([np.bincount(part, minlength=len(values)) for part in np.split(index, [len(first)])])
    kept = table[:, table.sum(0) >= 20]
    rest = table[:, table.sum(0) < 20].sum(1, keepdims=True)  # rare values, together
    table = np.concatenate([kept, rest], axis=1) if rest.sum() else kept
    return 1.0 if table.shape[1] < 2 else scipy.stats.chi2_contingency(table, correction=False)[1]


NONE, ONE_MORE, ROLLED = range(3)


def with_faults(learner: Learner) -> Learner:
    """Builds the same learner with a value `fault`, traced so that all mutants share one program by counts.

    ONE_MORE: one play of arm 0 too many whenever arms are planned in turn, at the cost of arm 1. ROLLED: the curator
    takes one arm's total for the other's.
    """
    assert learner.counts is not None
    counts = learner.counts

    def second(function):
        return lambda key, params, *rest: function(key, params[0], *rest)

    def plan(key, params, public, limit) -> CountPlan:
        planned = counts.plan(key, params[0], public, limit).counts
        change = jnp.zeros_like(planned).at[0].set(1).at[1].set(-1)
        return CountPlan(planned + jnp.where((params[1] == ONE_MORE) & (planned > 0).all(), change, 0))

    def privatize(key, params, public, plan, totals):
        totals = jnp.where(params[1] == ROLLED, jnp.roll(totals, 1), totals)
        return counts.privatize(key, params[0], public, plan, totals)

    return learner._replace(
        params=lambda *, epsilon, fault=NONE: (learner.params(epsilon=epsilon), np.int32(fault)),
        guarantee=lambda *, epsilon, fault=NONE: learner.guarantee(epsilon=epsilon),
        init=second(learner.init),
        act=second(learner.act),
        privatize=second(learner.privatize),
        update=second(learner.update),
        blocks=(),
        counts=counts._replace(plan=plan, privatize=privatize, update_counts=second(counts.update_counts)),
    )


MEANS, EXPLORE = (0.4, 0.5), 40
CASES = Lazy(
    {
        "commit": lambda: (
            explore_then_commit(num_arms=2, explore_rounds=EXPLORE),
            bernoulli_bandit(MEANS),
            [21, EXPLORE, 100],
        ),
        "stopping": lambda: (successive_elimination(num_arms=3), bernoulli_bandit([0.2, 0.8, 0.5]), [50, 200, 600]),
    }
)


@functools.cache
def lanes_of(name, engine):
    learner, environment, checkpoints = CASES[name]
    if name == "commit" and engine == "counts":
        learner = with_faults(learner)
    num_arms = len(environment.params().means)
    run = simulator(learner, with_plays(environment, num_arms), checkpoints[-1], checkpoints=checkpoints, engine=engine)
    return run, jax.jit(jax.vmap(run, in_axes=(0, None)))


@functools.cache
def draw(name, engine, **values):
    """Draws every output at every checkpoint, [LANES] each."""
    run, lanes = lanes_of(name, engine)
    keys = jax.random.split(jax.random.fold_in(KEY(), len(engine)), LANES)
    outputs = jax.device_get(lanes(keys, run.params(**values)))
    return {
        f"{output}[{index}]": np.round(column.astype(float), 3)
        for output, values in outputs.items()
        for index, column in enumerate(values.reshape(LANES, -1).T)
    }


def smallest_p_value(name, **values):
    """Compares counts with rounds (by blocks, which are the same): the smallest p over outputs and checkpoints."""
    found, expected = draw(name, "counts", epsilon=1.0, **values), draw(name, "blocks", epsilon=1.0)
    assert set(found) == set(expected)
    return min(float(p_value(found[output], expected[output])) for output in expected)


@pytest.mark.parametrize("name", CASES)
def test_counts_have_the_distribution_of_rounds(name):
    """Compares regret, plays of each arm and stopping times, at every checkpoint."""
    assert smallest_p_value(name) > LEVEL
    assert all(
        np.unique(values).size > 1 for output, values in draw(name, "blocks", epsilon=1.0).items() if "[2]" in output
    )


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("commit", {"fault": ONE_MORE}),
        ("commit", {"fault": ROLLED}),
        ("stopping", {"extra_plays": 1}),
        ("stopping", {"extra_plays": -1}),
    ],
)
def test_counts_that_are_wrong_are_noticed(name, values):
    """Plants a play too many of an arm; rewards of the wrong arm.

    A phase that is a play of each arm too long or short.
    """
    assert smallest_p_value(name, **values) < LEVEL / 1e6


@pytest.mark.parametrize("engine", ["blocks", "counts"])
def test_the_probability_of_the_best_arm_is_exact(engine):
    """Plays without noise: the first arm has more wins, or is drawn from two equal ones, with a known probability."""
    each = EXPLORE // 2
    wins = np.arange(each + 1)
    first, second = (scipy.stats.binom.pmf(wins, each, mean) for mean in MEANS)
    joint = first[:, None] * second[None, :]
    ties = float(np.trace(joint))
    probability = float(np.sum(joint * (wins[:, None] > wins[None, :]))) + ties / 2
    plays = draw("commit", engine, epsilon=math.inf)["plays_0[2]"]
    assert set(plays.tolist()) == {each, each + 100 - EXPLORE}
    error = math.sqrt(probability * (1 - probability) / LANES)
    assert abs(np.mean(plays > each) - probability) < 5 * error
    for wrong in (ties / 2, -ties / 2):  # ties to one arm
        assert abs(np.mean(plays > each) - (probability + wrong)) > 5 * error


# ---- which engine ----------------------------------------------------------------------------------------------------
def test_auto_is_blocks_where_both_sides_have_them():
    for learner, environment, _ in PAIRS.values():
        assert choose_engine(learner, environment, "auto") == "blocks"
        assert choose_engine(learner._replace(blocks=(), counts=None), environment, "auto") == "rounds"
        assert choose_engine(learner, environment._replace(block=None, feedback_totals=None), "auto") == "rounds"
    contextual = linear_bandit(num_arms=3, dim=2), linear_rewards([0.5, 0.1], num_arms=3)
    assert choose_engine(*contextual, "auto") == "rounds"


@pytest.mark.parametrize(
    ("name", "engine", "missing"),
    [
        ("bounded", "counts", "'counts' without the learner's counts, the environment's feedback_totals"),
        ("memory", "counts", "'counts' without the learner's counts, the environment's feedback_totals"),
        ("contextual", "blocks", "the learner's blocks, the environment's block, the environment's contexts"),
    ],
)
def test_an_engine_that_is_missing(name, engine, missing):
    pairs = {**PAIRS, "contextual": (linear_bandit(num_arms=3, dim=2), linear_rewards([0.5, 0.1], num_arms=3), 10)}
    learner, environment, horizon = pairs[name]
    with pytest.raises(ValueError, match=f"engine must be one that both sides have, got .*{missing}"):
        simulator(learner, environment, horizon, engine=engine)


def test_an_unknown_engine():
    learner, environment, horizon = PAIRS["binary"]
    with pytest.raises(ValueError, match="engine must be one of rounds, blocks, counts, heard, auto, got 'steps'"):
        simulator(learner, environment, horizon, engine="steps")
