"""Advice on your own means, and for people who come back."""

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from jaxdp import per_person
from jaxdp.__main__ import app
from jaxdp.bandits import bernoulli_bandit, pairwise_elimination, ucb
from jaxdp.core import Visits
from jaxdp.plotting import caption
from jaxdp.simulation import simulator, sweep
from jaxdp.studies import advise_problems
from jaxdp.studies.advise import advise
from jaxdp.studies.advise_report import figure, ranking, report

OWN = {"epsilon": 4.0, "num_seeds": 6, "key": jax.random.key(4), "trust": "central"}
PAIRS = ["pairwise_elimination_central", "pairwise_elimination"]


def test_your_own_means():
    """Compares with a direct run."""
    results = advise(means=[0.45, 0.6, 0.45], **OWN, learner=PAIRS)
    assert dict(results.sizes) == {"learner": 2, "instance": 1, "epsilon": 5, "horizon": 1, "seed": 6}
    assert (results.instance.item(), results.horizon.item(), int(results.num_arms)) == ("your", 10**9, 3)
    world = bernoulli_bandit([0.45, 0.6, 0.45])
    run = simulator(pairwise_elimination(num_arms=3), world, 10**9, engine="counts", checkpoints=[10**9])
    alone = sweep(lambda: run, axes={"epsilon": [4.0]}, num_seeds=6, key=OWN["key"], progress=False)
    rounds = results.loss.sel(learner="pairwise_elimination", epsilon=4.0).values.ravel()
    np.testing.assert_allclose(rounds, alone.rounds.values.ravel(), rtol=1e-6)
    assert "Instances: means 0.45, 0.6, 0.45; a learner may err with probability 0.05." in report(results)
    assert figure(results).axes


def test_a_rate_and_a_lift_are_means():
    lifted = advise(rate=0.45, lift=1 / 3, num_arms=3, **OWN, learner=PAIRS[:1])
    assert lifted.attrs["instances_text"].startswith("means 0.6, 0.45, 0.45; ")


def test_people_who_come_back():
    """Checks that the number of reports is chosen by regret, paired with runs of `per_person` in the same worlds."""
    asked = {"num_arms": 2, "num_seeds": 6, "key": jax.random.key(4), "epsilon": 2.0}
    results = advise(people=60, visits=4, learner=["ucb"], **asked)
    names = ["ucb (1 report)", "ucb (2 reports)"]  # nobody comes five times
    assert results.learner.values.tolist() == names
    assert (results.reports.values.tolist(), results.horizon.item()) == ([1, 2], 240)
    schedule = Visits.random(people=60, each=4)
    for name, count in zip(names, (1, 2), strict=True):
        learner = per_person(ucb(num_arms=2), reports=count)
        run = simulator(learner, bernoulli_bandit([0.75, 0.5], visits=schedule), 240)
        alone = sweep(run, axes={"epsilon": [2.0], "gap": [0.25]}, num_seeds=6, key=asked["key"])
        loss = results.loss.sel(learner=name, epsilon=2.0, instance="easy").values
        np.testing.assert_array_equal(loss.ravel(), alone.pseudo_regret.values.ravel())
    text = report(results)
    assert text.startswith("ADVICE at epsilon = 2 for one person, 240 rounds: ")
    assert "ucb (2 reports): 2-DP, local, one person" in text
    order, _ = ranking(results.loss.sel(epsilon=2.0, instance="easy", horizon=240))
    assert f"use {order[0]}" in text or "indistinguishable" in text
    assert "Claims are for one person." in caption(figure(results).axes)


def test_a_planted_claim_for_a_round_is_not_printed_as_one_for_a_person(monkeypatch):
    monkeypatch.setattr(advise_problems, "with_unit", lambda learner, unit, reports: learner)
    asked = {"num_arms": 2, "num_seeds": 5, "key": jax.random.key(4)}
    with pytest.raises(ValueError, match="trust must leave a candidate"):  # a claim for a round is left out
        advise(people=60, visits=4, learner=["ucb"], **asked)


def test_several_means_follow_one_option():
    told = CliRunner().invoke(app, ["advise", "--means", ".5", ".4", ".5", "--epsilon", "1"])
    assert "means must have two or more entries with one largest, got [0.5, 0.4, 0.5]" in str(told.exception)
    told = CliRunner().invoke(app, ["advise", "--epsilon", "1", "2"])  # other options are repeated
    assert told.exit_code == 2
