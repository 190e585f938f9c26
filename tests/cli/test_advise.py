"""Advice: the first candidates, the indistinguishable ones, and the report on those that were not measured."""

import dataclasses
from functools import partial

import jax
import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import jaxdp
from jaxdp.__main__ import app
from jaxdp.core import Learner
from jaxdp.estimation import gaussian_rewards, mle_rr
from jaxdp.registry import LEARNERS
from jaxdp.simulation import estimation_run, sweep
from jaxdp.stats import all_pairs, paired
from jaxdp.studies import advise_problems
from jaxdp.studies.advise import STUDY, advise
from jaxdp.studies.advise_costs import affordable, engine_of, scaled_rounds
from jaxdp.studies.advise_report import LEVEL, changes, figure, ranking, report
from jaxdp.studies.comparison import resize

SMALL: dict = {"num_arms": 3, "horizon": 400, "num_seeds": 10}


def losses(means, seeds, draw) -> xr.DataArray:
    """Returns losses with noise that is common to all learners, and separate noise."""
    own = draw.normal(size=(len(means), seeds)) + 3 * draw.normal(size=seeds) + np.asarray(means)[:, None]
    return xr.DataArray(own, {"learner": [f"l{index}" for index in range(len(means))]}, ("learner", "seed"))


def test_the_better_one_is_first_and_alone():
    order, best = ranking(losses([5.0, 0.0, 4.0, 6.0], 16, np.random.default_rng(0)))
    assert order[0] == "l1"
    assert best == ["l1"]


def test_few_lanes_play_by_rounds_which_compile_sooner():
    rounds = [scaled_rounds({"num_arms": arms, "dim": 5}, 50, horizon) for arms, horizon in ((10, 3000), (500, 3000))]
    for name, engine in (("ebs_elimination", "blocks"), ("ucb_central", "counts")):
        assert [engine_of(LEARNERS[name].make(), number) for number in rounds] == ["rounds", engine]
    assert advise(problem="duels", key=jax.random.key(0), **SMALL, learner=["ebs_local"]).played.item() == "rounds"


def test_a_failed_run_is_never_first():
    """Checks that its mean is not taken over the successful seeds alone."""
    loss = losses([5.0, 0.0, 4.0], 16, np.random.default_rng(0))
    loss.loc[{"learner": "l1"}] = loss.sel(learner="l1").where(loss.seed != 3)
    order, _ = ranking(loss)
    assert order == ["l2", "l0", "l1"]


def naive(loss: xr.DataArray) -> list[str]:
    """Compares all with the one that happened to be first, each as if it were the only comparison."""
    first = loss["learner"].values[np.argmin(loss.mean("seed").values)]
    against = paired(loss, "learner", against=first, adjust=None)
    return [first, *against.learner.values[(against.p_value > LEVEL).values]]


def test_equal_candidates_are_undecided():
    """Checks that one of them is called worse in at most 5% of rankings, though the first is chosen by its mean."""
    draw = np.random.default_rng(1)
    worlds = [losses([0.0] * 8, 10, draw) for _ in range(60)]
    limit = LEVEL + 5 * np.sqrt(LEVEL * (1 - LEVEL) / len(worlds))
    assert np.mean([len(ranking(loss)[1]) < 8 for loss in worlds]) <= limit
    assert np.mean([len(naive(loss)) < 8 for loss in worlds]) > limit  # choosing by the mean costs more than that


def test_ranges_agree_with_verdicts():
    """Checks that a range without 0 belongs to a pair that is called different.

    Ranges of one pair alone do not agree.
    """
    draw, disagree = np.random.default_rng(4), 0
    for _ in range(20):
        loss = losses([0.0, 0.5, 1.0, 1.5, 2.0, 0.0], 10, draw)
        against = all_pairs(loss, "learner")
        apart = (against.low > 0) | (against.high < 0)
        np.testing.assert_array_equal(apart, against.p_adjusted <= LEVEL)
        alone = paired(loss, "learner", against="l0", adjust=None)
        called = against.p_adjusted.sel(against="l0", learner=alone.learner) <= LEVEL
        disagree += int((((alone.low > 0) | (alone.high < 0)) != called).sum())
    assert disagree > 0


def test_ranges_hold_together():
    """Checks that the true difference is outside of any range in at most 5% of tables.

    Ranges of one pair alone fail in more tables.
    """
    draw, means = np.random.default_rng(5), np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    truth = means[:, None] - means
    missed = 0
    for _ in range(40):
        against = all_pairs(losses(means, 10, draw), "learner").transpose("learner", "against")
        missed += bool(((against.low > truth) | (against.high < truth)).any())
    assert missed / 40 <= LEVEL + 5 * np.sqrt(LEVEL * (1 - LEVEL) / 40)


def test_ties_and_one_candidate_alone():
    same = losses([1.0], 6, np.random.default_rng(2))
    assert ranking(same) == (["l0"], ["l0"])
    twice = xr.concat([same, same.assign_coords(learner=["l1"])], "learner")
    assert ranking(twice) == (["l0", "l1"], ["l0", "l1"])
    assert all_pairs(twice, "learner").p_adjusted.values.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_planted_candidate_with_a_tenth_of_the_noise(monkeypatch):
    """Checks that it is first; a copy of the honest one, equal bit for bit, stays undecided beside it."""
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
    results = advise(key=jax.random.key(0), **{**SMALL, "num_seeds": 40, "horizon": 1000}, epsilon=0.03)
    loss = results.loss.sel(instance="easy", epsilon=0.03, horizon=1000, drop=True)
    order, best = ranking(loss)
    assert order[0] == "quieter"
    assert best == ["quieter"]
    _, best = ranking(loss.sel(learner=["honest", "copied"]))
    assert set(best) == {"honest", "copied"}
    assert "use quieter" in report(results) or "no candidate is best on every instance" in report(results)


def test_trust_and_claims_choose_candidates():
    chosen = partial(advise, key=jax.random.key(0), **SMALL, learner=["ucb", "ucb_central"])
    assert chosen(trust="local").learner.values.tolist() == ["ucb"]
    with pytest.raises(ValueError, match="trust must leave a candidate for bandit, got local"):
        advise(key=jax.random.key(0), **SMALL, trust="local", learner=["ucb_central"])
    with pytest.raises(ValueError, match="trust must leave a candidate for bandit, got local with pure"):
        advise(key=jax.random.key(0), **SMALL, trust="local", pure=True, learner=["tsallis_inf_gaussian"])


@pytest.mark.skipif(jax.config.read("jax_enable_x64"), reason="64-bit floats hold this epsilon")
def test_errors_of_all_candidates_are_in_the_message():
    with pytest.raises(ValueError, match=r"these candidates raise errors: ucb \(epsilon must be"):
        advise(key=jax.random.key(0), **{**SMALL, "epsilon": 1e39}, learner=["ucb"])


WRONG = {
    "problem": ({"problem": "chess"}, "problem must be one of"),
    "epsilon": ({"epsilon": float("inf")}, "epsilon must be finite, got inf"),
    "horizon": ({"horizon": 1000.5}, r"horizon must be an integer, got 1000\.5"),
    "seeds": ({"num_seeds": 4}, "num_seeds must be an integer >= 5, got 4"),
    "learner": ({"learner": ["mle"]}, "learner must be one of"),
    "trust": ({"trust": "nobody"}, "trust must be one of"),
    "delta": ({"delta": 2.0}, r"delta must be in \(0, 1\), got 2\.0"),
    "a size that it has not": ({"dim": 5}, "dim must be left out with bandit, which has none, got 5"),
    "arms of labels": ({"problem": "labels"}, "num_arms must be left out with labels, which has none, got 3"),
    "means of regret": (
        {"means": [0.5, 0.4], "problem": "duels", "num_arms": None},
        "problem must be best-arm with means or rate, got",
    ),
    "means beyond 1": ({"means": [1.2, 0.4]}, r"means must be in \[0, 1\], got 1\.2"),
    "no best mean": ({"means": [0.4, 0.4], "num_arms": None}, "means must have two or more entries with one largest"),
    "means of other arms": ({"means": [0.5, 0.4]}, "num_arms must be left out, or the number of means, 2, got 3"),
    "a rate alone": ({"rate": 0.02}, "rate and lift must be given together, without means, got 0.02 and None"),
    "a rate beyond 1": ({"rate": 1.5, "lift": 0.1}, r"rate must be in \(0, 1\), got 1\.5"),
    "no lift": ({"rate": 0.5, "lift": 0.0}, "lift must be > 0, got 0"),
    "a lift beyond 1": ({"rate": 0.5, "lift": 1.5}, "lift must be at most 1 at rate 0.5, got 1.5"),
    "people alone": ({"people": 50, "horizon": None}, "people and visits must be given together, got 50 and None"),
    "people and rounds": ({"people": 50, "visits": 9}, "horizon must be left out with people and visits, .* got 400"),
    "no people": ({"people": 0, "visits": 9, "horizon": None}, "people must be an integer >= 1, got 0"),
    "contexts of people": (
        {"people": 50, "visits": 9, "problem": "contextual"},
        "problem must be one of bandit, duels, experts with people and visits, got contextual",
    ),
    "no features": ({"problem": "contextual", "dim": 0}, "dim must be an integer >= 1, got 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    changed, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        advise(key=jax.random.key(0), **{**SMALL, **changed})


def told(losses_at: dict[float, list[float]]) -> str:
    """Returns the first learner at each budget, out of two learners with these mean losses."""
    draw = np.random.default_rng(3)
    each = [losses(means, 16, draw) for means in losses_at.values()]
    results = xr.Dataset({"loss": xr.concat(each, xr.IndexVariable("epsilon", list(losses_at)))})
    results = results.expand_dims(instance=["easy"], horizon=[100]).assign_coords(problem="bandit")
    return changes(results, "easy", 100)


def test_what_changes_with_epsilon_is_said_where_that_is_clear():
    assert "the learner with the least loss changes" in told({0.1: [0.0, 9.0], 1.0: [9.0, 0.0]})
    assert "the learner with the least loss is the same" in told({0.1: [0.0, 9.0], 1.0: [0.0, 9.0]})
    undecided = told({0.1: [0.0, 0.0], 1.0: [9.0, 0.0]})  # the second may be the best at both
    assert "the learner with the least loss may be the same" in undecided
    assert "epsilon 1: l1" in undecided


def test_first_means_are_printed_without_verdicts(capsys):
    options = {**SMALL, "learner": ["explore_then_commit", "ucb_central"], "epsilon": 2.0}
    results = advise(key=jax.random.key(0), **options, progress=True)
    printed = capsys.readouterr().err.splitlines()
    assert printed[1].startswith("Means of regret at epsilon = 2 after 400 rounds, as they are computed;")
    means = results.loss.sel(epsilon=2.0).isel(horizon=0).mean("seed")
    assert printed[2:] == [
        f"  {name}: "
        + ", ".join(f"{key} {float(means.sel(learner=name, instance=key)):,.4g}" for key in ("easy", "hard"))
        for name in ("explore_then_commit", "ucb_central")
    ]
    advise(key=jax.random.key(0), **options)
    assert capsys.readouterr().err == ""


def test_variants_can_be_left_out(monkeypatch):
    names = ("ucb_central", "ucb_central_tree", "explore_then_commit")
    problem = advise_problems.PROBLEMS["bandit"]._replace(candidates=lambda: {name: LEARNERS[name] for name in names})
    monkeypatch.setitem(advise_problems.PROBLEMS, "bandit", problem)
    monkeypatch.setattr("jaxdp.studies.advise.sweep", lambda build, **options: stop(options["static_axes"]["learner"]))
    with pytest.raises(StopIteration) as left:
        advise(key=jax.random.key(0), **SMALL, no_variants=True)
    assert left.value.value == ["ucb_central", "explore_then_commit"]
    with pytest.raises(StopIteration) as named:
        advise(key=jax.random.key(0), **SMALL, no_variants=True, learner=["ucb_central_tree"])
    assert named.value.value == ["ucb_central_tree"]


def stop(names):
    raise StopIteration(names)


def test_what_candidates_do_not_promise_alike_is_told():
    both = advise(key=jax.random.key(0), **{**SMALL, "num_seeds": 5}, learner=["explore_then_commit", "ucb_central"])
    assert "every trust model" not in report(both)
    assert "different units" not in report(both)
    other = both.assign_coords(
        trust_model=("learner", ["central", "local"]),
        unit=("learner", ["one reward, replace-one", "one user, add-one"]),
    )
    said = report(other)
    assert "An epsilon does not promise the same in every trust model" in said
    assert "different units (one reward, replace-one; one user, add-one)" in said
    assert next(line.split()[1] for line in said.splitlines() if line.startswith("ucb_central ")) == "local"


def test_what_is_too_slow_is_measured_at_fewer_rounds_and_said_so(monkeypatch):
    monkeypatch.setattr("jaxdp.studies.advise.SECONDS_OF_A_CANDIDATE", 1e-9)
    monkeypatch.setattr("jaxdp.studies.advise.FEWEST_ROUNDS", 200)
    results = advise(
        key=jax.random.key(0), **{**SMALL, "horizon": 900, "num_seeds": 5}, learner=["thompson", "ucb_central"]
    )
    assert results.horizon.values.tolist() == [200, 900]
    assert results.loss.sel(learner="thompson", horizon=900).isnull().all()
    assert results.loss.sel(learner="ucb_central").notnull().all()
    assert results.loss.sel(horizon=200).notnull().all()
    said = report(results)
    assert "Too slow for 900 rounds here: thompson. So all are compared at 200 rounds" in said
    assert figure(results).axes


def test_candidates_that_are_all_too_slow_are_compared_at_fewer_rounds(monkeypatch):
    monkeypatch.setattr("jaxdp.studies.advise.SECONDS_OF_A_CANDIDATE", 1e-9)
    monkeypatch.setattr("jaxdp.studies.advise.FEWEST_ROUNDS", 300)
    results = advise(key=jax.random.key(0), **{**SMALL, "horizon": 900, "num_seeds": 5}, learner=["thompson"])
    assert results.horizon.values.tolist() == [300]
    assert "Too slow for 900 rounds here: thompson. So all are compared at 300 rounds" in report(results)


def test_rounds_that_can_be_afforded():
    assert affordable([0.0], 10**12, 100, 10) == 10**12
    assert affordable([500e-9, 0.0], 10**6, 100, 10) == 200_000
    assert affordable([500e-9, 0.0], 10**6, 100, 1) == 20_000
    assert affordable([500e-9], 10**6, 100, 1e-9) == 5000
    assert affordable([500e-9], 10**6, 100, 1e-9, 20_010) == 20_010, "10 rounds for each of 2,001 arms"
    assert affordable([500e-9], 5000, 100, 10) == 5000


def test_posteriors_of_all_pairs_take_longer_than_rounds_also_for_persons():
    seconds = advise_problems.PROBLEMS["duels"].seconds
    learners = jaxdp.dueling.double_thompson(num_arms=10), jaxdp.dueling.rucb(num_arms=10, release="blocks")
    each = [seconds(learner, {"num_arms": 10}) for learner in learners]
    persons = [jaxdp.per_person(learner, reports=1, rest="act") for learner in learners]
    of_persons = [seconds(learner, {"num_arms": 10}) for learner in persons]
    assert of_persons == each
    assert each[0] > each[1] > seconds(jaxdp.dueling.ebs_elimination(num_arms=10, horizon=100), {"num_arms": 10})


def test_some_candidates_start_first_and_results_have_the_registered_order(monkeypatch):
    for problem in advise_problems.PROBLEMS.values():
        assert {*problem.first} <= {*problem.candidates()}
    names = ["explore_then_commit", "ucb_central", "thompson_central"]
    asked = {**SMALL, "num_seeds": 5, "learner": names, "key": jax.random.key(0)}
    expected = advise(**asked)
    changed = advise_problems.PROBLEMS["bandit"]._replace(first=("thompson_central",))
    monkeypatch.setitem(advise_problems.PROBLEMS, "bandit", changed)
    results = advise(**asked)
    xr.testing.assert_equal(results, expected)
    assert results.learner.values.tolist() == names


def test_seconds_shorten_the_horizon_for_all_candidates(monkeypatch):
    monkeypatch.setattr("jaxdp.studies.advise.FEWEST_ROUNDS", 300)
    small = {**SMALL, "horizon": 900, "num_seeds": 5, "seconds": 1e-9}
    results = advise(key=jax.random.key(0), **small, learner=["thompson", "ucb_central"])
    assert results.horizon.values.tolist() == [300]
    assert results.loss.notnull().all()
    with pytest.raises(ValueError, match=r"seconds must be > 0, got 0"):
        advise(key=jax.random.key(0), **{**small, "seconds": 0.0})


@pytest.mark.parametrize("problem", advise_problems.PROBLEMS)
def test_every_problem_has_candidates_at_other_sizes(problem):
    """Checks that each is made for the requested sizes, can play, has a claim, and has a known time."""
    setting = advise_problems.PROBLEMS[problem]
    sizes = dict(zip(setting.sizes, (4, 3), strict=False))
    found = {name: resize(entry, 1000, **sizes) for name, entry in setting.candidates().items()}
    assert len(found) >= (3 if problem == "best-arm" else 4)
    instance = next(iter(setting.instances.values()))
    for name, entry in found.items():
        run = advise_problems.run_of(setting, entry, sizes, [1000], 1e-6, instance)
        (claim,) = run.guarantee(epsilon=0.5).values()
        assert claim.is_private, name
        made = entry.make()
        assert setting.seconds(made, sizes) >= 0
        if isinstance(made, Learner) and made.interface is not None:
            assert made.interface.action.high == 3, name


def test_variants_of_candidates_are_those_of_the_problem():
    """Checks variants against the registry, whose entries are for tiny problems: some solve rarely, or have
    unproved constants.
    """
    found = {name: entry.variant for name, entry in advise_problems.PROBLEMS["contextual"].candidates().items()}
    assert found["linear_ucb"] == {}
    assert found["linear_ucb_joint_tree"] == {"counter": "tree"}
    finders = advise_problems.PROBLEMS["best-arm"].candidates()
    pairs = ["pairwise_elimination_central", "pairwise_elimination"]
    assert [*finders] == [*pairs, "lil_ucb", "lil_ucb_gaussian", "successive_elimination"]
    assert finders["lil_ucb_gaussian"].variant == {"report": "gaussian"}


def test_labels():
    """Compares losses with a direct run, at both instances; estimators without a budget are no candidates."""
    asked = {"epsilon": 2.0, "horizon": 200, "dim": 2, "num_seeds": 5, "key": jax.random.key(3)}
    results = advise(problem="labels", **asked, learner=["mle_rr", "sgd_rr"])
    assert dict(results.sizes) == {"learner": 2, "instance": 2, "epsilon": 5, "horizon": 1, "seed": 5}
    assert results.trust_model.values.tolist() == ["local", "local"]
    problem = gaussian_rewards(num_samples=200, dim=2, feature_norm=1.0, parameter_norm=1.0)
    run = estimation_run({"estimator": mle_rr()}, problem)
    alone = sweep(lambda: run, axes={"epsilon": [2.0]}, num_seeds=5, key=jax.random.key(3), progress=False)
    unsure = results.loss.sel(learner="mle_rr", instance="unsure", epsilon=2.0, horizon=200)
    np.testing.assert_allclose(unsure, alone.l2_error.values.ravel(), rtol=1e-4)
    assert (results.unsolved.sel(learner="sgd_rr") == 0).all()  # it has no tolerance to miss
    said = report(results)
    assert "unsure instance, 200 labels, epsilon = 2 for one label: l2 error of the reward parameter" in said
    assert "not solved" in said
    assert "mle" not in advise_problems.PROBLEMS["labels"].candidates()
    assert figure(results).axes


def test_the_best_arm_counts_what_was_cut_off():
    asked = {"epsilon": 4.0, "num_arms": 2, "num_seeds": 5, "key": jax.random.key(4)}
    results = advise(problem="best-arm", **asked, horizon=2000, learner=["successive_elimination"])
    at = results.sel(learner="successive_elimination", horizon=2000)
    cut = at.censored == 1
    assert cut.any()
    assert not cut.all()
    assert (at.loss.where(cut) == 2000).where(cut, True).all()
    assert (at.loss.where(~cut) < 2000).where(~cut, True).all()
    assert (at.wrong.where(cut) == 0).where(cut, True).all()
    said = report(results)
    assert "cut off  wrong" in said
    assert "A run that is cut off counts as all rounds" in said


def test_contexts():
    results = advise(problem="contextual", num_arms=3, dim=2, horizon=300, num_seeds=5, key=jax.random.key(5))
    assert {"linear_ucb", "linear_ucb_ball", "linear_ucb_joint"} <= set(results.learner.values)
    assert results.loss.notnull().all()
    assert "contextual linear bandits (3 arms, 2 features)" in repr(figure(results))


def test_the_command(tmp_path):
    arguments = ["advise", "--arms", "3", "--horizon", "4e2", "--seeds", "5", "--learner", "ucb_central"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "ADVICE at epsilon = 1 for one round's reward, 400 rounds: use ucb_central." in result.output
    assert "ucb_central: 1-DP (rounding: delta 2e-10), central, one round's reward; proved; by rounds" in result.output
    assert (tmp_path / "out" / "figure.png").stat().st_size > 0
    assert STUDY.simulate is advise
