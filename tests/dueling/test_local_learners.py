"""Learners that see reports only: what they draw, what they converge to, and errors."""

import dataclasses
import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.dueling import double_thompson, ebs_local, matrix_duels, rucb, switching_duels, versatile_sparring
from jaxdp.numerics import compensated
from jaxdp.preferences import effective_borda_scores, lower_bound_matrix
from tests.lazily import Lazy

KEY = partial(jax.random.key, 91)
DRAWS = 10_000
INTEGER = jnp.result_type(int)
# Arm 0 beats arm 1 for certain by these counts; arm 2 has met no other.
WINS = np.array([[0, 60, 0], [10, 0, 0], [0, 0, 0]])


@functools.cache
def draws(learner):
    return jax.jit(jax.vmap(lambda key, params, public: learner.act(key, params, public, None), (0, None, None)))


def duels_drawn(learner, public, epsilon=math.inf):
    """How often each pair is played from this state, [num_arms, num_arms]."""
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=epsilon))
    pairs = np.asarray(draws(learner)(jax.random.split(KEY(), DRAWS), params, public))
    found = np.zeros((3, 3))
    np.add.at(found, tuple(pairs.T), 1 / DRAWS)
    return found


def check_shares(found, expected, draws=DRAWS):
    expected = np.asarray(expected, float)
    assert (np.abs(found - expected) <= 5 * np.sqrt(expected * (1 - expected) / draws) + 1e-12).all()


def start(learner, **values):
    return learner.init(KEY(), learner.params(epsilon=1.0, **values)).public


# ---- elimination -----------------------------------------------------------------------------------------------------
def test_ebs_local_draws():
    """The active arm with the fewest duels against active ones, and a random active one."""
    learner = ebs_local(num_arms=3, horizon=100)
    public = start(learner)._replace(
        active=jnp.array([True, False, True]), plays=jnp.array([[1, 0, 1], [0, 0, 0], [0, 9, 1]], INTEGER)
    )
    check_shares(duels_drawn(learner, public), [[0, 0, 0], [0, 0, 0], [0.5, 0, 0.5]])


def test_ebs_local_drops():
    """Shares 0.9 and 0.1 of 10 duels: apart from the radius 0.4 on, and only if both arms are active."""
    learner = ebs_local(num_arms=3, horizon=100)
    public = start(learner)._replace(
        plays=jnp.array([[0, 10, 0], [9, 0, 0], [0, 0, 0]], INTEGER),
        wins=jnp.array([[0, 9, 0], [1, 0, 0], [0, 0, 0]], INTEGER),
    )
    report = jnp.array([1, 0], jnp.int32), jnp.int32(0)
    for radius, left_over in ((0.39, [True, False, True]), (0.41, [True, True, True])):
        params = learner.params(epsilon=1.0)
        params = dataclasses.replace(params, squared_radius=jnp.asarray(10 * radius**2))
        after = learner.update(KEY(), params, jaxdp.State((), public), report)
        assert after.public.active.tolist() == left_over


def test_which_constants():
    """The paper's interval is never smaller."""
    for num_arms, horizon in ((2, 1), (10, 10**6)):
        radii = [
            float(ebs_local(num_arms=num_arms, horizon=horizon, constants=name).params(epsilon=1.0).squared_radius)
            for name in ("tight", "paper")
        ]
        events = num_arms * horizon / 0.05
        assert radii == pytest.approx([math.log(2 * events) / 2, math.log(events)], rel=1e-6)
        assert radii[0] <= radii[1]


# ---- RUCB ------------------------------------------------------------------------------------------------------------
def counted(public, wins, round_):
    wins = jnp.asarray(wins, INTEGER)
    return public._replace(wins=wins, round=jnp.asarray(round_, INTEGER))


def test_rucb_draws_champions():
    """Arms 0 and 2 may beat all others; arm 0 is the hypothesis, or there is none."""
    learner = rucb(num_arms=3)
    public = counted(start(learner), WINS, 70)
    # Against arm 0 arm 2 has the largest bound, 2; against arm 2 both others have it, and arm 2 has not.
    for hypothesis in (-1, 0, 1):
        found = duels_drawn(learner, public._replace(hypothesis=jnp.int32(hypothesis)))
        check_shares(found, [[0, 0, 0.5], [0, 0, 0], [0.25, 0.25, 0]])
    found = duels_drawn(learner, start(learner)._replace(hypothesis=jnp.int32(1)))
    assert found.diagonal().max() == 0  # a tie at the start: never the same arm twice
    check_shares(found.sum(1), [0.25, 0.5, 0.25])
    with pytest.raises(AssertionError):  # planted: the hypothesis as often as others
        check_shares(found.sum(1), [1 / 3, 1 / 3, 1 / 3])


def test_rucb_keeps_its_hypothesis():
    learner = rucb(num_arms=3)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf))
    alone = np.array([[0, 60, 60], [10, 0, 30], [10, 30, 0]])
    report = jnp.array([1, 2], jnp.int32), jnp.int32(1)
    for wins, before, after in ((alone, -1, 0), (alone, 2, 0), (WINS, 0, 0), (WINS, 1, -1), (WINS, -1, -1)):
        public = counted(start(learner), wins, 99)._replace(hypothesis=jnp.int32(before))
        found = learner.update(KEY(), params, jaxdp.State((), public), report).public
        assert found.hypothesis == after
        np.testing.assert_array_equal(found.wins - public.wins, [[0, 0, 0], [0, 0, 1], [0, 0, 0]])


# ---- sparring --------------------------------------------------------------------------------------------------------
def players(public, left, right):
    """The state with these weights of the two players."""
    return public._replace(weights=jnp.stack([jnp.asarray(left), jnp.asarray(right)], 1))


def losses_of(public):
    """Estimated losses, [2, num_arms]."""
    return np.asarray(public.losses.total).T


def test_sparring_estimates():
    """With importance weights: the loss of each player's arm over its probability; then Tsallis weights of the sums."""
    learner = versatile_sparring(num_arms=3)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf))
    public = players(start(learner), [0.5, 0.25, 0.25], [0.2, 0.2, 0.6])
    for said, expected in ((0, [[0, 4, 0], [0, 0, 0]]), (1, [[0, 0, 0], [0, 0, 1 / 0.6]])):
        report = jnp.array([1, 2], jnp.int32), jnp.int32(said)
        after = learner.update(KEY(), params, jaxdp.State((), public), report).public
        np.testing.assert_allclose(losses_of(after), expected, rtol=1e-6)
        np.testing.assert_allclose(after.weights.sum(0), 1, rtol=1e-6)
        assert after.round == 1


def test_reduced_variance():
    learner = versatile_sparring(num_arms=3, losses="reduced_variance")
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf))
    # In round 64 the rate is 1/2: weights from 1/4 on have the base 1/2.
    public = players(start(learner), [0.5, 0.25, 0.25], [0.2, 0.2, 0.6])._replace(round=jnp.asarray(63, INTEGER))
    report = jnp.array([1, 1], jnp.int32), jnp.int32(0)
    after = learner.update(KEY(), params, jaxdp.State((), public), report).public
    np.testing.assert_allclose(losses_of(after), [[0.5, 0.5 / 0.25 + 0.5, 0.5], [0, 0, 0.5]], rtol=1e-6)


def test_gaussian_reports_become_losses():
    learner = versatile_sparring(num_arms=2, report="gaussian", horizon=100)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=1.0, delta=1e-3, failure_prob=0.1))
    stddev = jaxdp.mechanisms.analytic_gaussian(1.0, 1e-3)
    shift = stddev * math.sqrt(2 * math.log(2 * 100 / 0.1))
    np.testing.assert_allclose([params.noise_stddev, params.shift], [stddev, shift], rtol=1e-6)
    public = learner.init(KEY(), params).public
    for said, loss in ((-1e6, 0.0), (-shift, 0.0), (0.5, 0.5), (1 + shift, 1.0), (1e6, 1.0)):
        report = jnp.array([0, 1], jnp.int32), jnp.asarray(said)
        after = learner.update(KEY(), params, jaxdp.State((), public), report).public
        np.testing.assert_allclose(losses_of(after), [[2 * (1 - loss), 0], [0, 2 * loss]], atol=1e-5)


def test_large_losses_do_not_stall():
    """Estimated losses of 2^24 for everyone: another 1 would be lost in float32."""
    learner = versatile_sparring(num_arms=2)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=math.inf))
    total = jnp.full((2, 2), 2.0**24)
    heavy = compensated.Sum(total, jnp.zeros_like(total))
    public = players(start(learner)._replace(losses=heavy), jnp.ones(2), jnp.ones(2))
    report = jnp.array([0, 0], jnp.int32), jnp.int32(0)

    @jax.jit
    def play(public):
        def again(_, public):
            public = learner.update(KEY(), params, jaxdp.State((), public), report).public
            return players(public, jnp.ones(2), jnp.ones(2))

        return jax.lax.fori_loop(0, 101, again, public).losses

    found = play(public)
    assert float((found.total - total)[0, 0] - found.excess[0, 0]) == 101


# ---- double Thompson sampling ----------------------------------------------------------------------------------------
THOMPSON = partial(double_thompson, num_arms=3)  # the same object each time, compiled once


def test_double_thompson_draws():
    """Arms 0 and 2 may beat two others. A rival of arm 0 is arm 2 or arm 0 itself: arm 1 is too weak."""
    learner = THOMPSON()
    public = start(learner)._replace(wins=jnp.asarray(WINS, INTEGER), round=jnp.asarray(70, INTEGER))
    found = duels_drawn(learner, public)
    # Arm 0 beats arm 1 in the draw, and arm 2 with probability 1/2. Else arm 2 beats arm 0, and arm 1 with 1/2:
    # both of the arms 0 and 2 beat one other, and one is taken at random, or arm 2 beats both.
    share = 1 / 2 + 1 / 2 * 1 / 2 * 1 / 2
    check_shares(found.sum(1), [share, 0, 1 - share])
    check_shares(found[0] / found[0].sum(), [0.5, 0, 0.5], DRAWS * found[0].sum())
    # Of arm 2's own two rivals, uniform draws, the larger is above 1/2 in 3 of 4 cases.
    check_shares(found[2] / found[2].sum(), [0.375, 0.375, 0.25], DRAWS * found[2].sum())
    with pytest.raises(AssertionError):  # planted: a fair choice
        check_shares(found[2] / found[2].sum(), [1 / 3, 1 / 3, 1 / 3], DRAWS * found[2].sum())


def test_the_posterior_shrinks_with_privacy():
    """At a smaller epsilon the same reports say less: an arm that lost six of seven duels is drawn more often."""
    learner = THOMPSON()
    wins = np.array([[0, 36, 36], [6, 0, 20], [6, 20, 0]])
    # So late that bounds leave everything open: what is drawn decides.
    public = start(learner)._replace(wins=jnp.asarray(wins, INTEGER), round=jnp.asarray(2**30, INTEGER))
    shares = [duels_drawn(learner, public, epsilon)[0].sum() for epsilon in (math.inf, 0.3)]
    assert shares[0] > 0.999
    assert shares[1] < 0.95


# ---- all ------------------------------------------------------------------------------------------------------------
def test_many_arms_are_played_as_few(monkeypatch):
    """Arrays of more than 16 arms are not written out: the same plays, when 5 arms are taken for many."""

    def plays():
        run = jaxdp.simulator(
            versatile_sparring(num_arms=5), matrix_duels(lower_bound_matrix(5)), 60, checkpoints=[10, 30, 60]
        )
        return jax.jit(jax.vmap(run, (0, None)))(jax.random.split(KEY(), 20), run.params(epsilon=2.0))["pseudo_regret"]

    few = plays()
    for module in ("kernels", "tsallis"):
        monkeypatch.setattr(f"jaxdp.numerics.{module}.WRITTEN_OUT", 4)
    np.testing.assert_allclose(plays(), few, rtol=1e-6)


LEARNERS = Lazy(
    {
        "ebs_local": lambda: (ebs_local(num_arms=3, horizon=1500), {"confidence_multiplier": 0.3}),
        "rucb": lambda: (rucb(num_arms=3), {}),
        "versatile_sparring": lambda: (versatile_sparring(num_arms=3, losses="reduced_variance"), {}),
    }
)  # double Thompson sampling: against the independent version only, for its Beta variates take long


@pytest.mark.parametrize("name", LEARNERS)
def test_they_learn(name):
    """Regret in the second half is well below that of the first, and privacy costs."""
    learner, values = LEARNERS[name]
    run = jaxdp.simulator(learner, matrix_duels(lower_bound_matrix(3)), 1500, checkpoints=[750, 1500])
    go = jax.jit(jax.vmap(run, (0, None)))
    regret = {}
    for epsilon in (math.inf, 1.0):
        found = go(jax.random.split(KEY(), 30), run.params(epsilon=epsilon, **values))["pseudo_regret"]
        regret[epsilon] = np.asarray(found).mean(0)
    assert regret[math.inf][1] - regret[math.inf][0] < 0.6 * regret[math.inf][0]
    assert regret[1.0][1] > regret[math.inf][1]
    assert regret[1.0][1] < 0.8 * 1500 / 3  # random duels cost 1/3


def against_a_switch(learner, **values):
    """Static regret of runs in which the best arm changes."""
    environment = switching_duels([lower_bound_matrix(3), lower_bound_matrix(3, 2)], [0, 500])
    run = jaxdp.simulator(learner, environment, 2000)
    outputs = jax.jit(jax.vmap(run, (0, None)))(jax.random.split(KEY(), 30), run.params(epsilon=math.inf, **values))
    return np.asarray(outputs["static_regret"])[:, -1]


def check_follows(regret):
    """Well below what fair draws of both arms cost against the last arm, in 500 and then 1500 rounds."""
    scores = [effective_borda_scores(lower_bound_matrix(3, best), np.ones(3, bool))[2] for best in (0, 2)]
    fair = 500 * (scores[0] - 0.5) + 1500 * (scores[1] - 0.5)
    assert regret.mean() + 5 * regret.std() / math.sqrt(len(regret)) < 0.8 * fair


def test_sparring_follows_a_switch():
    check_follows(against_a_switch(versatile_sparring(num_arms=3)))
    with pytest.raises(AssertionError):  # planted: fair draws, by arms that are never dropped
        check_follows(against_a_switch(ebs_local(num_arms=3, horizon=2000), confidence_multiplier=100.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ebs_local(num_arms=1, horizon=5), "num_arms must be a whole number >= 2, got 1"),
        (lambda: ebs_local(num_arms=2, horizon=0), "horizon must be a whole number >= 1, got 0"),
        (lambda: ebs_local(num_arms=2, horizon=5, constants="mine"), "constants must be one of tight, paper"),
        (lambda: rucb(num_arms=1), "num_arms must be a whole number >= 2, got 1"),
        (lambda: double_thompson(num_arms=1), "num_arms must be a whole number >= 2, got 1"),
        (lambda: versatile_sparring(num_arms=1), "num_arms must be a whole number >= 2, got 1"),
        (lambda: versatile_sparring(num_arms=2, report="none"), "report must be one of rr, gaussian, got 'none'"),
        (lambda: versatile_sparring(num_arms=2, losses="iw"), "losses must be one of importance, reduced_variance"),
        (lambda: versatile_sparring(num_arms=2, report="gaussian"), "horizon must be given for Gaussian reports"),
        (lambda: versatile_sparring(num_arms=2, horizon=5), "horizon must be given for .* only for them, got 5"),
    ],
)
def test_factory_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (partial(ebs_local, num_arms=2, horizon=5), {"epsilon": 0.0}, "epsilon must be > 0, got 0.0"),
        (
            partial(ebs_local, num_arms=2, horizon=5),
            {"epsilon": 1.0, "failure_prob": 1.0},
            r"failure_prob must be in \(0, 1\), got 1.0",
        ),
        (
            partial(ebs_local, num_arms=2, horizon=5),
            {"epsilon": 1.0, "confidence_multiplier": math.nan},
            "confidence_multiplier must be > 0, got nan",
        ),
        (
            partial(ebs_local, num_arms=2, horizon=5),
            {"epsilon": 1.0, "confidence_multiplier": 1e300},
            "the squared radius must be finite, got inf",
        ),
        (
            partial(ebs_local, num_arms=2, horizon=5),
            {"epsilon": 1.0, "confidence_multiplier": 1e-300},
            "the squared radius must be > 0, got 0.0",
        ),
        (partial(rucb, num_arms=2), {"epsilon": math.nan}, "epsilon must be > 0, got nan"),
        (
            partial(rucb, num_arms=2),
            {"epsilon": 1.0, "exploration_rate": 0.5},
            "exploration_rate must be > 0.5, got 0.5",
        ),
        (
            partial(double_thompson, num_arms=2),
            {"epsilon": 1.0, "exploration_rate": math.inf},
            "must be finite, got inf",
        ),
        (partial(versatile_sparring, num_arms=2), {"epsilon": -1.0}, "epsilon must be > 0, got -1.0"),
        (
            partial(versatile_sparring, num_arms=2, report="gaussian", horizon=5),
            {"epsilon": 1.0, "delta": 0.0},
            r"delta must be in \(0, 1\), got 0.0",
        ),
        (
            partial(versatile_sparring, num_arms=2, report="gaussian", horizon=5),
            {"epsilon": 1.0, "delta": 0.1, "failure_prob": 0.0},
            r"failure_prob must be in \(0, 1\), got 0.0",
        ),
    ],
)
def test_value_errors(make, values, message):
    for function in (make().params, make().guarantee):
        with pytest.raises(ValueError, match=message):
            function(**values)


def test_randomized_response_takes_no_delta():
    with pytest.raises(TypeError):
        versatile_sparring(num_arms=2).params(epsilon=1.0, delta=0.1)
