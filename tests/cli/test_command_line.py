"""The command line as a user meets it: real processes, real folders."""

import dataclasses
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from typer.testing import CliRunner

from jaxdp.__main__ import app, main
from jaxdp.studies import STUDIES, dueling_regret
from tests.cli.test_dueling_regret import made_up

REPOSITORY = Path(__file__).parents[2]
SMALL = ["--seeds", "3", "--num-samples", "50", "--num-features", "2"]
RANKING = ("run", "private-ranking", "--seeds", "2", "--epsilon", "1")


def jaxdp(*arguments, cwd):
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(REPOSITORY / ".cache" / "jax")}
    return subprocess.run(
        [sys.executable, "-m", "jaxdp", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def in_process(*arguments, monkeypatch, capsys):
    """Calls the same entry point without a new process: for messages, where starting JAX would dominate."""
    monkeypatch.setattr(sys, "argv", ["jaxdp", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code, capsys.readouterr()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


def test_a_run_writes_a_figure_and_a_dataset_and_keeps_earlier_ones(tmp_path, monkeypatch, capsys):
    """Uses made-up results: a small form of the tests of single studies."""

    @functools.wraps(dueling_regret.dueling_regret)
    def simulate(**arguments):
        return made_up().assign_attrs(seeds=arguments["num_seeds"])

    made = dataclasses.replace(dueling_regret.STUDY, simulate=simulate, figure=lambda results: Figure())
    monkeypatch.setattr(dueling_regret, "STUDY", made)
    monkeypatch.chdir(tmp_path)
    run = ("run", "dueling-regret", "--seeds", "6")
    for folder in ("dueling-regret", "dueling-regret-2"):
        code, printed = in_process(*run, monkeypatch=monkeypatch, capsys=capsys)
        assert code == 0, printed.err
        out = tmp_path / "results" / folder
        assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
        data = xr.open_zarr(out / "data.zarr").load()
        assert data.seeds == 6
        xr.testing.assert_equal(data, made_up())
        assert printed.out.startswith(dueling_regret.report(made_up()))
        assert f"figure: {Path('results', folder, 'figure.png')}" in printed.out
    code, printed = in_process(*run, "--out", "results/dueling-regret", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2
    assert "out must be a new or empty folder, so that no result is overwritten, got results/duel" in printed.err


def test_reward_estimation_writes_figure_and_dataset(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    arguments = ("run", "reward-estimation", *SMALL, "--epsilon", "0.5", "--epsilon", "inf")
    code, printed = in_process(*arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0, printed.err
    out = folder / "results" / "reward-estimation"
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
    data = xr.open_zarr(out / "data.zarr").load()
    assert data.l2_error.dims == ("estimator", "epsilon", "num_features", "num_samples", "seed")
    assert data.epsilon.values.tolist() == [0.5, np.inf]
    assert data.num_samples.values.tolist() == [50]
    assert data.sizes["seed"] == 3
    assert "provenance" in data.attrs
    clear = data.l2_error.sel(epsilon=np.inf)
    np.testing.assert_array_equal(clear.sel(estimator="mle"), clear.sel(estimator="debiased_rr"))
    assert "95% confidence interval" in printed.out
    assert "objective_perturbation" in printed.out


def test_a_second_run_keeps_the_first(folder, monkeypatch, capsys):
    first = folder / "results" / "private-ranking"
    monkeypatch.chdir(folder)
    for _ in range(2):
        code, printed = in_process(*RANKING, monkeypatch=monkeypatch, capsys=capsys)
        assert code == 0, printed.err
    assert first.exists()
    assert first.with_name("private-ranking-2").exists()
    code, printed = in_process(*RANKING, "--out", str(first), monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2
    assert f"out must be a new or empty folder, so that no result is overwritten, got {first}" in printed.err


def test_two_cpu_devices_write_the_same_data(tmp_path, monkeypatch, capsys):
    """Runs in a new process, which reads the number of devices when it starts."""
    result = jaxdp("--cpu-devices", "2", *RANKING, "--out", "2", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    monkeypatch.chdir(tmp_path)
    code, printed = in_process(*RANKING, "--out", "1", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0, printed.err
    one, two = (xr.open_zarr(tmp_path / devices / "data.zarr").load() for devices in ("1", "2"))
    xr.testing.assert_equal(one, two)
    assert [len(json.loads(data.attrs["provenance"])["devices"]) for data in (one, two)] == [1, 2]


@pytest.mark.parametrize(
    ("study", "small"),
    [
        ("tracking-regret", ("--horizon", "60", "--horizon", "40", "--switches", "2", "--epsilon", "1")),
        ("tracking-your-losses", ("--losses", "mine.csv", "--switches", "1", "--epsilon", "1")),
        ("tracking-separation", ("--horizon", "60", "--switches", "2", "--ratio", "1", "--ratio", "10")),
    ],
)
def test_studies_of_tracking_run_and_resume(study, small, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (folder / "mine.csv").write_text("one,other\n" + "0,1\n" * 20 + "1,0\n" * 20)
    small = (study, *small, "--seeds", "2", "--learner", "mirror_descent")
    code, printed = in_process("run", *small, "--out", study, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0, printed.err
    assert "central, (ε, δ): Mirror descent" in printed.out
    data = xr.open_zarr(folder / study / "data.zarr").load()
    assert data.loss.sizes["seed"] == 2
    assert (folder / study / "figure.png").exists()
    for _ in range(2):
        code, again = in_process("sweep", *small, "--store", f"{study}.zarr", monkeypatch=monkeypatch, capsys=capsys)
        assert code == 0, again.err
        assert again.out.split("\n\nstore")[0] == printed.out.split("\n\ndata")[0]


def test_dueling_regret_runs_and_resumes(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    small = ("dueling-regret", "--horizon", "100", "--seeds", "2", "--epsilon", "1", "--learner", "rucb")
    code, printed = in_process("run", *small, "--out", "duels", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0, printed.err
    assert "local: RUCB" in printed.out
    data = xr.open_zarr(folder / "duels" / "data.zarr").load()
    assert data.pseudo_regret.sizes == {"learner": 1, "epsilon": 1, "round": 10, "seed": 2}
    assert (folder / "duels" / "figure.png").exists()
    for _ in range(2):
        code, again = in_process("sweep", *small, "--store", "duels.zarr", monkeypatch=monkeypatch, capsys=capsys)
        assert code == 0, again.err
        assert again.out.split("\n\nstore")[0] == printed.out.split("\n\ndata")[0]


def test_ldp_bandits_runs_and_resumes(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    small = ("ldp-bandits", "--horizon", "50", "--seeds", "2", "--epsilon", "1", "--problem", "convex")
    code, printed = in_process("run", *small, "--out", "local", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0, printed.err
    assert "convex: fkm" in printed.out
    data = xr.open_zarr(folder / "local" / "data.zarr").load()
    assert data.pseudo_regret.sizes == {"problem": 1, "horizon": 1, "epsilon": 1, "seed": 2}
    assert (folder / "local" / "figure.png").exists()
    for _ in range(2):
        code, again = in_process("sweep", *small, "--store", "local.zarr", monkeypatch=monkeypatch, capsys=capsys)
        assert code == 0, again.err
        assert again.out.split("\n\nstore")[0] == printed.out.split("\n\ndata")[0]


def test_own_comparisons(folder, monkeypatch, capsys):
    table = folder / "own.csv"
    table.write_text("winner,loser,weight\nalpha,beta,5\nbeta,gamma,4\ngamma,alpha,1\n")
    monkeypatch.chdir(folder)
    own = ("--comparisons", str(table), "--out", "own")
    code, printed = in_process(*RANKING, *own, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0, printed.err
    assert "3 items, 10 comparisons" in printed.out
    data = xr.open_zarr(folder / "own" / "data.zarr")
    assert data["item"].values.tolist() == ["alpha", "beta", "gamma"]
    assert float(data.radius) == pytest.approx(3 * np.sqrt(3))
    assert "note" not in printed.out


VOTES = """# DATA TYPE: soi
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 9
# NUMBER UNIQUE ORDERS: 2
# ALTERNATIVE NAME 1: alpha
# ALTERNATIVE NAME 2: beta
# ALTERNATIVE NAME 3: gamma
6: 1,2,3
3: 2,1
"""


@pytest.mark.parametrize(("unit", "estimator"), [(None, "ballot_rr"), ("pair", "debiased_rr")])
def test_own_ballots(unit, estimator, folder, monkeypatch, capsys):
    (folder / "votes.soi").write_text(VOTES)
    monkeypatch.chdir(folder)
    chosen = ("--ballots", "votes.soi", *(("--unit", unit) if unit else ()), "--out", f"votes-{unit}")
    code, printed = in_process(*RANKING, *chosen, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0, printed.err
    assert ("3 items, 9 ballots" if unit is None else "3 items, 21 comparisons") in printed.out
    assert "alpha comes first at least 95% of the time" in printed.out
    data = xr.open_zarr(folder / f"votes-{unit}" / "data.zarr")
    assert data["item"].values.tolist() == ["alpha", "beta", "gamma"]
    assert data.estimator.values.tolist()[-1] == estimator
    assert data.survival.dims == ("estimator", "epsilon", "seed")
    assert (folder / f"votes-{unit}" / "figure.png").exists()


def test_own_ballots_into_a_store(folder, monkeypatch, capsys):
    (folder / "votes.soi").write_text(VOTES)
    monkeypatch.chdir(folder)
    command = ("sweep", *RANKING[1:], "--ballots", "votes.soi", "--store", "votes.zarr")
    texts = []
    for _ in range(2):  # the second time there is nothing left to do
        code, printed = in_process(*command, monkeypatch=monkeypatch, capsys=capsys)
        assert code == 0, printed.err
        texts.append(printed.out)
    assert texts[0] == texts[1]
    assert "store: votes.zarr" in texts[0]
    assert xr.open_zarr(folder / "votes.zarr").estimator.values.tolist()[0] == "ballot_mle"
    code, printed = in_process(*command, "--unranked", "last", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2  # other data


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "private-ranking", "--unit", "ballot"], "unit must be pair without --ballots, got 'ballot'"),
        (["run", "private-ranking", "--unit", "voter"], "unit must be one of pair, ballot, got 'voter'"),
        (
            ["run", "private-ranking", "--ballots", "a.soi", "--comparisons", "b.csv"],
            "ballots must be given without --comparisons, got a.soi and b.csv",
        ),
        (
            ["run", "private-ranking", "--ballots", "bad.csv"],
            "bad.csv, line 1: no DATA TYPE, and the name ends in none",
        ),
        (["run", "private-ranking", "--ballots", "absent.soi"], "absent.soi"),
        (["run", "private-ranking", "--unranked", "first"], "unranked must be one of unknown, last, got 'first'"),
        (["run", "reward-guessing"], f"study must be one of {', '.join(STUDIES)}, got 'reward-guessing'"),
        (["audit", "--json", "run", "magic"], "error: name must be one of laplace, gaussian"),
        (["run", "reward-estimation", "--epsilon", "-1"], "epsilon must be > 0, got -1.0"),
        (["run", "reward-estimation", "--epsilon", "nan"], "epsilon must be > 0, got nan"),
        (["run", "reward-estimation", "--delta", "1"], "delta must be in (0, 1), got 1.0"),
        (
            ["run", "reward-estimation", "--solver", "magic"],
            "solver must be one of exact, averaged, literal, got 'magic'",
        ),
        (["run", "reward-estimation", "--seeds", "0"], "--seeds must be an integer >= 1, got 0"),
        (["run", "private-ranking", "--comparisons", "absent.csv"], "absent.csv"),
        (["run", "private-ranking", "--comparisons", "bad.csv"], "bad.csv, line 2: "),
        (["run", "private-ranking", "--comparisons", "."], "directory"),
        (["run", "private-ranking", "--radius", "0"], "radius must be > 0, got 0.0"),
        (["run", "private-policy", "--curvature", "0.3"], "curvature must be in [0, 0.25], got 0.3"),
        (["run", "private-policy", "--expertise", "nan"], "expertise must be finite, got nan"),
        (["run", "dueling-regret", "--learner", "laplace"], "learner must be one of "),
        (["run", "dueling-regret", "--utility", "1"], "utility must be at least two numbers with a unique maximum"),
        (["run", "dueling-regret", "--horizon", "10"], "horizon must be an integer >= 100, got 10"),
        (["run", "tracking-regret", "--learner", "laplace"], "learner must be one of "),
        (["run", "tracking-regret", "--switches", "20000"], "--switches must be < horizon = 20000, got 20000"),
        (["run", "tracking-separation", "--ratio", "0"], "ratio must be > 0, got 0.0"),
        (["run", "tracking-your-losses", "--losses", "bad.csv"], "bad.csv"),
        (["run", "tracking-your-losses", "--losses", "absent.npy"], "absent.npy"),
        (["run", "tracking-your-losses", "--losses", "good.csv", "--share", "2"], "share must be in [0, 1], got 2.0"),
        (["run", "reward-estimation", "--seed", "-1"], "seed must be in [0, 2**32), got -1"),
        (["run", "reward-estimation", "--seed", "4294967296"], "seed must be in [0, 2**32), got 4294967296"),
        (["run", "private-ranking", "--seed", "9" * 20], f"seed must be in [0, 2**32), got {'9' * 20}"),
        (["list", "--kind", "oracle"], "kind must be one of mechanism, learner, estimator, got 'oracle'"),
        (["list", "--claims", "--kind", "learner"], "kind must be left out with --claims, got 'learner'"),
        (["list", "--claims", "--all"], "all must be left out with --claims"),
        (["--cpu-devices", "0", "list"], "cpu_devices must be an integer >= 1, got 0"),
    ],
)
def test_bad_input_is_told_in_one_line_and_leaves_nothing(arguments, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "bad.csv").write_text("winner,loser\nalpha\n")
    (tmp_path / "good.csv").write_text("one,other\n0,1\n1,0\n")
    monkeypatch.chdir(tmp_path)
    code, printed = in_process(*arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert not list(tmp_path.glob("results/*"))


def test_a_failed_run_removes_only_the_folder_it_made(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine").mkdir()
    for out, stays in (("mine", True), ("new", False)):
        arguments = (*RANKING, "--radius", "nan", "--out", str(tmp_path / out))
        code, printed = in_process(*arguments, monkeypatch=monkeypatch, capsys=capsys)
        assert code == 2
        assert "radius must be > 0, got nan" in printed.err
        assert (tmp_path / out).exists() == stays


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "reward-estimation", "--help"], ["sweep", "private-ranking", "--help"]]
)
def test_help(arguments, monkeypatch, capsys):
    code, printed = in_process(*arguments, "--help", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0
    assert "Usage" in printed.out


@pytest.mark.parametrize("solver", ["averaged", "literal"])
def test_other_solvers(solver, tmp_path, monkeypatch, capsys):
    arguments = ("run", "reward-estimation", *SMALL, "--epsilon", "1", "--solver", solver, "--out", str(tmp_path / "x"))
    code, printed = in_process(*arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0, printed.err
    assert "sgd_rr" in printed.out


POLICY = ("private-policy", *SMALL[:4], "--num-features", "2", "--epsilon", "0.5", "--epsilon", "inf")


def test_private_policy_writes_figure_and_dataset(tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    code, printed = in_process("run", *POLICY, "--out", str(out), monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0, printed.err
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
    data = xr.open_zarr(out / "data.zarr").load()
    assert data.suboptimality.dims == ("estimator", "policy", "epsilon", "num_samples", "seed")
    assert data.suboptimality.notnull().all()
    clear = data.suboptimality.sel(epsilon=np.inf)
    np.testing.assert_array_equal(clear.sel(estimator="mle"), clear.sel(estimator="debiased_rr"))
    assert "pessimistic_per_state, objective_perturbation" in printed.out
    assert "Confidence sets contain the true parameter in" in printed.out


def test_private_policy_sweeps_into_a_store(tmp_path, monkeypatch, capsys):
    store = str(tmp_path / "s.zarr")
    code, printed = in_process("sweep", *POLICY, "--store", store, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0, printed.err
    assert xr.open_zarr(store).computed.all()
    assert "pessimistic_per_state, objective_perturbation" in printed.out


def test_sweep_into_a_store_in_shares_and_inspect(tmp_path, monkeypatch, capsys):
    store = str(tmp_path / "runs" / "s.zarr")
    sweep = ("sweep", *RANKING[1:], "--delta", "1e-3", "--seeds", "20", "--store", store)

    def told(*arguments):
        code, printed = in_process(*arguments, monkeypatch=monkeypatch, capsys=capsys)
        assert code == 0, printed.err
        return printed.out

    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "4")
    for name, value in {"MIN": "4", "MAX": "5", "COUNT": "2"}.items():
        monkeypatch.setenv(f"SLURM_ARRAY_TASK_{name}", value)
    first = told(*sweep, "--process-index", "auto", "--num-processes", "auto", "--chunk-size", "4")
    assert "12 of 20 lanes computed" in first or "8 of 20 lanes computed" in first
    assert first == told("inspect", store)
    assert "95% confidence interval" in told(*sweep)
    whole = told("inspect", store)
    assert "20 of 20 lanes computed (100.0%)" in whole
    assert "objective_perturbation, central, one label, replace-one" in whole
    assert "(1, 0.001)-DP at 1 grid point" in whole
    expected = xr.open_zarr(store).load()
    assert told(*sweep, "--overwrite")
    xr.testing.assert_equal(xr.open_zarr(store).load(), expected)
    code, printed = in_process(*sweep[:-2], "--epsilon", "3", *sweep[-2:], monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2
    assert "axes.epsilon is [1.0] there, [1.0, 3.0] here" in printed.err
    assert "; --grow keeps its results and adds the missing ones" in printed.err
    for arguments, message in {
        ("inspect", str(tmp_path)): "store must be the store of a sweep",
        ("inspect", store + "x"): f"store must be the store of a sweep, got {store}x, which does not exist",
        ("sweep", "none", "--store", store): f"study must be one of {', '.join(STUDIES)}, got 'none'",
        (*sweep, "--process-index", "x", "--num-processes", "2"): "process_index must be an integer >= 0, got 'x'",
    }.items():
        code, printed = in_process(*arguments, monkeypatch=monkeypatch, capsys=capsys)
        assert (code, message in printed.err) == (2, True), printed.err


@pytest.mark.parametrize(("verb", "option"), [("sweep", "--store"), ("run", "--out")])
def test_an_address_is_refused_and_makes_no_folder(tmp_path, monkeypatch, verb, option):
    monkeypatch.chdir(tmp_path)
    name = option.removeprefix("--")
    with pytest.raises(
        ValueError, match=f"^{name} must be a path in a file system, not an address, got s3:/+bucket/runs"
    ):
        CliRunner().invoke(
            app, ["--no-cache", verb, "reward-estimation", "--seeds", "2", option, "s3://bucket/runs"],
            catch_exceptions=False,
        )  # fmt: skip
    with pytest.raises(ValueError, match=r"^store must be a path in a file system, not an address, got s3:/+bucket"):
        CliRunner().invoke(app, ["inspect", "s3://bucket/runs"], catch_exceptions=False)
    assert not list(tmp_path.iterdir())
