"""Advice: who is ranked first, who cannot be told apart, and what is told of those who were not measured."""

import dataclasses
from functools import partial

import jax
import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from jaxdp.__main__ import app
from jaxdp.registry import LEARNERS
from jaxdp.stats import paired
from jaxdp.studies import advise_problems
from jaxdp.studies.advise import LEVEL, STUDY, advise, changes, comparisons, figure, ranking, report
from jaxdp.studies.advise_problems import affordable

pytestmark = pytest.mark.once

SMALL: dict = {"num_arms": 3, "horizon": 400, "num_seeds": 10, "key": jax.random.key(0)}


def losses(means, seeds, draw) -> xr.DataArray:
    """Losses with noise that is common to all learners, and noise of their own."""
    own = draw.normal(size=(len(means), seeds)) + 3 * draw.normal(size=seeds) + np.asarray(means)[:, None]
    return xr.DataArray(own, {"learner": [f"l{index}" for index in range(len(means))]}, ("learner", "seed"))


def test_the_better_one_is_first_and_alone():
    order, best = ranking(losses([5.0, 0.0, 4.0, 6.0], 16, np.random.default_rng(0)))
    assert order[0] == "l1"
    assert best == ["l1"]


def naive(loss: xr.DataArray) -> list[str]:
    """Compares all with the one that happened to be first, each as if it were the only comparison."""
    first = loss["learner"].values[np.argmin(loss.mean("seed").values)]
    against = paired(loss, "learner", against=first, adjust=None)
    return [first, *against.learner.values[(against.p_value > LEVEL).values]]


def test_equal_candidates_are_undecided():
    """One of them is called worse in at most 5% of all rankings, though the first is chosen by its mean."""
    draw = np.random.default_rng(1)
    worlds = [losses([0.0] * 8, 10, draw) for _ in range(60)]
    limit = LEVEL + 5 * np.sqrt(LEVEL * (1 - LEVEL) / len(worlds))
    assert np.mean([len(ranking(loss)[1]) < 8 for loss in worlds]) <= limit
    assert np.mean([len(naive(loss)) < 8 for loss in worlds]) > limit  # choosing by the mean costs more than that


def test_ties_and_one_candidate_alone():
    same = losses([1.0], 6, np.random.default_rng(2))
    assert ranking(same) == (["l0"], ["l0"])
    twice = xr.concat([same, same.assign_coords(learner=["l1"])], "learner")
    assert ranking(twice) == (["l0", "l1"], ["l0", "l1"])
    assert comparisons(twice).p_adjusted.values.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_planted_candidate_with_a_tenth_of_the_noise(monkeypatch):
    """It is first; a copy of the honest one, equal bit for bit, stays undecided beside it."""
    honest = LEARNERS["explore_then_commit"]

    def altered(*, num_arms: int, explore_rounds: int, factor: float):
        made = honest.factory(num_arms=num_arms, explore_rounds=explore_rounds)
        return made._replace(params=lambda *, epsilon: made.params(epsilon=factor * epsilon))

    def quieter(*, num_arms: int, explore_rounds: int):
        return altered(num_arms=num_arms, explore_rounds=explore_rounds, factor=10.0)

    def copied(*, num_arms: int, explore_rounds: int):
        return altered(num_arms=num_arms, explore_rounds=explore_rounds, factor=1.0)

    planted = {
        name: dataclasses.replace(honest, factory=make) for name, make in (("quieter", quieter), ("copied", copied))
    }
    problem = advise_problems.PROBLEMS["bandit"]._replace(candidates=lambda: {"honest": honest, **planted})
    monkeypatch.setitem(advise_problems.PROBLEMS, "bandit", problem)
    results = advise(**{**SMALL, "num_seeds": 40, "horizon": 1000}, epsilon=0.03)
    loss = results.loss.sel(instance="easy", epsilon=0.03, horizon=1000, drop=True)
    order, best = ranking(loss)
    assert order[0] == "quieter"
    assert best == ["quieter"]
    _, best = ranking(loss.sel(learner=["honest", "copied"]))
    assert set(best) == {"honest", "copied"}
    assert "use quieter" in report(results) or "none is best on every instance" in report(results)


def test_trust_and_claims_choose_candidates():
    chosen = partial(advise, **SMALL, learner=["ucb", "ucb_central"])
    assert chosen(trust="local").learner.values.tolist() == ["ucb"]
    with pytest.raises(ValueError, match="trust must leave a candidate for bandit, got local"):
        advise(**SMALL, trust="local", learner=["ucb_central"])
    with pytest.raises(ValueError, match="trust must leave a candidate for bandit, got local with pure"):
        advise(**SMALL, trust="local", pure=True, learner=["tsallis_inf_gaussian"])


WRONG = {
    "problem": ({"problem": "chess"}, "problem must be one of"),
    "epsilon": ({"epsilon": float("inf")}, "epsilon must be finite, got inf"),
    "horizon": ({"horizon": 1000.5}, r"horizon must be a whole number, got 1000\.5"),
    "seeds": ({"num_seeds": 4}, "num_seeds must be a whole number >= 5, got 4"),
    "learner": ({"learner": ["mle"]}, "learner must be one of"),
    "trust": ({"trust": "nobody"}, "trust must be one of"),
    "delta": ({"delta": 2.0}, r"delta must be in \(0, 1\), got 2\.0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    changed, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        advise(**{**SMALL, **changed})


def told(losses_at: dict[float, list[float]]) -> str:
    """Who is first at each budget, of a first and a second learner with these mean losses."""
    draw = np.random.default_rng(3)
    each = [losses(means, 16, draw) for means in losses_at.values()]
    results = xr.Dataset({"loss": xr.concat(each, xr.IndexVariable("epsilon", list(losses_at)))})
    return changes(results.expand_dims(instance=["easy"], horizon=[100]), "easy", 100)


def test_what_changes_with_epsilon_is_said_where_that_is_clear():
    assert "who loses least changes" in told({0.1: [0.0, 9.0], 1.0: [9.0, 0.0]})
    assert "who loses least is the same" in told({0.1: [0.0, 9.0], 1.0: [0.0, 9.0]})
    undecided = told({0.1: [0.0, 0.0], 1.0: [9.0, 0.0]})  # the second may be the best at both
    assert "who loses least may be the same" in undecided
    assert "epsilon 1: l1" in undecided


def test_what_candidates_do_not_promise_alike_is_told():
    both = advise(**{**SMALL, "num_seeds": 5}, learner=["explore_then_commit", "ucb_central"])
    assert "every model of trust" not in report(both)
    assert "different units" not in report(both)
    other = both.assign_coords(
        trust_model=("learner", ["central", "local"]),
        unit=("learner", ["one reward, replace-one", "one user, add-one"]),
    )
    said = report(other)
    assert "An epsilon does not promise the same in every model of trust" in said
    assert "different units (one reward, replace-one; one user, add-one)" in said
    assert next(line.split()[1] for line in said.splitlines() if line.startswith("ucb_central ")) == "local"


@pytest.mark.slow
def test_what_is_too_slow_is_measured_at_fewer_rounds_and_said_so(monkeypatch):
    monkeypatch.setattr("jaxdp.studies.advise_problems.SECONDS_OF_A_CANDIDATE", 1e-9)
    monkeypatch.setattr("jaxdp.studies.advise_problems.FEWEST_ROUNDS", 300)
    results = advise(**{**SMALL, "horizon": 900, "num_seeds": 5}, learner=["thompson", "ucb_central"])
    assert results.horizon.values.tolist() == [200, 900]
    assert results.loss.sel(learner="thompson", horizon=900).isnull().all()
    assert results.loss.sel(learner="ucb_central").notnull().all()
    assert results.loss.sel(horizon=200).notnull().all()
    said = report(results)
    assert "Too slow for 900 rounds here: thompson. So all are compared at 200 rounds" in said
    assert figure(results).axes


def test_rounds_that_can_be_afforded():
    by_rounds, by_counts = LEARNERS["thompson"].make(), LEARNERS["ucb_central"].make()
    assert affordable([by_counts], 10, 10**12, 100) == 10**12
    assert affordable([by_rounds, by_counts], 10, 10**6, 100) == 200_000
    assert affordable([by_rounds], 10, 5000, 100) == 5000


@pytest.mark.parametrize("problem", ["bandit", "duels", "experts"])
def test_every_problem_has_candidates_at_other_sizes(problem):
    setting = advise_problems.PROBLEMS[problem]
    world = setting.world(4)
    found = {name: setting.sized(entry, 4, 1000).make() for name, entry in setting.candidates().items()}
    assert len(found) >= 5
    assert world.interface is not None
    assert all(one.interface is None or one.interface.action == world.interface.action for one in found.values())


def test_the_command(tmp_path):
    arguments = ["advise", "--arms", "3", "--horizon", "4e2", "--seeds", "5", "--learner", "ucb_central"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "ADVICE at epsilon = 1, 400 rounds: use ucb_central." in result.output
    assert "ucb_central: 1-DP, central, one round's reward; proved; by counts" in result.output
    assert (tmp_path / "out" / "figure.png").stat().st_size > 0
    assert STUDY.simulate is advise
