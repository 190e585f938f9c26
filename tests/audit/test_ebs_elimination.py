"""Counters of elimination by effective Borda scores, and mistakes in their noise."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from jaxdp import registry
from jaxdp.audit import feedback_of_pair, grey_box
from jaxdp.dueling import ebs_elimination
from jaxdp.dueling._ebs_elimination import counters as ebs_counters

VALUES = {"laplace": {"epsilon": 1.0}, "gaussian": {"epsilon": 1.0, "delta": 1e-3}}


def look(learner, values, name, rounds, change=lambda params: params, bases=3):
    def params(**given):
        return change(learner.params(**given))

    return grey_box(
        jax.random.key(0),
        learner._replace(params=params),
        values,
        registry.LEARNERS[name].make_user,
        rounds=rounds,
        answer=feedback_of_pair,
        num_bases=bases,
        num_neighbours=64,
    )


CASES = [(noise, wrong) for noise in VALUES for wrong in (False, True)]


@pytest.mark.parametrize(("noise", "wrong"), CASES)
def test_noise_for_one_level(noise, wrong):
    """Checks binary trees: four entries of an arm end three levels of five."""
    learner = ebs_elimination(num_arms=3, horizon=16, arity=2, noise=noise)

    def change(params):
        node, levels = params.noise, 5 if wrong else 1
        if noise == "laplace":
            moved = {"l1_sensitivity": node.l1_sensitivity / node.l1_sensitivity.dtype.type(levels)}
        else:
            moved = {"noise_stddev": node.noise_stddev / node.noise_stddev.dtype.type(levels**0.5)}
        return dataclasses.replace(params, noise=dataclasses.replace(node, **moved))

    found = look(learner, VALUES[noise], "ebs_elimination", 10, change)
    assert found.verdict == ("violated" if wrong else "consistent")
    if noise == "laplace":
        assert found.spent == pytest.approx(1.5 if wrong else 0.3, rel=1e-4)


def exact_inner_nodes(patch):
    """Releases inner nodes of removals exactly, where each arm has noise of its own; leaves get noise."""
    right = ebs_counters._record_and_draw

    def released(trees, key, params, sums, shape, nodes):
        value, noise = right(trees, key, params, sums, shape, nodes)
        is_inner = len(shape) == 2 and shape[1] > 1
        return (sums, jnp.zeros_like(noise)) if is_inner else (value, noise)

    patch.setattr(ebs_counters, "_record_and_draw", released)


def inner_nodes_key(patch):
    """Gives a removal's inner nodes the noise of the nodes that the same round's duel ends."""
    patch.setattr(ebs_counters, "REMOVED_UPPER", ebs_counters.UPPER)


def leaves_key(patch):
    """Gives a removal's leaves the key of its inner nodes."""
    patch.setattr(ebs_counters, "REMOVED_LEAF", ebs_counters.REMOVED_UPPER)


def rounds_key(patch):
    """Gives a removal's leaves the noise of the round's leaf."""
    right = ebs_counters.feed

    def feed(trees, keys, params, nodes, entries, fed, *, shared):
        return right(trees, keys if shared else (rounds[-1], keys[1]), params, nodes, entries, fed, shared=shared)

    rounds, remove = [], ebs_counters.remove

    def removed(trees, key, params, public, private):
        rounds.append(key)
        return remove(trees, key, params, public, private)

    patch.setattr(ebs_counters, "feed", feed)
    patch.setattr(ebs_counters, "remove", removed)


@pytest.mark.parametrize(
    ("mistake", "fault"),
    [
        (None, None),
        (exact_inner_nodes, "a path around the noise"),
        (inner_nodes_key, "the same key serves twice"),
        (leaves_key, "the same key serves twice"),
        (rounds_key, "the same key serves twice"),
    ],
)
@pytest.mark.parametrize("noise", VALUES)
def test_removals_that_end_inner_nodes(monkeypatch, noise, mistake, fault):
    if mistake:
        mistake(monkeypatch)
    learner = ebs_elimination(num_arms=3, horizon=16, arity=2, noise=noise)
    found = look(learner, {**VALUES[noise], "confidence_multiplier": 0.02}, "ebs_elimination", 14, bases=6)
    assert found.verdict == ("violated" if mistake else "consistent")
    assert not fault or any(fault in each for each in found.faults)


def test_a_transcript_shows_most_of_the_claim():
    """Attacks six transcripts of a run that drops arms.

    A black box finds half, as an outcome counts twice in few runs.
    """
    entry = registry.LEARNERS["ebs_elimination"]
    found = [
        grey_box(
            jax.random.key(key),
            entry.make(),
            entry.values,
            entry.make_user,
            rounds=24,
            answer=feedback_of_pair,
            num_bases=2,
            num_neighbours=64,
        )
        for key in range(3)
    ]
    assert {one.verdict for one in found} == {"consistent"}
    assert max(one.loss or 0 for one in found) >= 0.85
    assert max(one.loss or 0 for one in found) <= 1
