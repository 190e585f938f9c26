"""The kernels of `svt_restarts` equal its plain form, bit for bit."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.experts._svt_restarts.windows import KERNELS, PLAIN, Dyadic, low_words
from jaxdp.numerics import fixed_point
from tests.algorithms.experts.lane_kernels import equal, in_lanes

LANES = 500
THIRD = fixed_point.UNITS // 3
EMPTY = fixed_point.zero()
NEAR = fixed_point.Sum(EMPTY.whole + 2**11 - 2, EMPTY.part)  # lower words of 32 bits wrap around there
SIZES = [2, 5, 16, 17, 40]  # up to 16 experts lanes are the fast axis


def played(steps, num_experts, checks=100, check_every=1):
    """Returns the largest excess and the memory after some questions, of walks with equal values among them."""
    random = np.random.default_rng(num_experts)
    walks = jnp.asarray(random.integers(-2, 3, (LANES, checks, num_experts)).cumsum(1), jnp.result_type(int)) * THIRD
    begins = jnp.asarray(random.integers(0, checks // 2, LANES), jnp.result_type(int))

    def lane(walk, begin):
        windows = Dyadic(num_experts, checks, check_every, steps)

        def question(carry, units):
            memory, before, now = carry
            memory = windows.remember(memory, before, fixed_point.add(NEAR, now), now, jnp.asarray(True))
            regrets = fixed_point.add(NEAR, units)

            def slack(rounds):
                return jnp.sqrt(rounds.astype(jnp.float64)) / 2

            allowed = fixed_point.add(NEAR, now + 1)
            ending = windows.ending_at(slack, now + 1)
            largest = windows.largest(memory, regrets, allowed, slack, ending, now + 1, jnp.minimum(begin, now))
            return (memory, regrets, now + 1), largest

        start = windows.empty(), fixed_point.zero(num_experts), jnp.zeros((), jnp.result_type(int))
        return jax.lax.scan(question, start, walk)

    return in_lanes(lane, walks, begins)


@pytest.mark.parametrize("check_every", [1, 40])  # all levels are short in 32 bits, or but some
@pytest.mark.parametrize("num_experts", SIZES)
def test_windows_are_the_plain_ones(num_experts, check_every):
    about = {"check_every": check_every}
    assert equal(played(KERNELS, num_experts, **about), played(PLAIN, num_experts, **about))


@pytest.mark.parametrize("check_every", [1, 20, 60, 10_000])
def test_windows_of_lower_words_are_those_of_sums(check_every, monkeypatch):
    """Sums that have wrapped around have the same differences."""
    with_words = played(PLAIN, 3, check_every=check_every)[1]
    monkeypatch.setattr(Dyadic, "short", 0)
    assert equal(with_words, played(PLAIN, 3, check_every=check_every)[1])


@pytest.mark.parametrize("steps", [PLAIN, KERNELS])
def test_regrets_beyond_a_word_are_seen(steps):
    """Checks windows of 344 and 216 questions in which a regret grew by 2^11 and by 2^10 ranges."""
    windows = Dyadic(2, 6250, 16, steps)
    integer = jnp.result_type(int)
    memory = windows.empty()
    for now, whole in ((256, -(2**11)), (384, -(2**10))):
        regrets = fixed_point.Sum(jnp.asarray([whole, 0], integer), jnp.zeros(2, integer))
        memory = windows.remember(memory, regrets, EMPTY, jnp.asarray(now, integer), jnp.asarray(True))
    now, begin = jnp.asarray(600, integer), jnp.asarray(0, integer)
    ending = windows.ending_at(no_slack, now)
    assert float(windows.largest(memory, fixed_point.zero(2), EMPTY, no_slack, ending, now, begin)) == 2**11


def no_slack(rounds):
    return jnp.zeros(rounds.shape, jnp.float64)


WRONG = {
    "written a level late": KERNELS._replace(
        replace_columns=lambda written, *sums: KERNELS.replace_columns(jnp.roll(written, 1), *sums)
    ),
    "the first expert's sums": KERNELS._replace(
        largest_short=lambda regrets, low, short: (low_words(regrets)[0] - low[0, :short]).astype(jnp.float64)
    ),
    "the smallest": KERNELS._replace(largest=lambda values: -KERNELS.largest(-values)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_windows_are_noticed(name):
    assert not equal(played(WRONG[name], 5), played(PLAIN, 5))


@pytest.mark.parametrize(("windows", "is_laid_out"), [("dyadic", True), ("all", False)])
def test_long_memories_keep_lanes_apart(windows, is_laid_out):
    """Checks that a question reads a lane's part of the memory of all windows contiguously."""
    learner = jaxdp.experts.svt_restarts(num_experts=5, horizon=4000, windows=windows, check_every=4)
    run = jaxdp.simulator(learner, jaxdp.experts.stochastic_losses([0.5] * 5), 4000, engine="blocks")
    params = run.params(epsilon=1.0)
    memory = learner.init(jax.random.key(0), params["learner"]).private.windows.low.shape
    traced = jax.make_jaxpr(jax.vmap(run, (0, None)))(jax.random.split(jax.random.key(0), 3), params)
    shape = re.escape(f"[{','.join(map(str, (3, *memory)))}]")
    assert bool(re.search(rf"{shape} = layout_constraint", str(traced))) == is_laid_out


@pytest.mark.parametrize("check_every", [1, 3, 16, 100, 5_000])
def test_regrets_of_short_levels_fit_in_an_integer(check_every):
    """Checks the largest regret of a window of the last short level; in 32 bits the next level's is too large."""
    short = Dyadic(2, 2**20, check_every).short
    largest = np.iinfo(np.dtype(jnp.result_type(int))).max
    regrets = [2 ** (level + 1) * check_every * fixed_point.UNITS for level in range(short + 1)]
    assert all(regret <= largest for regret in regrets[:short])
    assert largest > 2**31 or regrets[short] > largest
