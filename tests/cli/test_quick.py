"""--quick replaces defaults by smaller values, keeps the user's own options, and prints both."""

import inspect
from typing import Annotated, Any

import pytest
import typer
import xarray as xr
from matplotlib.figure import Figure
from typer.testing import CliRunner

from jaxdp.simulation.sweeps.lanes import Program
from jaxdp.studies import STUDIES
from jaxdp.studies import study as load_study
from jaxdp.studies.arguments import NumSeeds, grid
from jaxdp.studies.declared import BoundStudy, Study
from jaxdp.studies.running import run_command, sweep_command


def simulate(
    *,
    num_seeds: NumSeeds = 200,
    horizon: Annotated[list[int], grid("Rounds.")] = [1000, 2000],  # noqa: B006, which nobody changes
    gap: Annotated[float, typer.Option(help="Gap.")] = 0.5,
    short: Annotated[bool, typer.Option("--short", help="Short.")] = False,
    **scheduling: Any,
) -> xr.Dataset:
    """Returns its options."""
    return xr.Dataset({"seeds": num_seeds, "horizon": ("given", list(horizon)), "gap": gap})


def report(results: xr.Dataset) -> str:
    return f"{int(results.seeds)} seeds, {results.horizon.values.tolist()} rounds, gap {float(results.gap)}"


STUDY = Study(
    simulate, lambda results: Figure(), report, quick={"num_seeds": 4, "horizon": (100,), "short": True}, minutes=3
)


@pytest.mark.parametrize(
    ("arguments", "simulated", "note"),
    [
        ([], "200 seeds, [1000, 2000] rounds, gap 0.5", None),
        (["--quick"], "4 seeds, [100] rounds, gap 0.5", "--seeds 4 --horizon 100 --short"),
        (["--quick", "--gap", ".1"], "4 seeds, [100] rounds, gap 0.1", "--seeds 4 --horizon 100 --short"),
        (["--quick", "--seeds", "200"], "200 seeds, [100] rounds, gap 0.5", "--horizon 100 --short"),
        (["--quick", "--horizon", "7", "--horizon", "8"], "4 seeds, [7, 8] rounds, gap 0.5", "--seeds 4 --short"),
    ],
)
def test_options_of_the_user_replace_those_of_the_quick_form(tmp_path, arguments, simulated, note):
    app = typer.Typer()
    app.command()(run_command("made-up", STUDY))
    result = CliRunner().invoke(app, ["--out", str(tmp_path / "out"), *arguments])
    assert result.exit_code == 0, result.output
    printed = " ".join(result.output.split())
    assert printed.startswith(simulated)
    text = f"Quick form: {note}. With its defaults it takes about 3 min on two cores"
    assert text in printed if note else "Quick form" not in printed


@pytest.mark.parametrize("name", STUDIES)
def test_quick_forms_change_options_that_exist(name):
    study = load_study(name)
    options = {option.name: option for option in study.options}
    assert study.quick.keys() <= options.keys()
    for option, value in study.quick.items():
        assert value != options[option].default
        assert isinstance(value, tuple) == (option == "learner" or isinstance(options[option].default, list))
    assert "quick" in inspect.signature(run_command(name, study)).parameters
    assert "quick" not in inspect.signature(sweep_command(study)).parameters


class TracedError(Exception):
    """Stops a study before anything is compiled: all of its programs have been traced."""


@pytest.mark.parametrize("quick", [False, True], ids=["full", "quick"])
@pytest.mark.parametrize("name", sorted(STUDIES.keys() - {"preference-pairs", "tracking-your-losses"}))
def test_all_programs_of_a_study_can_be_traced(name, quick, monkeypatch):
    """Leaves out studies of the user's data."""

    def stop(program: Program) -> None:
        raise TracedError

    monkeypatch.setattr(Program, "compile", stop)
    study = load_study(name)
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in study.quick.items()}
    bound = study.bind(**options) if quick else study.bind()
    assert isinstance(bound, BoundStudy)
    with pytest.raises(TracedError):
        bound.simulate()
