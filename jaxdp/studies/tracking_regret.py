"""What privacy costs in tracking the best of several experts (Tracking, Table 1).

Plays learners against adversaries whose best expert changes, and
compares them with the best sequence of experts that switches as often.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.simulation import Run, sweep
from jaxdp.stats import power_law
from jaxdp.studies.arguments import Epsilons, Key, NumSeeds, grid
from jaxdp.studies.command import columns, mean_and_half_width
from jaxdp.studies.declared import Study
from jaxdp.studies.tiles import cpu_tile
from jaxdp.studies.tracking import (
    ADVERSARIES,
    LEARNERS,
    Gap,
    Names,
    NotPure,
    Setting,
    at_setting,
    check_learners,
    claim_of,
    proved_bound,
    settings_of,
    star,
    tracking_run,
    with_settings,
)
from jaxdp.studies.tracking_orders import ORDERS, draw_orders, heights, orders_note, slope
from jaxdp.validation import check_delta, check_positive

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
    adversary: Annotated[
        Sequence[str], grid(f"Adversary. Repeat for several, of {', '.join(ADVERSARIES)}.")
    ] = SHIFTING,
    horizon: Annotated[
        Sequence[int], grid("Rounds T. Repeat for several: the first holds while S or N vary.")
    ] = HORIZONS,
    num_switches: Annotated[
        Sequence[int],
        grid(
            "Switches S of the comparator, and shifts of the adversary; 0 is static regret. Repeat as for T.",
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
    """Dynamic regret of learners from experts, for every learner, setting, epsilon and seed.

    A setting is an adversary, N, T and S. For each adversary there is the one of all first values; in the others one of
    the further values takes its place. Learners know N, T and S, and have the parameters that their proofs or
    their authors give for these.

    Args:
        epsilon: privacy budgets, > 0; infinity is no privacy.
        learner: names, of `jaxdp.studies.tracking.LEARNERS`; "all", or none, is all.
        adversary: names, of `jaxdp.studies.tracking.ADVERSARIES`.
        horizon: rounds T, >= 2.
        num_switches: S, of the comparator, >= 0 and below the horizon; the adversary shifts as often, in equal
            segments. At 0 learners for sequences are those for single experts.
        num_experts: N, >= 2; "lower_bound" needs N > S.
        num_seeds: repetitions.
        gap: how far the good expert's mean loss is below that of the others, 1/2, in (0, 1/2].
        delta: of learners with one, in (0, 1).
        key: root key.
        **scheduling: as `sweep` takes it, such as `progress` and `store`.

    Returns:
        A dataset with `dynamic_regret`, against the best sequence with S switches, `regret`, against the best expert,
        and `loss`, `best_loss`, `best_sequence_loss`, of dimensions (learner, setting, epsilon, seed). Coordinates
        `claim`, by learner, and `adversary`, `num_experts`, `horizon`, `num_switches`, by setting.

    Raises:
        ValueError: if a value is out of range.
    """
    check_delta(delta)
    names, settings = check_learners(learner), star(adversary, num_experts, horizon, num_switches)
    if check_positive("gap", gap) > 0.5:
        raise ValueError(f"gap must be in (0, 1/2], got {gap}")
    by_text = {str(setting): setting for setting in settings}

    def build(learner: str, setting: str) -> Run:
        name, *sizes = by_text[setting]
        environment = ADVERSARIES[name].make(by_text[setting], gap)
        num_experts, horizon, num_switches = sizes
        made = LEARNERS[learner](num_experts, horizon, num_switches)
        return tracking_run(made, environment, horizon, delta)

    results = sweep(
        build,
        axes={"epsilon": list(epsilon)},
        static_axes={"learner": names, "setting": list(by_text)},
        num_seeds=num_seeds,
        key=key,
        tile_size=cpu_tile(TILE_SIZE),
        **scheduling,
    )
    # A claim may depend on the setting: that of mirror descent as published is N times epsilon.
    claims = [
        "; ".join(dict.fromkeys(claim_of(LEARNERS[name](*setting[1:]), delta) for setting in settings))
        for name in names
    ]
    results = with_settings(results, settings).assign_coords(claim=("learner", claims), delta=delta, gap=gap)
    return results.transpose("learner", "setting", "epsilon", "seed", ...)


def bases(results: xr.Dataset) -> list[Setting]:
    """The first setting of each adversary."""
    found: dict[str, Setting] = {}
    for setting in settings_of(results):
        found.setdefault(setting.adversary, setting)
    return list(found.values())


def along(results: xr.Dataset, base: Setting, axis: str) -> xr.Dataset:
    """The settings that differ from `base` along one axis at most, with that axis as their dimension."""
    own = [s for s in settings_of(results) if s._replace(**{axis: getattr(base, axis)}) == base]
    own.sort(key=lambda setting: getattr(setting, axis))
    chosen = results.sel(setting=[str(setting) for setting in own])
    chosen = chosen.drop_vars(["setting", *Setting._fields])
    return chosen.rename(setting=axis).assign_coords({axis: [getattr(setting, axis) for setting in own]})


def varied(results: xr.Dataset) -> list[str]:
    """Which of T, S and N have several values."""
    base = bases(results)[0]
    return [axis for axis in AXES if along(results, base, axis).sizes[axis] > 1]


def shown_epsilon(results: xr.Dataset) -> float:
    """The epsilon at which regret is drawn against T, S and N: the finite one that is closest to 1."""
    budgets = results.epsilon.values
    finite = budgets[np.isfinite(budgets)]
    return float(finite[np.abs(np.log(finite)).argmin()]) if len(finite) else float("inf")


def uniform_regret(results: xr.Dataset, base: Setting) -> float | None:
    """Expected dynamic regret of an expert drawn anew in each round; None where losses react to plays."""
    mean_loss = ADVERSARIES[base.adversary].mean_loss
    if mean_loss is None:
        return None
    best = float(at_setting(results, base).best_sequence_loss.isel(learner=0, epsilon=0).mean())
    return mean_loss(base.num_experts, float(results.gap)) * base.horizon - best


def figure(results: xr.Dataset) -> Figure:
    """The figure: dynamic regret against T, S, N, as far as they vary, and against epsilon; a row for an adversary."""
    rows, axes, at = bases(results), varied(results), shown_epsilon(results)
    results = results.sortby("epsilon")
    figure = plotting.panels(len(rows), len(axes) + 1, height=3.2)
    grid = iter(figure.axes)
    labels = plotting.prefixed(results.claim)
    for place, base in enumerate(rows):
        ylabel = f"{base.adversary}\ndynamic regret"
        for axis in axes:
            ax = next(grid)
            values = along(results, base, axis).dynamic_regret.sel(epsilon=at, drop=True)
            style: dict[str, Any] = {"xlabel": AXIS_NAMES[axis], "ylabel": ylabel, "labels": labels}
            style["xscale"] = "log" if values[axis].values.min() > 0 else "linear"
            style["title"] = "" if place else plotting.epsilon_label(at)
            plotting.curves(values, x=axis, hue="learner", ax=ax, yscale="log", **style)
            points = [base._replace(**{axis: int(value)}) for value in values[axis].values]
            draw_orders(ax, values[axis].values, [(at, point) for point in points], float(results.delta))
            ylabel = ""
        ax = next(grid)
        own, title = at_setting(results, base).dynamic_regret, None if place else _sizes(base)
        plotting.cost_of_privacy(own, hue="learner", ax=ax, labels=labels, yscale="log", ylabel=ylabel, title=title)
        budgets = results.epsilon.values
        draw_orders(ax, budgets, [(float(value), base) for value in budgets], float(results.delta))
        uniform = uniform_regret(results, base)
        if uniform is not None:
            plotting.bound(ax, budgets, uniform, label="uniform play")
    figure.explain(
        title="What privacy costs in tracking the best expert",
        note=f"What is on no axis: {_sizes(rows[0])}. {orders_note(rows)}",
    )
    return figure


def _sizes(base: Setting) -> str:
    return f"N = {base.num_experts:,}, T = {base.horizon:,}, S = {base.num_switches:,}"


def table(results: xr.Dataset, base: Setting) -> str:
    """Mean dynamic regret in a setting, +- half width of its 95% confidence interval."""
    mean, half = mean_and_half_width(at_setting(results, base).dynamic_regret)
    rows = [["", *(plotting.epsilon_label(value) for value in results.epsilon.values)]]
    for name, label in plotting.prefixed(results.claim).items():
        pairs_ = zip(mean.sel(learner=name).values, half.sel(learner=name).values, strict=True)
        rows.append([label, *(f"{m:,.0f} +- {h:,.0f}" for m, h in pairs_)])
    uniform = uniform_regret(results, base)
    if uniform is not None:
        rows.append(["uniform play", *[f"{uniform:,.0f}"] * results.sizes["epsilon"]])
    for name in results.learner.values:
        found = [proved_bound(str(name), base, float(e), float(results.delta)) for e in results.epsilon.values]
        if found[0] is not None:
            rows.append([f"proved bound of {name}", *(f"{value:,.0f}" for value in found)])
    return "\n".join([f"dynamic regret, {base}", *columns(rows)])


def growth(results: xr.Dataset, base: Setting) -> str:
    """Fitted exponents of T, S, N and 1 / epsilon, and below them those of Table 1 at the same points."""
    at, delta = shown_epsilon(results), float(results.delta)
    budgets = np.sort(results.epsilon.values)
    finite = budgets[np.isfinite(budgets)]
    kinds = [*([at] if len(finite) else []), *([float("inf")] if len(finite) < len(budgets) else [])]
    head, fits, points = [], [], []
    for axis in varied(results):
        chosen = along(results, base, axis)
        if chosen.sizes[axis] < 2 or chosen[axis].values.min() <= 0:
            continue
        for epsilon in kinds:
            head.append(f"{AXES[axis]}, {plotting.epsilon_label(epsilon)}")
            fits.append(power_law(chosen.dynamic_regret.sel(epsilon=epsilon), axis))
            own = [base._replace(**{axis: int(value)}) for value in chosen[axis].values]
            points.append((chosen[axis].values, [(epsilon, point) for point in own]))
    if len(finite) > 1:
        regret = at_setting(results, base).dynamic_regret.sel(epsilon=finite)
        head.append("1/ε")
        fits.append(power_law(regret.assign_coords(epsilon=1 / finite), "epsilon"))
        points.append((1 / finite, [(float(value), base) for value in finite]))
    if not head:
        return ""
    rows = [["", *head]]
    for name, label in plotting.prefixed(results.claim).items():
        rows.append([label, *(_interval(fit.sel(learner=name)) for fit in fits)])
    for order in ORDERS[ADVERSARIES[base.adversary].kind]:
        slopes = [slope(x, heights(order, own, delta)) for x, own in points]
        if set(slopes) != {"-"}:
            rows.append([f"Table 1 ({order.text})", *slopes])
    return "\n".join([f"exponents of dynamic regret, {base.adversary}", *columns(rows)])


def _interval(fit: xr.Dataset) -> str:
    middle, low, high = (round(float(fit[name]), 2) + 0.0 for name in ("exponent", "low", "high"))  # no -0.00
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def report(results: xr.Dataset) -> str:
    """What the command prints: regret, how it grows beside Table 1, and what that means."""
    parts = [text for base in bases(results) for text in (table(results, base), growth(results, base)) if text]
    seeds = plotting.seed_count(results.sizes["seed"])
    notes = [
        f"+-, bands and intervals: 95% confidence (Student's t) over {seeds}. Those of exponents are about the slope of"
        " the mean on logarithmic axes, not about whether it is a straight line. An exponent of T near 1 is of a "
        "learner that does not track yet; Table 1's are those of its orders, logarithms included, at the same points.",
        "Central learners trust a curator with every loss vector; local ones noise each before it leaves the user. "
        f"ε: pure; (ε, δ): zero-concentrated, or approximate, at delta = {float(results.delta):g}.",
        f"Further ones of T, S and N vary one at a time. All learners: {', '.join(LEARNERS)}. "
        f"All adversaries: {', '.join(ADVERSARIES)}.",
    ]
    return "\n\n".join([*parts, *notes])


STUDY = Study(tracking_regret, figure, report)
