"""Learners that select from losses in the clear: contract, clocks, bulk play, clipping, utility, mistakes, errors."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import experts
from jaxdp.audit import Users, grey_box, whole
from jaxdp.core import State
from jaxdp.experts import _limited_updates, _svt_restarts
from jaxdp.mechanisms import noisy_max
from jaxdp.testing import check_learner
from tests.experts.worlds import shifting, stationary

KEY = partial(jax.random.key, 61)
SIZES: dict[str, Any] = {"num_experts": 3, "horizon": 40}
MAKERS = {
    "limited_updates": lambda: (experts.limited_updates(num_experts=3), {}),
    "limited_updates_binary": lambda: (experts.limited_updates(num_experts=3, losses="binary"), {}),
    "limited_updates_laplace": lambda: (experts.limited_updates(num_experts=3, noise="laplace"), {}),
    "limited_updates_oblivious": lambda: (experts.limited_updates_oblivious(**SIZES), {"batch": 5}),
    "limited_updates_oblivious_zcdp": lambda: (
        experts.limited_updates_oblivious(**SIZES, accounting="zcdp"),
        {"batch": 5, "delta": 1e-3},
    ),
    "svt_restarts": lambda: (experts.svt_restarts(**SIZES), {"margin": -5.0}),
    "svt_restarts_grid": lambda: (experts.svt_restarts(**SIZES, windows="all", check_every=3), {"margin": -5.0}),
    "svt_lazy": lambda: (experts.svt_lazy(**SIZES), {"max_switches": 3, "threshold": 1.0}),
    "svt_lazy_zcdp": lambda: (
        experts.svt_lazy(**SIZES, accounting="zcdp"),
        {"max_switches": 3, "threshold": 1.0, "delta": 1e-3},
    ),
}
NOT_REGISTERED = ("limited_updates_laplace", "svt_restarts_grid")


def draw_losses(key):
    return Users(jnp.where(jax.random.bernoulli(key, shape=(3,)), 3.0, -2.0))


def look(learner, values, rounds=8, key=None, **more):
    more = {"num_bases": 2, "num_neighbours": 64, **more}
    return grey_box(KEY() if key is None else key, learner, values, draw_losses, rounds=rounds, answer=whole, **more)


# ---- contract --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NOT_REGISTERED)
def test_contract(name):
    learner, values = MAKERS[name]()
    environment, values = stationary([0.2, 0.5, 0.7]), {"epsilon": 2.0, **values}
    # Among equal sums the key of the update draws, as in the first round.
    check_learner(learner, environment, values, horizon=40, key=KEY(), draws_in_update=True)


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_noised(name):
    """Losses beyond [0, 1] count as 0 or 1; the whole claim is spent where one round can be in all selections."""
    learner, values = MAKERS[name]()
    spent = []
    # Of the transcripts that one key draws, seven in eight have a question on the grid that moves by 2.
    for key in jax.random.split(KEY(), 5 if name == "svt_restarts_grid" else 1):
        found = look(learner, {"epsilon": 1.0, **values}, rounds=10, key=key)
        assert found.verdict == "consistent", found
        claim = found.claim
        most = claim.epsilon if claim.kind == "pure" else claim.epsilon_at(1e-3)
        assert 0.2 * most < found.spent <= most * (1 + 1e-6)
        spent.append(found.spent / most)
        if spent[-1] == pytest.approx(1.0):
            break
    if name in ("limited_updates", "svt_restarts_grid"):
        assert max(spent) == pytest.approx(1.0)


# ---- clocks and bulk play --------------------------------------------------------------------------------------------
def test_the_clock():
    learner = experts.limited_updates(num_experts=2)
    for played in range(1, 200):
        assert bool(_limited_updates.begins_block(jnp.int32(played))) == ((played + 1).bit_count() == 1)
        left = int(_limited_updates.rounds_left(jnp.int32(played)))
        assert left == 2 ** (played + 1).bit_length() - (played + 1)
    late = jnp.int32(2**30 + 5)
    assert int(_limited_updates.rounds_left(late)) == 2**30 - 6
    assert learner.horizon is None


def test_an_expert_is_the_best_of_its_block():
    """Without noise, on losses of which each block has another best expert."""
    rng = np.random.default_rng(3)
    losses = rng.uniform(size=(127, 4))
    read = {"expert": lambda look: look.public.expert}
    learner = experts.limited_updates(num_experts=4)
    run = jaxdp.simulator(learner, experts.loss_sequence(losses), 127, checkpoints=127, record=read)
    played = np.asarray(run(KEY(), run.params(epsilon=math.inf))["expert"])
    for k in range(1, 7):
        best = losses[2 ** (k - 1) - 1 : 2**k - 1].sum(0).argmin()
        assert set(played[2**k - 2 : 2 ** (k + 1) - 2].tolist()) == {best}
    assert len({*played.tolist()}) > 1


def played_by(engine, losses, horizon=700, lanes=32):
    learner = experts.limited_updates(num_experts=4, losses=losses)
    read = {"expert": lambda look: look.public.expert}
    world = stationary([0.5, 0.45, 0.4, 0.6])
    run = jaxdp.simulator(learner, world, horizon, engine=engine, checkpoints=[7, 300, horizon], record=read)
    keys = jax.random.split(KEY(), lanes)
    return jax.device_get(jax.jit(jax.vmap(run, in_axes=(0, None)))(keys, run.params(epsilon=0.5)))


@pytest.mark.optimised
@pytest.mark.parametrize("losses", ["binary", "bounded"])
def test_blocks_are_rounds(losses, monkeypatch):
    rounds, blocks = (played_by(engine, losses) for engine in ("rounds", "blocks"))
    for name, values in rounds.items():
        np.testing.assert_array_equal(blocks[name], values)
    monkeypatch.setattr(_limited_updates, "rounds_left", lambda round_: jnp.full_like(round_, 40))
    wrong = played_by("blocks", losses)  # blocks that go on beyond the block of rounds
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(wrong["expert"], rounds["expert"])


def test_counts_reach_long_horizons():
    horizon = 10**9
    learner = experts.limited_updates(num_experts=3, losses="binary")
    run = jaxdp.simulator(learner, stationary([0.5, 0.5001, 0.6]), horizon, engine="counts", checkpoints=2)
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), 50), run.params(epsilon=0.1))
    regret = np.asarray(found["pseudo_regret"])[:, -1]
    assert 0 < np.median(regret) < 1e5  # uniform play: 3e7; the wrong one of the first two: 1e5


# ---- utility ---------------------------------------------------------------------------------------------------------
def regret_of(learner, means, horizon=1000, **values):
    run = jaxdp.simulator(learner, stationary(means), horizon, engine="rounds", checkpoints=[horizon])
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), 100), run.params(**values))
    return float(np.mean(np.asarray(found["pseudo_regret"])[:, -1]))


def check_utility():
    """Uniform play would have 200 on average, and limited updates lose half of a block here and there."""
    assert regret_of(experts.limited_updates(num_experts=3), [0.5, 0.2, 0.5], epsilon=1.0) < 20


def test_utility(monkeypatch):
    check_utility()
    monkeypatch.setattr(_limited_updates, "noisy_min", noisy_max)  # line 4 of the paper
    with pytest.raises(AssertionError):
        check_utility()


def test_regret_of_batches_is_below_its_bound():
    """ln N / rate + rate batch T / 8, in expectation."""
    horizon, means = 2000, [0.5, 0.45, 0.5, 0.5]
    learner = experts.limited_updates_oblivious(num_experts=4, horizon=horizon)
    for epsilon in (5.0, math.inf):
        params = learner.params(epsilon=epsilon)
        rate, batch = float(params.learning_rate), int(params.batch)
        bound = math.log(4) / rate + rate * batch * horizon / 8
        assert regret_of(learner, means, horizon, epsilon=epsilon) < bound < horizon
    assert int(params.batch) == 1
    assert params.learning_rate == pytest.approx(math.sqrt(8 * math.log(4) / horizon), rel=1e-6)


def lazy_losses(horizon, num_experts):
    """Expert 7 never has a loss; the others begin to lose one after the other."""
    losses = np.zeros((horizon, num_experts))
    for expert in range(num_experts):
        losses[horizon // (2 * num_experts) * expert :, expert] = expert != 7
    return losses


@pytest.mark.parametrize("epsilon", [20.0, math.inf])
def test_lazy_selections_are_below_their_bound(epsilon):
    """With probability 1 - 2 failure_prob a loss of at most K (1 / rate + 2 a + 2), and fewer than K selections."""
    num_experts, horizon, lanes = 8, 20_000, 64
    learner = experts.svt_lazy(num_experts=num_experts, horizon=horizon)
    read = {"switches": lambda look: look.public.switches}
    world = experts.loss_sequence(lazy_losses(horizon, num_experts))
    run = jaxdp.simulator(learner, world, horizon, checkpoints=[horizon], record=read)
    params = run.params(epsilon=epsilon)
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), lanes), params)
    mine = learner.params(epsilon=epsilon)
    most, rate = int(mine.max_switches), float(mine.learning_rate)
    accuracy = float(mine.threshold) - 1 / rate
    bound = most * (1 / rate + 2 * accuracy + 2)
    assert np.asarray(found["loss"]).max() < bound < 0.9 * horizon
    assert 1 <= np.asarray(found["switches"]).max() < most
    if epsilon < math.inf:
        assert rate == pytest.approx(epsilon / (4 * most), rel=1e-6)


# ---- restarts --------------------------------------------------------------------------------------------------------
def detection(epsilon, lanes, windows="dyadic", check_every=1, horizon=100_000, shift=True, **values):
    """Restarts before and after the shift in the middle, and rounds from it to the first restart thereafter."""
    middle = horizon // 2
    first = [0.0] + [0.5] * 9
    world = shifting(first, [0.5, 0.0] + [0.5] * 8, middle) if shift else stationary(first)
    looks = [middle, *range(middle + 50, min(middle + 6000, horizon), 50), horizon] if shift else [horizon]
    learner = experts.svt_restarts(num_experts=10, horizon=horizon, windows=windows, check_every=check_every)
    read = {"restarts": lambda look: look.public.restarts}
    run = jaxdp.simulator(learner, world, horizon, checkpoints=looks, record=read)
    params = run.params(epsilon=epsilon, failure_prob=0.01, **values)
    keys = jax.random.split(KEY(), lanes)
    restarts = np.asarray(jax.jit(jax.vmap(run, in_axes=(0, None)))(keys, params)["restarts"])
    return restarts, np.asarray(looks)[np.argmax(restarts > restarts[:, :1], axis=1)] - middle


def check_no_false_restarts(restarts):
    assert np.mean(restarts[:, -1] > 0) <= 0.01


@pytest.mark.optimised
def test_a_shift_is_found():
    """Gap 0.5, ten experts, 10^5 rounds. The full form is slow."""
    for epsilon, most in ((1.0, 5000), (4.0, 2000)):
        restarts, delays = detection(epsilon, lanes=8, check_every=16)
        assert np.median(delays) < most
        check_no_false_restarts(restarts[:, :1])
        assert (restarts[:, -1] == 1).all()


@pytest.mark.optimised
@pytest.mark.parametrize("check_every", [1, 16])
def test_no_false_restarts(check_every):
    """Losses whose law stays as it is. A margin that leaves the questions' noise out is planted."""
    restarts, _ = detection(1.0, lanes=50, check_every=check_every, horizon=5000, shift=False)
    check_no_false_restarts(restarts)
    restarts, _ = detection(1.0, lanes=50, check_every=check_every, horizon=5000, shift=False, margin=0.0)
    with pytest.raises(AssertionError):
        check_no_false_restarts(restarts)


@pytest.mark.optimised
@pytest.mark.parametrize(("windows", "check_every"), [("dyadic", 1), ("dyadic", 16)])
def test_no_false_restarts_in_many_long_runs(windows, check_every):
    restarts, _ = detection(1.0, lanes=1000, windows=windows, check_every=check_every, shift=False)
    check_no_false_restarts(restarts)


@pytest.mark.optimised
def test_a_shift_is_found_by_all_windows():
    for epsilon, most in ((1.0, 5000), (4.0, 2000)):
        for windows, check_every in (("all", 16), ("dyadic", 1)):
            restarts, delays = detection(epsilon, lanes=64, windows=windows, check_every=check_every)
            assert np.median(delays) < most
            check_no_false_restarts(restarts[:, :1])


def test_restarts_without_privacy_need_no_margin():
    params = experts.svt_restarts(num_experts=3, horizon=100).params(epsilon=math.inf)
    assert float(params.margin) == 1


# ---- mistakes --------------------------------------------------------------------------------------------------------
def test_tests_for_sensitivity_one(monkeypatch):
    """A question moves by 2 where one loss vector turns (1, 0) into (0, 1)."""
    monkeypatch.setattr(_svt_restarts, "SENSITIVITY", 1.0)
    learner, values = MAKERS["svt_restarts_grid"]()
    found = look(learner, {"epsilon": 1.0, **values})
    assert found.verdict == "violated"
    assert any("2" in fault for fault in found.faults)


def reusing(right):
    """The new epoch begins with the round of the answer "above", as in the paper."""

    def init(key, params):
        state = right.init(key, params)
        return State((state.private, jnp.zeros(3, state.private.regrets.whole.dtype)), state.public)

    def update(key, params, state, report):
        private, last = state.private
        public, (action, losses) = state.public, report
        key_again, key = jax.random.split(key)

        def again():
            earlier = public._replace(round=public.round - 1)
            after = right.update(key_again, params, State(private, earlier), (action, last))
            # Whether the same round ends this epoch, too, is left out.
            return after._replace(public=after.public._replace(restarts=public.restarts))

        reused = (public.selection.round == 0) & (public.restarts > 0)
        state = jax.lax.cond(reused, again, lambda: State(private, public))
        state = right.update(key, params, state, report)
        return State((state.private, losses), state.public)

    return right._replace(init=init, update=update)


def test_restarts_that_reuse_a_round():
    right = experts.svt_restarts(**SIZES)
    values = {"epsilon": 1.0, "margin": -5.0}
    assert look(right, values, rounds=4, num_neighbours=32).verdict == "consistent"
    found = look(reusing(right), values, rounds=6)
    assert found.verdict == "violated"
    assert found.spent > 1.2


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("factory", "arguments", "message"),
    [
        ("limited_updates", {"num_experts": 1}, "num_experts must be a whole number >= 2, got 1"),
        (
            "limited_updates",
            {"num_experts": 2, "noise": "none"},
            "noise must be one of exponential, gumbel, laplace, g",
        ),
        ("limited_updates", {"num_experts": 2, "losses": "any"}, "losses must be one of bounded, binary, got 'any'"),
        (
            "limited_updates_oblivious",
            {"num_experts": 1, "horizon": 5},
            "num_experts must be a whole number >= 2, got 1",
        ),
        ("limited_updates_oblivious", {"num_experts": 2, "horizon": 0}, "horizon must be a whole number >= 1, got 0"),
        (
            "limited_updates_oblivious",
            {"num_experts": 2, "horizon": 5, "accounting": "rdp"},
            "accounting must be one of pure, zcdp, got 'rdp'",
        ),
        ("svt_restarts", {"num_experts": 1, "horizon": 5}, "num_experts must be a whole number >= 2, got 1"),
        ("svt_restarts", {"num_experts": 2, "horizon": 2.5}, "horizon must be a whole number >= 1, got 2.5"),
        (
            "svt_restarts",
            {"num_experts": 2, "horizon": 5, "check_every": 0},
            "check_every must be a whole number >= 1, ",
        ),
        (
            "svt_restarts",
            {"num_experts": 2, "horizon": 5, "windows": "some"},
            "windows must be one of all, dyadic, got",
        ),
        (
            "svt_restarts",
            {"num_experts": 2, "horizon": 5, "noise": "none"},
            "noise must be one of exponential, gumbel, ",
        ),
        ("svt_lazy", {"num_experts": 1, "horizon": 5}, "num_experts must be a whole number >= 2, got 1"),
        ("svt_lazy", {"num_experts": 2, "horizon": 0}, "horizon must be a whole number >= 1, got 0"),
        (
            "svt_lazy",
            {"num_experts": 2, "horizon": 5, "accounting": "rdp"},
            "accounting must be one of pure, zcdp, got ",
        ),
    ],
)
def test_factory_errors(factory, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(experts, factory)(**arguments)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        *((name, {"epsilon": bad}, f"epsilon must be > 0, got {bad}") for name in MAKERS for bad in (0.0, math.nan)),
        ("limited_updates_oblivious_zcdp", {"epsilon": 1.0, "delta": 0.0}, r"delta must be in \(0, 1\), got 0.0"),
        ("limited_updates_oblivious", {"epsilon": 1.0, "batch": 0}, "batch must be a whole number >= 1, got 0"),
        ("limited_updates_oblivious", {"epsilon": 1.0, "batch": 41}, "batch must be <= horizon=40, got 41"),
        ("svt_restarts", {"epsilon": 1.0, "failure_prob": 0.0}, r"failure_prob must be in \(0, 1\), got 0.0"),
        ("svt_restarts", {"epsilon": 1.0, "margin": math.inf}, "margin must be finite, got inf"),
        ("svt_lazy_zcdp", {"epsilon": 1.0, "delta": 1.5}, r"delta must be in \(0, 1\), got 1.5"),
        ("svt_lazy", {"epsilon": 1.0, "best_loss": -1.0}, "best_loss must be >= 0, got -1.0"),
        ("svt_lazy", {"epsilon": 1.0, "failure_prob": 1.0}, r"failure_prob must be in \(0, 1\), got 1.0"),
        ("svt_lazy", {"epsilon": 1.0, "max_switches": 0}, "max_switches must be a whole number >= 1, got 0"),
        ("svt_lazy", {"epsilon": 1.0, "threshold": math.nan}, "threshold must be finite, got nan"),
    ],
)
def test_value_errors(name, values, message):
    learner, given = MAKERS[name]()
    values = {key: value for key, value in given.items() if key == "delta"} | values
    for function in (learner.params, learner.guarantee):
        with pytest.raises(ValueError, match=message):
            function(**values)
