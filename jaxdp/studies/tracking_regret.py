"""Cost of privacy in tracking the best of several experts (Asi et al., 2025: Tracking, Table 1).

The best expert changes over time. Compares learners with the best sequence
of experts with S switches.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.registry.titles import display_name
from jaxdp.simulation import Run
from jaxdp.studies import comparison as shared
from jaxdp.studies.arguments import Epsilons, Key, NumSeeds, grid
from jaxdp.studies.comparison import UNIFORM, Line, Panel
from jaxdp.studies.declared import Study
from jaxdp.studies.tracking import (
    ADVERSARIES,
    LEARNERS,
    Gap,
    Names,
    NotPure,
    Setting,
    at_setting,
    check_gap,
    check_learners,
    claim_of,
    proved_bound,
    settings_of,
    star,
    tracking_run,
    with_settings,
)
from jaxdp.studies.tracking_orders import ORDERS, heights, order_lines, orders_note, slope
from jaxdp.validation import check_delta

EPSILONS = (0.3, 1.0, 3.0, 10.0, float("inf"))
COMPARED = (
    "exponential_weights",
    "svt_restarts",
    "lazy_weights",
    "counter_weights",
    "mirror_descent",
)
SHIFTING = ("shifting",)
HORIZONS = (20_000, 2_000)
SWITCHES = (3, 9)
EXPERTS = (10,)
GAP = 0.3
DELTA = 1e-6
NUM_SEEDS = 10
TILE_SIZE = 25
AXES = {"horizon": "T", "num_switches": "S", "num_experts": "N"}
AXIS_NAMES = {"horizon": "rounds T", "num_switches": "switches S", "num_experts": "experts N"}


def tracking_regret(
    *,
    epsilon: Epsilons = EPSILONS,
    learner: Names = COMPARED,
    adversary: Annotated[Sequence[str], grid(f"Adversary: {', '.join(ADVERSARIES)}. Repeat for several.")] = SHIFTING,
    horizon: Annotated[
        Sequence[int], grid("Rounds T. Repeat for several; where S or N varies, T has its first value.")
    ] = HORIZONS,
    num_switches: Annotated[
        Sequence[int],
        grid(
            "Switches S of the comparator, and shifts of the adversary; 0 for static regret. Repeat as for T.",
            "--switches",
        ),
    ] = SWITCHES,
    num_experts: Annotated[Sequence[int], grid("Experts N. Repeat as for T.", "--experts")] = EXPERTS,
    num_seeds: NumSeeds = NUM_SEEDS,
    gap: Gap = GAP,
    delta: NotPure = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates the dynamic regret of learners, for every learner, setting, epsilon and seed.

    A setting consists of an adversary, N, T and S. The first setting of each adversary has the first values of N, T and
    S; every further setting changes one of these values. Each learner knows N and, if its factory takes them, T and S.
    It uses the parameters that its proof or its authors give for these numbers.

    Returns:
        A dataset with `dynamic_regret` (against the best sequence with at most S switches), `regret` (against the best
        expert), `loss`, `best_loss` and `best_sequence_loss`, of dimensions (learner, setting, epsilon, seed). The
        dataset has the coordinates `claim` along learner; `adversary`, `num_experts`, `horizon` and `num_switches`
        along setting; and the scalars `delta` and `gap`.

    Raises:
        ValueError: if a value is out of range, or a name is unknown.
    """
    check_delta(delta)
    names, settings = check_learners(learner), star(adversary, num_experts, horizon, num_switches)
    check_gap(gap)
    by_text = {str(setting): setting for setting in settings}

    def build(learner: str, setting: str) -> Run:
        name, *sizes = by_text[setting]
        environment = ADVERSARIES[name].make(by_text[setting], gap)
        return tracking_run(LEARNERS[learner](*sizes), environment, by_text[setting].horizon, delta)

    results = shared.compare(
        build,
        {"learner": names, "setting": list(by_text)},
        epsilon=epsilon,
        num_seeds=num_seeds,
        key=key,
        tile=TILE_SIZE,
        **scheduling,
    )
    # A claim may depend on the setting: the published mirror descent claims N times epsilon.
    claims = [
        "; ".join(dict.fromkeys(claim_of(LEARNERS[name](*setting[1:]), delta) for setting in settings))
        for name in names
    ]
    return with_settings(results, settings).assign_coords(claim=("learner", claims), delta=delta, gap=gap)


def bases(results: xr.Dataset) -> list[Setting]:
    """Returns the first setting of each adversary."""
    firsts: dict[str, Setting] = {}
    for setting in settings_of(results):
        firsts.setdefault(setting.adversary, setting)
    return list(firsts.values())


def along(results: xr.Dataset, base: Setting, axis: str) -> xr.Dataset:
    """Returns the results of the settings that equal `base` except in the field `axis`, which becomes a dimension."""
    settings = [s for s in settings_of(results) if s._replace(**{axis: getattr(base, axis)}) == base]
    settings.sort(key=lambda setting: getattr(setting, axis))
    selected = results.sel(setting=[str(setting) for setting in settings])
    selected = selected.drop_vars(["setting", *Setting._fields])
    return selected.rename(setting=axis).assign_coords({axis: [getattr(setting, axis) for setting in settings]})


def varying_axes(results: xr.Dataset) -> list[str]:
    """Returns the axes among T, S and N that have several values."""
    base = bases(results)[0]
    return [axis for axis in AXES if along(results, base, axis).sizes[axis] > 1]


def uniform_regret(results: xr.Dataset, base: Setting) -> float | None:
    """Estimates the expected dynamic regret of uniform play in the setting `base`; None if its mean loss is not known.

    The estimate is the expected loss minus the mean over seeds of the best sequence's loss.
    """
    mean_loss = ADVERSARIES[base.adversary].mean_loss
    if mean_loss is None:
        return None
    best = float(at_setting(results, base).best_sequence_loss.isel(learner=0, epsilon=0).mean())
    return mean_loss(base.num_experts, float(results.gap)) * base.horizon - best


def figure(results: xr.Dataset) -> Figure:
    """Draws dynamic regret against epsilon, and against each of T, S and N that varies; one row for each adversary."""
    rows, axes, at = bases(results), varying_axes(results), shared.nearest_epsilon(results)
    results, delta, panels = results.sortby("epsilon"), float(results.delta), []
    budgets = results.epsilon.values
    for row, base in enumerate(rows):
        ylabel = f"{base.adversary}\ndynamic regret"
        for axis in axes:
            values = along(results, base, axis).dynamic_regret.sel(epsilon=at, drop=True)
            points = [(at, base._replace(**{axis: int(value)})) for value in values[axis].values]
            style = {"xlabel": AXIS_NAMES[axis], "xscale": "log" if values[axis].values.min() > 0 else "linear"}
            style |= {"ylabel": ylabel, "title": "" if row else plotting.epsilon_label(at)}
            panels.append(Panel(values, axis, order_lines(values[axis].values, points, delta), style))
            ylabel = ""
        lines = order_lines(budgets, [(float(value), base) for value in budgets], delta)
        uniform = uniform_regret(results, base)
        if uniform is not None:
            lines.append(Line(budgets, uniform, UNIFORM))
        style = {"ylabel": ylabel, "title": None if row else _sizes(base)}
        panels.append(Panel(at_setting(results, base).dynamic_regret, lines=lines, style=style))
    figure = plotting.panels(len(rows), len(axes) + 1, height=3.2)
    shared.draw(figure, panels, hue="learner", labels=shared.learner_labels(results.claim), yscale="log")
    figure.explain(
        title="Cost of privacy in tracking the best expert",
        note=f"Unless on an axis: {_sizes(rows[0])}. {orders_note(rows)}",
    )
    return figure


def _sizes(base: Setting) -> str:
    return f"N = {base.num_experts:,}, T = {base.horizon:,}, S = {base.num_switches:,}"


def table(results: xr.Dataset, base: Setting) -> str:
    """Formats the mean dynamic regret of each learner in a setting, the regret of uniform play, and proved bounds."""
    uniform = uniform_regret(results, base)
    below: dict[str, Any] = {} if uniform is None else {UNIFORM: uniform}
    for name in map(str, results.learner.values):
        bounds = [proved_bound(name, base, float(e), float(results.delta)) for e in results.epsilon.values]
        if bounds[0] is not None:
            below[f"proved bound of {display_name(name)}"] = bounds
    regret, labels = at_setting(results, base).dynamic_regret, shared.learner_labels(results.claim)
    return shared.mean_table(f"dynamic regret, {base}", regret, labels, below=below)


def growth(results: xr.Dataset, base: Setting) -> str:
    """Formats fitted exponents of T, S, N and 1/epsilon if they vary, and the exponents of Table 1 at the same points.

    Exponents of T, S and N are at the finite epsilon nearest to 1 and at infinity, as far as the results have these
    epsilons. The text is empty if there is no exponent to show.
    """
    at, delta = shared.nearest_epsilon(results), float(results.delta)
    budgets = np.sort(results.epsilon.values)
    finite = budgets[np.isfinite(budgets)]
    shown_epsilons = [*([at] if len(finite) else []), *([float("inf")] if len(finite) < len(budgets) else [])]
    head, curves, points = [], [], []
    for axis in varying_axes(results):
        selected = along(results, base, axis)
        if selected.sizes[axis] < 2 or selected[axis].values.min() <= 0:
            continue
        for epsilon in shown_epsilons:
            head.append(f"{AXES[axis]}, {plotting.epsilon_label(epsilon)}")
            curves.append((selected.dynamic_regret.sel(epsilon=epsilon), axis))
            settings = [base._replace(**{axis: int(value)}) for value in selected[axis].values]
            points.append((selected[axis].values, [(epsilon, setting) for setting in settings]))
    if len(finite) > 1:
        regret = at_setting(results, base).dynamic_regret.sel(epsilon=finite)
        head.append("1/ε")
        curves.append((regret.assign_coords(epsilon=1 / finite), "epsilon"))
        points.append((1 / finite, [(float(value), base) for value in finite]))
    if not head:
        return ""
    rows = [
        [label, *(shared.exponent(values.sel(learner=name), x) for values, x in curves)]
        for name, label in shared.learner_labels(results.claim).items()
    ]
    for order in ORDERS[ADVERSARIES[base.adversary].kind]:
        slopes = [slope(x, heights(order, settings, delta)) for x, settings in points]
        if set(slopes) != {"-"}:
            rows.append([f"Table 1 ({order.text})", *slopes])
    return shared.format_table(f"exponents of dynamic regret, {base.adversary}", head, rows)


def report(results: xr.Dataset) -> str:
    """Formats the regret, its growth compared with Table 1, and notes."""
    parts = [text for base in bases(results) for text in (table(results, base), growth(results, base)) if text]
    seeds = plotting.seed_count(results.sizes["seed"])
    notes = [
        f"+-, bands and intervals: 95% confidence (Student's t) over {seeds}. Intervals of exponents cover the slope of"
        " the mean on logarithmic axes; they do not test whether the curve is a straight line. An exponent of T near "
        "1: the learner does not track yet. Exponents of Table 1 include logarithms, at the same points.",
        "Central learners trust a curator with every loss vector; local learners add noise to each before it leaves "
        f"the user. ε: pure; (ε, δ): zero-concentrated or approximate, with delta = {float(results.delta):g}.",
        f"T, S and N vary one at a time. All learners: {', '.join(LEARNERS)}. "
        f"All adversaries: {', '.join(ADVERSARIES)}.",
    ]
    return "\n\n".join([*parts, *notes])


STUDY = Study(
    tracking_regret,
    figure,
    report,
    quick={
        "horizon": (2000,),
        "num_switches": (3,),
        "learner": ("exponential_weights", "lazy_weights", "mirror_descent"),
    },
    minutes=1,
)
