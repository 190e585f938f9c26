"""The command line, `python -m jaxdp`.

Commands import their modules when they are called, so that help appears quickly.
"""

import contextlib
import os
import shutil
import sys
import warnings
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import jaxdp
from jaxdp.studies.command import Seed
from jaxdp.studies.garbage import collect_garbage_rarely
from jaxdp.studies.menu import MainGroup, RunGroup, SweepGroup
from jaxdp.studies.numbers import whole_number
from jaxdp.studies.terminal import terminal_width, wrap_prose
from jaxdp.user_cache import stored_text

if TYPE_CHECKING:
    from jaxdp.audit._scoreboard import Step

app = typer.Typer(
    cls=MainGroup,
    help="Measure the cost of differential privacy in regret or estimation error, and audit privacy claims.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
runs = typer.Typer(
    cls=RunGroup,
    help="Run a study: simulate, write the dataset and the figure, and print a table.",
    no_args_is_help=True,
)
app.add_typer(runs, name="run")
sweeps = typer.Typer(
    cls=SweepGroup,
    help="Run a study, or one process's part of it, and write a store on disk; rerun to resume.",
    no_args_is_help=True,
)
app.add_typer(sweeps, name="sweep")


@app.command("inspect")
def inspect_store(store: Annotated[Path, typer.Argument(help="A store that a sweep wrote, or is writing.")]) -> None:
    """Print a store's contents, completeness, provenance and privacy claims."""
    from jaxdp.simulation.store.inspection import describe

    typer.echo(wrap_prose(describe(store), terminal_width()))


With = Annotated[
    list[str] | None,
    typer.Option("--with", help="Module that registers your own entries by `jaxdp.register`. Repeat for several."),
]


def read_registry(modules: list[str] | None) -> None:
    """Adds users' entries to the registry, from installed distributions and from the named modules."""
    from jaxdp import registry

    registry.load_plugins(lambda sentence: typer.echo(f"warning: {sentence}", err=True))
    registry.import_modules(modules or ())


@app.command("list")
def list_entries(
    context: typer.Context,
    kind: Annotated[str | None, typer.Option(help="List only this kind: mechanism, learner or estimator.")] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="List every variant with its claim at example values; if piped, on one line each."),
    ] = False,
    claims: Annotated[
        bool,
        typer.Option(
            "--claims",
            help="Print a Markdown table of learners and estimators: trust model, privacy unit, claim, proof.",
        ),
    ] = False,
    sources: Annotated[
        bool,
        typer.Option("--sources", help="List every variant with its full reference and whether its claim is proved."),
    ] = False,
    with_: With = None,
) -> None:
    """List every mechanism, learner and estimator: one row for each algorithm, in at most 100 columns."""
    if claims and kind is not None:
        raise ValueError(f"kind must be left out with --claims, got {kind!r}")
    if claims and sources:
        raise ValueError("sources must be left out with --claims")
    if claims and every:
        raise ValueError("all must be left out with --claims")
    width = terminal_width()

    def text() -> str:
        from jaxdp import registry
        from jaxdp.registry.overview import WIDTH, overview

        read_registry(with_)
        if claims:
            return registry.claims_table()
        if every or sources:  # in a pipe or a file, each entry is one line
            return registry.listing(kind, sources=sources, width=width)
        return overview(kind, width=min(width or WIDTH, WIDTH))

    # JAX takes a second to start. Texts with users' entries are not stored, since users' modules may change.
    if with_ or entry_points(group="jaxdp.register") or context.find_root().params["no_cache"]:
        typer.echo(text())
    else:
        typer.echo(stored_text(f"list {kind} {every} {claims} {sources} {width}", text))


@app.command("audit")
def audit_claims(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of the entries to audit, as in `list`; by default all.")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            help="Number of outputs drawn under each of two neighbouring inputs.",
            show_default="1000000; 40000 with --python",
            parser=whole_number,
            metavar="<int>",
        ),
    ] = None,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough",
            help="Attack every path (way to compute outputs) with long searches, and the first path at all registered "
            "values and sizes.",
        ),
    ] = False,
    search: Annotated[
        bool, typer.Option(help="Search for revealing inputs, and attack at one more setting; --no-search is faster.")
    ] = True,
    json: Annotated[Path | None, typer.Option(help="Also write the table to this new JSON file, row by row.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Number of claims audited at the same time, each in its own process; by default 2 on a CPU if there "
            "are eight or more claims. Results do not depend on it.",
            show_default=False,
            parser=whole_number,
            metavar="<int>",
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            help="Instead of entries, attack a learner of ordinary Python: module:name of a result of "
            "jaxdp.audit.python_learner, or of a function that returns it.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    with_: With = None,
) -> None:
    """Attack privacy claims through outputs and noise. The exit code is 1 after a violation or a blunt attack.

    BOUND is a lower bound on the true number (epsilon, rho or mu). The 95%
    confidence holds for all rows together: if all claims are true, at most one
    run in twenty flags a claim. For mechanisms, the audit searches for revealing
    inputs. Each claim is attacked at its registered values and at one more setting
    (values or size), which --seed determines. --thorough attacks all settings, and
    also searches for revealing users of learners. "blunt" means that the bound is
    less than half of the bound that attacks find on correct code, with at least
    10^6 trials. Then the audit shows little, and the noise may be too large.
    """
    import jax
    from tqdm import tqdm

    from jaxdp import registry
    from jaxdp.audit import expected_minutes, format_header, format_notes, format_row, scoreboard, to_json
    from jaxdp.audit._python_learner import read_python_learner
    from jaxdp.audit.black_box import FEWEST_TRIALS, MOST_TRIALS
    from jaxdp.registry.claims import select_names
    from jaxdp.studies.command import root_key
    from jaxdp.studies.side_by_side import side_by_side, usual_jobs
    from jaxdp.validation import check_count

    if thorough and not search:
        raise ValueError("search must not be left out with --thorough")
    if jobs is not None:
        check_count("jobs", jobs)
    if python is not None:
        if names or json or thorough or jobs is not None or not search:
            raise ValueError(
                f"python must come without names, --json, --thorough, --jobs and --no-search, got {python}"
            )
        read_registry(with_)
        attack_result = read_python_learner(python).audit(root_key(seed), trials=40_000 if trials is None else trials)
        typer.echo(f"{attack_result}\n  {attack_result.event}")
        raise typer.Exit(int(attack_result.verdict == "violated"))
    if json is not None and not json.parent.is_dir():
        raise ValueError(f"json must lie in a folder that exists, got {json}")
    read_registry(with_)
    selected, key = select_names(names or None), root_key(seed)
    trials = check_count("trials", 10**6 if trials is None else trials, FEWEST_TRIALS, maximum=MOST_TRIALS)
    rows = []
    with contextlib.ExitStack() as stack:
        file = None
        if json is not None:
            try:
                file = stack.enter_context(json.open("x"))
            except FileExistsError as error:
                raise ValueError(f"json must be a new file, so that no result is overwritten, got {json}") from error
            file.write(to_json(rows) + "\n")
            file.flush()
        # disable=None: no bar if standard error is not a terminal
        bar = stack.enter_context(tqdm(total=len(selected), unit="claim", leave=False, disable=None))

        def before(step: "Step") -> None:
            bar.set_description_str(f"{step.name} in {step.currency}, {step.what}")

        if thorough:
            typer.echo(f"about {expected_minutes(registry.attacks(selected)):.0f} minutes of two cores", err=True)
        width = max(shutil.get_terminal_size((80, 24)).columns, 80)
        how = {"trials": trials, "thorough": thorough, "searched": search, "turn": seed}
        jobs = jobs or usual_jobs(len(selected), os.cpu_count() or 1, jax.default_backend())
        if jobs == 1:
            board = scoreboard(key, registry.attacks(selected), **how, before=before)
        else:
            board = side_by_side(selected, seed=seed, jobs=min(jobs, len(selected)), modules=with_ or (), **how)
        for row in stack.enter_context(contextlib.closing(board)):
            bar.clear()
            code = row.code.splitlines()
            for text in [
                *([] if rows else [format_header(selected, width)]),
                format_row(row, selected, width),
                *(text if text in code else wrap_prose(text, terminal_width()) for text in format_notes(row)),
            ]:
                typer.echo(text)
            bar.update()
            rows.append(row)
            if file is not None:  # written now, so that an interruption leaves finished rows; the text only grows
                file.seek(0)
                file.write(to_json(rows) + "\n")
                file.flush()
    if any(row.verdict in ("violated", "blunt") for row in rows):
        raise typer.Exit(1)


@app.command("abtest", help="Plan a test of two arms on private bits (the number of users needed), or evaluate it.")
def plan_abtest(
    rate: Annotated[
        float, typer.Option(help="Fraction of ones in the control arm, such as a conversion rate of 0.02.")
    ],
    lift: Annotated[float, typer.Option(help="Relative change to detect: 0.1 for 10% more, -0.02 for 2% less.")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget of each user's bit; inf for none.")],
    trust: Annotated[
        str, typer.Option(help="local: users randomize their bits. central: a curator releases noisy counts.")
    ],
    power: Annotated[float, typer.Option(help="Probability of detecting the lift.")] = 0.8,
    failure_prob: Annotated[
        float, typer.Option(help="Probability of a false positive: equal arms are declared different.")
    ] = 0.05,
    users: Annotated[
        float | None,
        typer.Option(
            help="Number of users in both arms together: also print the lift that they can detect.", show_default=False
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot the number of users needed against epsilon into this new file.")
    ] = None,
    reports: Annotated[
        Path | None,
        typer.Option(help="Evaluate this CSV file: a header, then arm and 0 or 1 for each user, in order."),
    ] = None,
    control: Annotated[str | None, typer.Option(help="Name of the control arm in the file.")] = None,
    kind: Annotated[
        str, typer.Option(help="Test of the file. anytime: may stop after every look. fixed: looks once, at the end.")
    ] = "anytime",
    release: Annotated[
        Path | None,
        typer.Option(
            help="With central trust: release the file's true bits with exact secret noise, keep the releases in this "
            "file, and print only the verdict and its claim. Give the same file again after more users have arrived."
        ),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Prints how many users are needed to detect a lift, in both trust models and in a non-private test.

    If `reports` is given, runs the test on this file first; with `release`, prints only the test's result.
    """
    from jaxdp.abtests import abtest
    from jaxdp.abtests._files import describe, evaluate, new_picture, read_arms

    if release is not None and (reports is None or users is not None or plot is not None):
        raise ValueError("release must come with --reports, and without --users and --plot, which belong to a plan")
    if reports is None and (control is not None or kind != "anytime"):
        raise ValueError("control and kind belong to the evaluation of a file: name it by --reports")
    picture = None if plot is None else new_picture(plot)
    arms = None if reports is None else read_arms(reports, control, is_private=trust == "central")
    plan = abtest(rate=rate, lift=lift, epsilon=epsilon, trust=trust, power=power, failure_prob=failure_prob, seed=seed)
    description = None if users is None else describe(plan, users)
    if arms is not None:
        typer.echo(evaluate(plan, kind, arms, seed=seed, release=release))
        if release is not None:
            return
        typer.echo("\nThe plan:")
    typer.echo(plan.table())
    if description is not None:
        typer.echo(description)
    if picture is not None:
        plan.plot().savefig(picture)
        typer.echo(f"wrote {picture}")


def print_version(requested: bool) -> None:
    """Prints the version if requested, and exits."""
    if requested:
        typer.echo(f"jaxdp {jaxdp.__version__}")
        raise typer.Exit


@app.callback()
def before_jax_starts(
    context: typer.Context,
    cpu_devices: Annotated[
        int | None,
        typer.Option(
            help="Number of CPU devices that share the work; by default one, as in JAX.",
            parser=whole_number,
            metavar="<int>",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=print_version)
    ] = False,
    no_cache: Annotated[
        bool,
        typer.Option(
            "--no-cache", help="Do not use your cache directory, which keeps compiled programs and the text of `list`."
        ),
    ] = False,
) -> None:
    """Sets the number of CPU devices and the cache of compiled programs, before JAX starts."""
    if cpu_devices is not None:
        import jax

        from jaxdp.validation import check_count

        jax.config.update("jax_num_cpu_devices", check_count("cpu_devices", cpu_devices))
    if "--help" in sys.argv or context.invoked_subcommand == "list":  # nothing will be compiled; JAX need not start
        return
    from jaxdp.simulation.sweeps.compilation import configure_cache

    configure_cache(not no_cache, lambda sentence: typer.echo(sentence, err=True))


def show_warning(message: Warning | str, *origin: object) -> None:
    """Prints a warning in one line, without Python's file and line number."""
    del origin
    typer.echo(f"warning: {message}", err=True)


def main() -> None:
    """Runs the command line.

    A ValueError, OSError or MemoryError, which the user can correct, is printed with its notes and without a traceback.
    The exit code is then 2.
    """
    collect_garbage_rarely()
    warnings.showwarning = show_warning
    try:
        app(prog_name="jaxdp")
    except (ValueError, OSError, MemoryError) as error:
        typer.echo("\n".join([f"error: {error}", *getattr(error, "__notes__", ())]), err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
