"""The study of ballots: its learners, a run by hand, and its text."""

import contextlib
import io
import math
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.__main__ import main
from jaxdp.preferences import Ballots, read_ballots, write_ballots
from jaxdp.registry import LEARNERS
from jaxdp.simulation import Snapshot
from jaxdp.studies import ballots_report
from jaxdp.studies import dueling_ballots as study

ELECTION = Path(__file__).parents[3] / "shared/data/00002-00000002.soi"
CLEAR = Ballots(("a", "b", "c"), (((0,), (1,), (2,)), ((1,), (0,))), (45, 5))


def ranked(ballots, *, epsilon, num_seeds, key):
    """Replaces `private_ranking`, which has separate tests: the first alternative is always first."""
    del key
    names = ["ballot_mle", "ballot_objective_perturbation", "ballot_objective_perturbation_k_norm", "ballot_rr"]
    places = np.broadcast_to(np.arange(1, 4)[:, None], (4, len(epsilon), 3, num_seeds))
    noise = ["none" if math.isinf(each) else "k_norm" for each in epsilon]
    return xr.Dataset(
        {"rank": (("estimator", "epsilon", "item", "seed"), places)},
        {
            "estimator": names,
            "epsilon": epsilon,
            "noise": ("epsilon", noise),
            "item": list(ballots.items),
            "delta": 1e-3,
        },
    )


def test_who_plays():
    known = study.naming_learners()
    assert {"ebs_phased", "ebs_local", "rucb", "double_thompson", "ebs_elimination"} <= set(known)
    assert not {"versatile_sparring", "ucb"} & set(known)
    assert set(known) - set(study.default_learners(known)) >= {"ebs_elimination_gaussian"}
    assert {"ebs_phased", "ebs_elimination", "rucb"} <= set(study.default_learners(known))
    for name, entry in known.items():
        made = study.make_learner(name, entry, 4, 90)
        assert made.horizon in (None, 90)
        assert LEARNERS[name] is entry


def test_who_is_named():
    class Wins:
        wins = np.array([[0, 3, 4], [2, 0, 9], [1, 1, 0]])

    class Active:
        active = np.array([False, True, False])

    def asked(public):
        return int(study.named_arm(Snapshot({}, public, None, None, jax.numpy.zeros((), int))))

    assert asked(Wins()) == 0
    Wins.wins = np.array([[0, 3, 1], [2, 0, 9], [4, 1, 0]])  # each leads against one: b by the most
    assert asked(Wins()) == 1
    Wins.wins = np.zeros((3, 3), int)
    assert asked(Wins()) == ballots_report.NONE
    assert asked(Active()) == 1
    Active.active = np.array([False, True, True])
    assert asked(Active()) == ballots_report.NONE


def ran(folder):
    """Runs the command on a clear election; returns its results and its output."""
    told = io.StringIO()
    write_ballots(CLEAR, folder / "clear.soi")
    grid = ("--epsilon", "1", "--epsilon", "inf", "--learner", "rucb", "--learner", "ebs_phased", "--seeds", "88")
    sizes = ("--answers", "2", "--largest", "1000", "--rounds", "300")
    given = ("--ballots", str(folder / "clear.soi"), *grid, *sizes, "--out", str(folder / "found"))
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(told):
        patch.setattr(study, "private_ranking", ranked)
        patch.setattr(sys, "argv", ["jaxdp", "run", "dueling-ballots", *given])
        with pytest.raises(SystemExit) as stopped:
            main()
    assert stopped.value.code == 0
    assert (folder / "found" / "figure.png").exists()
    return xr.open_zarr(folder / "found" / "data.zarr").load(), told.getvalue()


def test_results(tmp_path):
    small, text = ran(tmp_path)
    assert small.named.dims == ("learner", "epsilon", "voters", "seed")
    np.testing.assert_array_equal(small.voters[:4], [50, 100, 250, 500])
    assert small.voters.values[-1] == 50_000
    np.testing.assert_array_equal(small.voter_epsilon, [2.0, math.inf])
    claims = jaxdp.claims(small)
    assert claims.claimed_epsilon[claims.algorithm == "voter"].tolist() == [2.0, math.inf] * 2
    assert (str(small.winner.values), str(small.rule.values)) == ("a", "Condorcet")
    rucb, phased = small.sel(learner="rucb"), small.sel(learner="ebs_phased")
    np.testing.assert_array_equal(rucb.named.notnull().all(("epsilon", "seed")), small.voters <= 150)
    assert phased.named.notnull().all()
    assert set(np.unique(phased.named)) <= {-1.0, 0.0, 1.0, 2.0}
    assert rucb.correct.sel(epsilon=math.inf).isel(voters=0).mean() > 0.9
    assert (phased.named.isel(voters=0) == ballots_report.NONE).all()  # a hundred answers drop nobody
    assert phased.correct.isel(voters=-1).mean() == 1
    assert small["first"].sel(epsilon=math.inf, estimator="ballot_mle").isel(seed=0) == 0
    for words in (
        "3 alternatives, 50 voters",
        "Without privacy a wins against every other alternative; against the closest, b,",
        "One answer is private at ε, and one whole ballot at 2 ε",
        "1 per answer, 2 per voter",
        "central: EBS, phases",
        "local: RUCB",
        "private-ranking: ballot_rr",
        "resampled:\nvoters drawn from these ballots with replacement",
    ):
        assert words in text, words
    sizes = ballots_report._sufficient_voters(small)
    assert float(sizes.sel(learner="ebs_phased", epsilon=1.0)) > 50
    assert f"{float(sizes.sel(learner='ebs_phased', epsilon=1.0)):,.0f}" in text


def made_up(shares):
    """Makes results in which the winner is named in these shares of 200 seeds, by (learner, voters)."""
    hits = (np.arange(200) < 200 * np.asarray(shares)[..., None]).astype(float)
    hits = np.where(np.isnan(np.asarray(shares))[..., None], np.nan, hits)
    return xr.Dataset(
        {
            "correct": (("learner", "epsilon", "voters", "seed"), hits[:, None]),
            "named": (
                ("learner", "epsilon", "voters", "seed"),
                np.where(hits == 1, 0.0, np.where(hits == 0, 1.0, hits))[:, None],
            ),
        },
        {
            "learner": ["x", "y"],
            "epsilon": [0.5],
            "voters": [10, 20, 50],
            "voter_epsilon": ("epsilon", [1.5]),
            "item": ["ann", "bob"],
            "winner": "ann",
        },
    )


def test_from_how_many_voters_on():
    results = made_up([[0.5, 1.0, 1.0], [1.0, 0.9, math.nan]])
    np.testing.assert_array_equal(ballots_report._sufficient_voters(results)[:, 0], [20, 0])
    told = ballots_report.verdicts(results.isel(learner=[0]))
    assert "0.5 per answer, 1.5 per voter: no winner is shown: X names ann most often, in 50.0%" in told
    assert "X shows ann from 20 voters on" in told
    assert "ann, by Y, with confidence 100.0% (at least 97.8%)" in ballots_report.verdicts(results)
    never = ballots_report.verdicts(made_up([[0.2, 0.3, 0.9], [0.1, 0.2, math.nan]]))
    assert "X names bob most often" in never
    assert "No learner shows ann with up to 50 voters" in never


@pytest.mark.parametrize(("seeds", "is_enough"), [(4, False), (71, False), (72, True)])
def test_too_few_seeds_have_no_verdict(seeds, is_enough):
    """Checks that the lower limit of n hits of n is 0.025^(1 / n), which reaches 95% at n = 72."""
    results = made_up([[1.0] * 3, [1.0] * 3]).isel(learner=[0], seed=slice(seeds))
    results = results.assign_coords(trust_model=("learner", ["local"]))
    for text in (ballots_report.verdicts(results), ballots_report.larger(results)):
        assert (f"no verdict: at least 72 seeds are needed, got {seeds}." in text) != is_enough
        assert ("more than" in text or "No learner" in text or "no winner is shown" in text) is False
    assert ballots_report.fewest_seeds(9) == 115


def test_too_few_seeds_are_told_before_anything_is_simulated(monkeypatch):
    monkeypatch.setattr(study, "compare", None)  # fails where it is called
    with pytest.warns(UserWarning, match="num_seeds must be >= 86 to say which budgets .* in 95% of .*, got 4"):  # noqa: SIM117
        with pytest.raises(TypeError):
            study.dueling_ballots(CLEAR, learner=["rucb", "ebs_phased"], num_seeds=4, key=jax.random.key(7))


def test_without_a_condorcet_winner():
    cycle = Ballots(("a", "b", "c"), (((0,), (1,), (2,)), ((1,), (2,), (0,)), ((2,), (0,), (1,))), (4, 3, 3))
    assert study.winner_of(cycle)[1] == "Borda"
    results = made_up([[1.0] * 3, [1.0] * 3]).assign_coords(winner="a", rule="Borda", item=["a", "b"])
    assert "no alternative wins against all others" in ballots_report.election(cycle, results)


def test_the_report_says_who_wins_the_other_way():
    plump = Ballots(("A", "B"), (((0,),), ((1,), (0,)), ((0,), (1,))), (6, 3, 1))
    text = ballots_report.other_reading(plump, "unknown")
    assert "6 of 10 ballots rank one item. With --unranked unknown, 6 of 10 state no preference." in text
    assert "with --unranked last, as elections count ballots,\nit is A." in text
    assert "it is B." in ballots_report.other_reading(plump, "last")
    assert study.winner_of(plump) == (1, "Condorcet")
    assert study.winner_of(plump.with_unranked_last()) == (0, "Condorcet")
    assert ballots_report.other_reading(plump.with_unranked_last(), "unknown") == ""
    assert "A wins" not in text
    with pytest.raises(ValueError, match="unranked must be one of unknown, last, got 'first'"):
        study.dueling_ballots(plump, unranked="first", key=jax.random.key(7))


def test_the_made_up_election_is_always_the_same():
    ballots = study.synthetic_election()
    assert ballots.num_ballots == 1000
    assert ballots.data_type == "soi"
    assert study.winner_of(ballots) == (0, "Condorcet")


def test_the_election_of_2003():
    """Checks two candidates nearly tied: 488 voters cannot decide, and many more can."""
    if not ELECTION.exists():
        pytest.skip("no shared/data folder with the ballots of 2003 beside the repository")
    ballots = read_ballots(ELECTION)
    results = study.dueling_ballots(ballots, epsilon=[1.0], learner=["ebs_phased"], num_seeds=80, key=jax.random.key(7))
    text = ballots_report.report(results, ballots)
    assert "488 voters" in text
    assert "no winner is shown" in text
    assert "EBS, phases shows" in text
    assert "private-ranking: ballot_rr" in text
    assert results["first"].sel(estimator="ballot_mle").isel(seed=0).isin([1, 2, 3])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learner": ["ucb"]}, "learner must be one of .*rucb.*, got 'ucb'"),
        ({"answers": 0}, "answers must be an integer >= 1, got 0"),
        ({"largest": 0.5}, "largest must be >= 1, got 0.5"),
        ({"rounds": 0}, "rounds must be an integer >= 1, got 0"),
        ({"epsilon": [0.0], "largest": 1.0}, "epsilon must be > 0, got 0"),
    ],
)
def test_errors(values, message):
    with pytest.raises(ValueError, match=message):
        study.dueling_ballots(CLEAR, **{"learner": ["rucb"], "num_seeds": 2, "key": jax.random.key(7), **values})
