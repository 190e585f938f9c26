"""Faults that only reading the noise's inputs can find, each beside a correct twin that must not be flagged."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import UserData, full_information, grey_box
from jaxdp.audit.replay import LANE
from jaxdp.audit.unrecorded import SHIFTS, _shift_entries
from jaxdp.core import Guarantee, State
from jaxdp.mechanisms import (
    above_threshold_init,
    above_threshold_step,
    gaussian,
    laplace,
    noisy_max,
    randomize_scalar,
    randomized_response,
    tape,
    zcdp_epsilon,
)
from jaxdp.numerics.fixed_point import to_float
from tests.audit import small_learners as small


def look(learner, size=1, rounds=3, **options):
    options = {
        "answer": full_information,
        "num_bases": 2,
        "num_neighbours": 64,
        "draw_user": small.draw_corners(size),
        **options,
    }
    return grey_box(jax.random.key(0), learner, {"epsilon": 1.0}, rounds=rounds, **options)


def noisy(key, value, epsilon, sensitivity=1.0):
    return laplace(key, value, epsilon, l1_sensitivity=sensitivity)


# ---- noise that depends on the data ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("release", "fault"),
    [
        (lambda k, p, r: noisy(k, r[0], p, 1 + 9 * r[0]), "sensitivity of laplace in update depends on private data"),
        (lambda k, p, r: noisy(k, r[0], p / (1 + r[0])), "epsilon of laplace in update depends on private data"),
        (
            lambda k, p, r: gaussian(k, r[0], 6 + 94 * r[0], l2_sensitivity=1.0),
            "noise_stddev of gaussian in update depends on private data",
        ),
        (
            lambda k, p, r: to_float(
                above_threshold_init(k, p, threshold=r[0]).noisy_threshold, jnp.result_type(float)
            ),
            "threshold of above_threshold_init in update depends on private data",
        ),
    ],
)
def test_noise_that_follows_the_data(release, fault):
    assert fault in look(small.releases_of(release)).faults


def test_a_value_that_becomes_nan():
    def release(key, params, report):
        return noisy(key, jnp.where(report[0] > 0, jnp.nan, 0.0), params)

    found = look(small.releases_of(release))
    assert "laplace in update changes by inf in l1 norm, but 1 is declared" in found.faults
    assert found.spent == np.inf


# ---- paths around the noise ------------------------------------------------------------------------------------------
def test_the_value_itself_beside_its_noisy_release():
    def release(key, params, report):
        return jnp.stack([noisy(key, report[0], params), report[0]])

    found = look(small.releases_of(release, np.zeros(2)))
    assert found.faults == (
        "the public state changes although all values that get noise are held fixed: a path around the noise",
    )


def test_a_report_with_the_value_itself():
    blank = small.releases_of(lambda key, params, report: 0.0 * report[0], 0.0, small.guarantee("local"))

    def privatize(key, params, public, context, action, feedback):
        return noisy(key, feedback, params), feedback

    learner = blank._replace(privatize=privatize, update=lambda key, params, state, report: state)
    assert look(learner).faults == (
        "the report changes although all values that get noise are held fixed: a path around the noise",
    )


def draw_context(key):
    return UserData(jnp.zeros(1), jax.random.randint(key, (), 0, 3))


def test_plays_of_private_contexts():
    def found(trust_model):
        return look(small.shows_its_context(trust_model), draw_user=draw_context)

    assert found("joint").verdict == "consistent"  # nobody else sees the own play
    assert found("central").faults == (
        "the play changes although all values that get noise are held fixed: a path around the noise",
    )


@pytest.mark.parametrize(("share", "verdict"), [(1.0, "consistent"), (5.0, "violated")])
def test_a_play_that_is_noised(share, verdict):
    def act(key, params, public, context):
        return noisy_max(key, jax.nn.one_hot(context, 3), share * params, sensitivity=1.0)

    learner = small.shows_its_context("central")._replace(act=act)
    found = look(learner, draw_user=draw_context)
    assert [site.site for site in found.sites] == ["noisy_max in act"]
    assert found.verdict == verdict


def test_a_local_learner_may_randomize_in_act():
    def act(key, params, public, context):
        return randomized_response(key, context, params, num_labels=3)

    def privatize(key, params, public, context, action, feedback):
        return action

    learner = small.shows_its_context("local")._replace(act=act, privatize=privatize)
    found = look(learner, draw_user=draw_context)
    assert (found.verdict, found.spent) == ("consistent", pytest.approx(1.0))


def test_a_joint_learner_may_see_reports():
    """Checks that the curator's reports are not released."""

    def update(key, params, state, report):
        return State((), noisy(key, report[0], params))

    learner = small.curator(update, lambda: State((), jnp.zeros(())), small.guarantee("joint"))
    assert look(learner).verdict == "consistent"


# ---- keys ------------------------------------------------------------------------------------------------------------
def test_one_key_for_two_randomizers():
    def release(share):
        def both(key, params, report):
            first, second = (key, key) if share else jax.random.split(key)
            bits = report.astype(jnp.int32)
            return jnp.stack(
                [randomized_response(k, b, params / 2) for k, b in zip((first, second), bits, strict=True)]
            )

        return small.releases_of(both, np.zeros(2, np.int32))

    assert look(release(False), 2).verdict == "consistent"
    assert "the same key serves twice: randomized_response in update and randomized_response in update, call 2" in (
        look(release(True), 2).faults
    )


def test_a_key_of_its_own():
    def release(key, params, report):
        return noisy(jax.random.key(7), report[0], params)

    faults = look(small.releases_of(release), rounds=1).faults  # its noise does not follow its distribution, either
    assert "laplace in update has the same key in every run" in faults


# ---- AboveThreshold --------------------------------------------------------------------------------------------------
def sparse(step, num_runs=1):
    def init(key, params):
        keys = jax.random.split(key, num_runs)
        runs = tuple(above_threshold_init(k, params, threshold=1.0) for k in keys)
        return State(runs, jnp.zeros(num_runs, bool))

    return small.curator(step, lambda: State((), ()))._replace(init=init)


def test_two_runs_cost_twice():
    def step(key, params, state, report):
        keys = jax.random.split(key, 2)
        pairs = [above_threshold_step(k, run, report[0]) for k, run in zip(keys, state.private, strict=True)]
        return State(tuple(run for run, _ in pairs), jnp.stack([above for _, above in pairs]))

    found = look(sparse(step, 2), rounds=4)
    assert found.spent == pytest.approx(2.0)
    assert found.verdict == "violated"


@pytest.mark.parametrize(("goes_on", "verdict"), [(True, "violated"), (False, "consistent")])
def test_going_on_after_a_report_costs_again(goes_on, verdict):
    def total(key, params, state, report):
        """Counts every user in all later queries."""
        run, count = state.private
        run = run._replace(halted=jnp.asarray(False)) if goes_on else run
        count = count + report[0]
        run, above = above_threshold_step(key, run, 100.0 + count)
        return State((run, count), above[None])

    def init(key, params):
        run = above_threshold_init(key, params, threshold=1.0)
        return State((run, jnp.zeros(())), jnp.zeros(1, bool))

    learner = small.curator(total, lambda: State((), ()))._replace(init=init)
    found = look(learner, rounds=6)
    assert found.verdict == verdict
    assert (found.spent > 1.5) == goes_on


def test_a_restart_chosen_by_where_costs_nothing():
    """Draws a threshold in each round that may stay unused: thresholds independent of the data cost nothing."""

    def step(key, params, state, report):
        (run,) = state.private
        key_step, key_init = jax.random.split(key)
        run, above = above_threshold_step(key_step, run, report[0])
        fresh = above_threshold_init(key_init, params, threshold=1.0)
        run = jax.tree.map(lambda new, old: jnp.where(above, new, old), fresh, run)
        return State((run,), above[None])

    found = look(sparse(step), rounds=6)
    assert (found.verdict, found.spent) == ("consistent", pytest.approx(1.0))


# ---- accounting ------------------------------------------------------------------------------------------------------
def test_monotone_scores_need_half_the_noise():
    def release(key, params, report):
        return noisy_max(key, jnp.stack([report[0], jnp.zeros(())]), params, sensitivity=0.5)

    assert look(small.releases_of(release, np.int32(0))).verdict == "consistent"

    def both_ways(key, params, report):
        return noisy_max(key, jnp.stack([report[0], -report[0]]), params, sensitivity=0.5)

    assert look(small.releases_of(both_ways, np.int32(0))).verdict == "violated"


def test_sensitivities_are_of_each_vector_and_costs_of_all():
    def vectors(key, params, report):
        scores = jnp.outer(jnp.ones(2), jnp.asarray([1.0, -1.0])) * report[0]
        return noisy_max(key, scores, params / 2, sensitivity=1.0)

    found = look(small.releases_of(vectors, np.zeros(2, np.int32)))
    assert (found.verdict, found.spent) == ("consistent", pytest.approx(1.0))

    def scalars(key, params, report):
        return randomize_scalar(key, jnp.ones((2, 3)) * (report[0] - 0.5), params / 6, bound=0.5)

    found = look(small.releases_of(scalars, np.zeros((2, 3), np.int32)))
    assert (found.verdict, found.spent) == ("consistent", pytest.approx(1.0))


def test_many_gumbel_selections_as_concentrated_dp():
    epsilon, delta, rounds = 0.2, 1e-6, 20
    claimed = zcdp_epsilon(rounds * epsilon**2 / 8, delta)

    def update(key, params, state, report):
        total = state.private + report[0]  # every user counts in all later selections
        scores = jnp.stack([total, -total])
        return State(total, noisy_max(key, scores, epsilon, sensitivity=1.0, noise="gumbel"))

    def claim(*, epsilon):
        return dataclasses.replace(small.guarantee(delta=delta)(epsilon=epsilon), epsilon=claimed)

    learner = small.curator(update, lambda: State(jnp.zeros(()), jnp.int32(0)), claim)
    found = look(learner, rounds=rounds)
    assert found.verdict == "consistent"
    assert found.spent == pytest.approx(claimed, rel=0.05)


def test_a_claimed_rho_or_mu():
    def release(key, params, report):
        return gaussian(key, report[0], 6.0, l2_sensitivity=1.0)

    def found(make, budget):
        claim = make(budget, trust_model="central", privacy_unit="one round", argument="for tests")
        return look(small.releases_of(release, 0.0, lambda *, epsilon: claim))

    assert found(Guarantee.zcdp, 1 / 72).verdict == "consistent"
    assert found(Guarantee.zcdp, 1e-4).faults == ("releases cost rho = 0.0138889, but 0.0001 is claimed",)
    assert found(Guarantee.gaussian, 1 / 6).verdict == "consistent"
    assert found(Guarantee.gaussian, 0.15).faults == ("releases cost mu = 0.166667, but 0.15 is claimed",)


@pytest.mark.parametrize(
    ("mu", "verdict"),  # of Laplace noise at epsilon = 1.8, which is 1.66 and follows to be 2.14 for any pure mechanism
    [(2.15, "consistent"), (1.0, "inconclusive"), (0.5, "violated")],
)
def test_pure_noise_under_a_gaussian_claim(mu, verdict):
    claim = Guarantee.gaussian(mu, trust_model="central", privacy_unit="one round", argument="for tests")

    def release(key, params, report):
        return laplace(key, report[0], 1.8, l1_sensitivity=1.0)

    found = look(small.releases_of(release, 0.0, lambda *, epsilon: claim))
    assert found.verdict == verdict
    assert ("releases cost at most mu = 2.14" in "".join(found.notes)) == (verdict != "consistent")


def test_many_pure_releases_under_a_gaussian_claim():
    """Adds mus in squares; the conversion by zero-concentrated DP would exceed what the claim implies."""
    claim = Guarantee.gaussian(1.26, trust_model="central", privacy_unit="one round", argument="for tests")

    def release(key, params, report):
        return laplace(key, jnp.full(1, report[0]), 0.1, l1_sensitivity=1.0)

    def many(key, params, report):
        return jnp.stack([release(each, params, report) for each in jax.random.split(key, 100)])

    found = look(small.releases_of(many, np.zeros((100, 1)), lambda *, epsilon: claim), rounds=1)
    assert (found.verdict, found.notes) == ("consistent", ())


# ---- what cannot be read ---------------------------------------------------------------------------------------------
def first_branch(key, value, epsilon):
    return noisy(key, value, epsilon)


def second_branch(key, value, epsilon):
    return noisy(key, 0 * value, epsilon)


@pytest.mark.parametrize("again", [False, True])
def test_a_private_branch_is_refused_also_when_it_was_traced_before(again):
    def release(key, params, report):
        return jax.lax.cond(report[0] > 0.5, first_branch, second_branch, key, report[0], params)

    with pytest.raises(ValueError, match="not behind a branch on private data"):
        look(small.releases_of(release))


def test_a_vmap_around_a_mechanism_is_refused():
    def release(key, params, report):
        return jax.vmap(lambda k, x: noisy(k, x, params / 2))(jax.random.split(key, 2), report)

    with pytest.raises(ValueError, match="nor inside a vmap"):
        look(small.releases_of(release, np.zeros(2)), 2)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            tape.Entry("mine", np.zeros(2), "L1", epsilon=1.0),
            "norm must be one of l1, l2, max, spread, changed, any, got 'L1'",
        ),
        (tape.Entry("mine", np.zeros(2), "l1"), "epsilon or noise_stddev must be given for an entry"),
        (tape.Entry("mine", np.zeros(0), "l1", epsilon=1.0), r"value must not be empty, got shape \(0,\)"),
    ],
)
def test_wrong_entries(entry, message):
    with tape.recording(), pytest.raises(ValueError, match=message):
        tape.record(entry)


def test_a_mechanism_of_ones_own():
    def release(scale):
        def clipped(key, params, report):
            value = tape.record(tape.Entry("mine", report[0], "l1", key, 1.0, params))
            return value + scale / params * jax.random.laplace(key)

        return small.releases_of(clipped)

    found = look(release(1.0))
    assert (found.verdict, found.sites[0].site, found.spent) == ("consistent", "mine in update", 1.0)


@pytest.mark.parametrize("base", [np.zeros((2, 8)), np.asarray([[3e6], [0.0]]), np.full((3, 1), 7, np.int32)])
def test_every_choice_of_a_largest_entry_changes_under_a_shift(base):
    """Checks entries with any indices, and entries far from each other."""
    chosen = [
        jax.vmap(
            lambda value, shift=shift, by_index=by_index: _shift_entries(shift, by_index, value).argmax(axis=0),
            axis_name=LANE,
        )(jnp.asarray([base]))
        for shift, by_index in SHIFTS
    ]
    assert (np.asarray(chosen)[:, 0] != base.argmax(axis=0)).any(axis=0).all()


def test_bad_arguments():
    learner = small.follows_itself(0.0)
    with pytest.raises(ValueError, match="key must be one typed PRNG key"):
        grey_box(0, learner, {"epsilon": 1.0}, small.draw_corners(1), rounds=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="draw_user must return UserData, got"):
        look(learner, draw_user=lambda key: jax.random.bernoulli(key, shape=(1,)))
