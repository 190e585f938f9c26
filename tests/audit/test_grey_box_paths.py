"""Blocks and counts are read as single rounds are, and so are faults that are in one of them alone."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import registry
from jaxdp.audit import UserData, full_information, grey_box, grey_box_of_paths
from jaxdp.audit.forced import Base, run_starter
from jaxdp.audit.play import with_short_blocks
from jaxdp.audit.replay import Programs, replay
from jaxdp.audit.steps import steps_of
from jaxdp.core import BlockPlan, Blocks, Interface, Space, State, arms
from tests.audit import small_learners as small
from tests.contract.local_commit import local_commit

COMMIT = registry.LEARNERS["explore_then_commit"]
ROUNDS = {"ebs_phased": 12, "ebs_elimination": 6, "ebs_elimination_gaussian": 6}
UNREADABLE = ("ebs_elimination", "ebs_elimination_gaussian")  # with blocks that draw noise inside their kernels


def found(learner, path, entry=COMMIT, rounds=13, **options):
    options = {"num_bases": 2, "num_neighbours": 32, "answer": entry.users_answer, **options}
    return grey_box(jax.random.key(0), learner, entry.values, entry.make_user, rounds=rounds, path=path, **options)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("explore_then_commit", "blocks"),
        ("explore_then_commit", "counts"),
        ("explore_then_commit_bounded", "blocks"),
        ("ebs_phased", "blocks"),
        ("ebs_phased", "counts"),
    ],
)
def test_registered_blocks_and_counts_spend_what_they_claim(name, path):
    entry = registry.LEARNERS[name]
    result = found(entry.make(), path, entry, ROUNDS.get(name, 13))
    assert result.verdict == "consistent", result
    assert result.spent == pytest.approx(entry.values["epsilon"], rel=1e-4)
    (site,) = result.sites
    assert site.site == f"laplace in update_{'block' if path == 'blocks' else path}"
    assert site.measured == pytest.approx(site.declared, rel=1e-4)


@pytest.mark.parametrize("path", ["blocks", "counts"])
def test_half_the_noise(path):
    learner = small.quieter(COMMIT.make(), 2.0, path)
    result = found(learner, path)
    assert result.faults == ("releases cost epsilon = 2 at delta = 0, but 1 is claimed",)


def test_half_the_noise_of_counts_does_not_hide_in_rounds():
    assert found(small.quieter(COMMIT.make(), 2.0, "counts"), "rounds", rounds=7).verdict == "consistent"


@pytest.mark.parametrize("path", ["blocks", "counts"])
def test_no_noise_at_all(path):
    assert found(small.quieter(COMMIT.make(), np.inf, path), path).spent == np.inf


def test_totals_that_no_mechanism_sees():
    right = COMMIT.make()
    assert right.counts is not None

    def update_counts(key, params, state, plan, report):
        counts, won = report
        round_ = state.public.round + counts.sum(dtype=state.public.round.dtype)
        return State(
            state.private,
            state.public._replace(round=round_, best_arm=jnp.argmax(won).astype(state.public.best_arm.dtype)),
        )

    wrong = right._replace(counts=right.counts._replace(update_counts=update_counts))
    result = found(wrong, "counts", num_bases=8)  # one user in some runs decides which total is the largest
    assert result.faults == (
        "the public state changes although all values that get noise are held fixed: a path around the noise",
    )

    def own_noise(key, params, state, plan, report):
        noisy = report[1].astype(float) + jax.random.laplace(key, report[1].shape) / params.epsilon
        return update_counts(key, params, state, plan, (report[0], noisy))

    result = found(right._replace(counts=right.counts._replace(update_counts=own_noise)), "counts", num_bases=8)
    assert (result.verdict, result.faults) == ("inconclusive", ())
    assert "nothing was recorded" in result.notes[0]


def test_compiled_blocks_record_what_single_operations_record():
    entry = registry.LEARNERS["ebs_phased"]
    learner, rounds = with_short_blocks(entry.make(), 12), 12
    params, claim = jax.tree.map(jnp.asarray, learner.params(**entry.values)), learner.guarantee(**entry.values)
    scene, users = run_starter(Base(learner, entry.users_answer, params, claim, "blocks", entry.make_user, rounds))(
        *jax.random.split(jax.random.key(0))
    )
    streams = jax.tree.map(lambda x: jnp.stack([x, x[::-1]]), users)
    programs: Programs = {}
    both = [
        replay(scene, steps_of(scene), jax.random.key(1), streams, np.asarray([-1, 0]), programs=given)
        for given in (programs, None)
    ]
    assert programs
    assert None not in programs.values()
    compiled, single = ([(one.round, one.site, one.entry.value) for one in run.releases] for run in both)
    assert [one[:2] for one in compiled] == [one[:2] for one in single]
    for one, other in zip(compiled, single, strict=True):
        np.testing.assert_array_equal(one[2], other[2])


@pytest.mark.parametrize("name", UNREADABLE)
def test_noise_inside_kernels_cannot_be_read(name):
    entry = registry.LEARNERS[name]
    result = found(entry.make(), "blocks", entry, ROUNDS[name])
    assert (result.verdict, result.faults) == ("inconclusive", ())
    assert "nothing was recorded" in result.notes[0]


def test_blocks_that_cannot_be_read_are_what_rounds_are():
    entry = registry.LEARNERS["ebs_elimination"]
    learner = entry.make()
    options: dict[str, Any] = {"rounds": 6, "num_neighbours": 32, "answer": entry.users_answer}
    right = grey_box_of_paths(jax.random.key(0), learner, entry.values, entry.make_user, **options)
    assert (right.verdict, right.notes) == ("consistent", ())

    def less(of):
        def update_block(keys, params, state, plan, report):
            noise = dataclasses.replace(params.noise, epsilon=params.noise.epsilon * 2)
            return of(keys, dataclasses.replace(params, noise=noise), state, plan, report)

        return update_block

    blocks = tuple(each._replace(update_block=less(each.update_block)) for each in learner.blocks)
    half = grey_box_of_paths(
        jax.random.key(0), learner._replace(blocks=blocks), entry.values, entry.make_user, **options
    )
    assert half.verdict == "inconclusive"
    assert "in blocks: the public state depends on the users and the key" in half.notes[0]


@pytest.mark.parametrize(
    ("path", "verdict"),
    [("rounds", "consistent"), ("blocks", "consistent"), ("counts", "inconclusive")],
)
def test_reports_of_local_learners(path, verdict):
    """Checks that reports in blocks come from mechanisms; their total has the right distribution, and no tape entry."""
    result = found(local_commit(num_arms=3, explore_rounds=12), path)
    assert result.verdict == verdict
    if path == "blocks":
        (site,) = result.sites
        assert (site.site, site.releases, result.spent) == ("randomized_response in privatize", 13, 1.0)


def test_all_paths_as_one():
    options: dict[str, Any] = {"rounds": 13, "num_neighbours": 32}
    right = grey_box_of_paths(jax.random.key(0), COMMIT.make(), COMMIT.values, COMMIT.make_user, **options)
    assert (right.verdict, right.spent) == ("consistent", pytest.approx(1.0))
    # blocks that are single rounds are not read again
    assert [site.site for site in right.sites] == ["laplace in update", "in counts: laplace in update_counts"]
    half = small.quieter(small.quieter(COMMIT.make(), 2.0, "blocks"), 2.0, "counts")
    wrong = grey_box_of_paths(jax.random.key(0), half, COMMIT.values, COMMIT.make_user, **options)
    assert wrong.faults == tuple(
        f"in {path}: releases cost epsilon = 2 at delta = 0, but 1 is claimed" for path in ("blocks", "counts")
    )


def test_what_cannot_be_read_is_a_note():
    learner = small.branches_on_data()
    options: dict[str, Any] = {"answer": lambda answers, history, action: answers, "rounds": 2}
    result = grey_box_of_paths(jax.random.key(0), learner, {"epsilon": 1.0}, small.draw_corners(1), **options)
    assert (result.verdict, result.faults) == ("inconclusive", ())
    assert "not behind a branch on private data" in result.notes[0]


def test_paths_that_a_learner_lacks():
    with pytest.raises(ValueError, match="path must be one of the learner's, rounds, got 'counts'"):
        grey_box(
            jax.random.key(0),
            small.follows_itself(0.0),
            {"epsilon": 1.0},
            small.draw_corners(1),
            rounds=1,
            path="counts",
        )
    with pytest.raises(ValueError, match="path must be one of"):
        found(COMMIT.make(), "block")


def shows_contexts_in_blocks(plan_contexts):
    """Plays the contexts as plan_contexts(contexts), in blocks of two rounds."""

    def plan(keys, params, public, contexts, limit):
        return BlockPlan(plan_contexts(contexts), limit)

    def update_block(keys, params, state, plan, report):
        return state, plan.length

    learner = small.shows_its_context("joint")
    spaces = Interface(arms(2), Space("numbers", ()), context=Space("integers", (), 0, 1))
    return learner._replace(blocks=(Blocks(2, plan, update_block),), interface=spaces)


@pytest.mark.parametrize(("plan_contexts", "is_fault"), [(lambda x: x, False), (lambda x: jnp.roll(x, 1), True)])
def test_the_play_of_another_user_of_a_block(plan_contexts, is_fault):
    def draw_user(key):
        return UserData(jnp.zeros(()), jax.random.bernoulli(key).astype(jnp.int32))

    learner = shows_contexts_in_blocks(plan_contexts)
    options = {"rounds": 4, "answer": full_information, "num_bases": 2, "num_neighbours": 8, "path": "blocks"}
    audited = grey_box(jax.random.key(0), learner, {"epsilon": 1.0}, draw_user, **options)
    assert any(fault.startswith("the play changes") for fault in audited.faults) == is_fault
    assert (audited.verdict == "consistent") != is_fault


def test_users_of_a_block_with_contexts_know_the_plays_before_the_block():
    def draw_user(key, history):
        return UserData(history.actions.sum().astype(float), jnp.int32(1))

    learner = shows_contexts_in_blocks(lambda contexts: contexts)
    claim = small.guarantee()(epsilon=1.0)
    base = Base(learner, full_information, 1.0, claim, "blocks", draw_user, 4)
    scene, users = run_starter(base)(*jax.random.split(jax.random.key(0)))
    assert users.answers.tolist() == scene.transcript.reports.tolist() == [0, 0, 2, 2]
