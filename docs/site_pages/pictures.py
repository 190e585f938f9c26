"""Draws the small pictures on pages of algorithms: scores of the benchmark, and noise of mechanisms."""

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np

from jaxdp import plotting
from jaxdp.comparisons.tables import format_budget
from jaxdp.mechanisms import Counter
from jaxdp.plotting.style import style
from jaxdp.registry import MechanismEntry
from jaxdp.suite import v1

BUDGETS = tuple(float(epsilon) for epsilon in np.geomspace(0.1, 10, 13))
COUNTED = 1_000  # entries of a counter
LEAST_SCORE = 1e-3  # smaller scores are drawn here
LONG_LABEL = 35  # letters; longer labels are printed smaller, as pictures are low
SALT = "jaxdp"  # names in pictures are equal in every build


def svg(figure: plotting.Figure) -> str:
    """Returns a figure as SVG, on a white ground; the same figure gives the same text."""
    file = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": SALT}):
        figure.savefig(file, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def write_changed(path: Path, text: str) -> None:
    """Writes a file, except if it has this text already."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def fix_margins(figure: plotting.Figure, right: float = 0.98) -> None:
    """Sets margins that fit labels of a few digits; a search for the least margins takes half of the time."""
    figure.set_layout_engine(None)
    figure.subplots_adjust(left=0.14, right=right, bottom=0.18, top=0.89)


def draw_scores(title: str, unit: str, scores: Mapping[str, Sequence[float]]) -> plotting.Figure:
    """Draws scores against epsilon: a line for each instance, and one at the score 1.

    Args:
        title: the learner.
        unit: name of the play, or estimate, with the score 1.
        scores: for each instance, the mean score at each value of `v1.EPSILONS`.
    """
    figure = plotting.panels(width=5.2, height=3.0)
    (ax,) = figure.axes
    positions = range(len(v1.EPSILONS))
    for index, (name, values) in enumerate(scores.items()):
        heights = np.maximum(values, LEAST_SCORE)
        ax.plot(positions, np.where(np.isfinite(heights), heights, np.nan), label=name, **style(index, ax))
    ax.axhline(1, color="#888888", linewidth=1.0, linestyle=":", label=unit)
    ax.set_xticks(positions, [format_budget(epsilon) for epsilon in v1.EPSILONS])
    ax.set_yscale("log")
    finite = [max(value, LEAST_SCORE) for values in scores.values() for value in values if math.isfinite(value)]
    low, high = 0.8 * min([1.0, *finite]), 1.25 * max([1.0, *finite])
    ticks = score_ticks(low, high)
    ax.set_ylim(low, high)
    ax.set_yticks(ticks, [f"{tick:,g}" if tick < 1e5 else f"{tick:.0e}".replace("e+0", "e") for tick in ticks])
    ax.set_yticks([], minor=True)
    ax.set(title=title, xlabel="ε", ylabel="score")
    ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    fix_margins(figure, right=0.72)
    return figure


def score_ticks(low: float, high: float) -> list[float]:
    """Returns the ticks of an axis of scores: at most eight, finer ones for a shorter axis."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [digit * 10.0**decade for decade in decades for digit in digits if low <= digit * 10.0**decade <= high]
        if len(ticks) <= 8:
            return ticks
    return ticks[:: -(-len(ticks) // 8)]


def draw_errors(title: str, errors: Mapping[str, Sequence[float]]) -> plotting.Figure:
    """Draws mean errors, on a logarithmic axis, at each value of `v1.EPSILONS`: a line for each estimator."""
    figure = plotting.panels(width=5.2, height=3.0)
    (ax,) = figure.axes
    positions = range(len(v1.EPSILONS))
    for index, (name, values) in enumerate(errors.items()):
        ax.plot(positions, values, label=name, **style(index, ax))
    ax.set_xticks(positions, [format_budget(epsilon) for epsilon in v1.EPSILONS])
    ax.set(title=title, xlabel="ε", ylabel="mean error", yscale="log")
    ax.legend(fontsize="small")
    fix_margins(figure)
    return figure


def scores_in_words(name: str, unit: str, scores: Mapping[str, Sequence[float]]) -> str:
    """Returns the alternative text of `draw_scores`."""
    ends = [f"{at} from {_number(values[0])} to {_number(values[-1])}" for at, values in scores.items()]
    return (
        f"Score of {name} (1 is {unit}, less is better) on a logarithmic axis against epsilon. "
        f"From epsilon 0.1 to no privacy: {'; '.join(ends)}."
    )


def noise_of(entry: MechanismEntry, epsilon: float) -> float | None:
    """Returns the standard deviation of a mechanism's noise in one number, from the mechanism's own functions.

    It is for the entry's values and sizes, except that a counter counts `COUNTED` entries and the noise is in the last
    count. For a local randomizer it is the root mean square of a user's estimate, for the worst value. None if there is
    no such number, or if the mechanism does not accept this epsilon.
    """
    values = {**entry.values, "epsilon": epsilon}
    if entry.factory is None:
        return None
    kind = entry.factory.__name__
    try:
        if entry.family == "local randomizers":
            return math.sqrt(entry.factory(**{**entry.variant, **entry.sizes}).second_moment(**values))
        if kind.endswith("_counter"):
            counter: Counter = entry.factory(**{**entry.variant, **entry.sizes, "horizon": COUNTED})
            return math.sqrt(float(counter.variance(counter.params(**values), COUNTED)))
        params = entry.make().params(**values)
    except ValueError:
        return None
    if kind == "gaussian":
        return float(params.noise_stddev)
    if kind == "laplace":
        return math.sqrt(2) * float(params.bound) / float(params.epsilon)
    if kind == "k_norm":  # length G ~ Gamma(d, bound / epsilon): E G^2 / d = (d + 1) (bound / epsilon)^2
        return math.sqrt(entry.sizes["num_counts"] + 1) * float(params.bound) / float(params.epsilon)
    return None


def noises(entries: Mapping[str, MechanismEntry]) -> dict[str, list[float]]:
    """Returns, for each entry with such a number, `noise_of` at each of `BUDGETS`; NaN if the mechanism refuses it."""
    noise = {name: [noise_of(entry, epsilon) for epsilon in BUDGETS] for name, entry in entries.items()}
    return {
        name: [math.nan if value is None else value for value in values]
        for name, values in noise.items()
        if any(value is not None for value in values)
    }


def draw_noises(
    title: str, label: str, noise: Mapping[str, Sequence[float]], *, is_probability: bool = False
) -> plotting.Figure:
    """Draws standard deviations, or probabilities, against `BUDGETS`: a line for each entry."""
    figure = plotting.panels(width=5.2, height=3.0)
    (ax,) = figure.axes
    for index, (name, values) in enumerate(noise.items()):
        ax.plot(BUDGETS, values, label=name, **style(index, ax))
    ax.set(title=title, xlabel="ε", xscale="log", yscale="linear" if is_probability else "log")
    ax.set_ylabel(label, fontsize="small" if len(label) > LONG_LABEL else None)
    ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.legend(fontsize="small")
    fix_margins(figure)
    return figure


def noises_in_words(label: str, noise: Mapping[str, Sequence[float]], *, is_probability: bool = False) -> str:
    """Returns the alternative text of `draw_noises`."""
    parts = []
    for name, values in noise.items():
        finite = [(epsilon, value) for epsilon, value in zip(BUDGETS, values, strict=True) if math.isfinite(value)]
        (first, start), (last, end) = finite[0], finite[-1]
        parts.append(f"{name} from {_number(start)} at epsilon {first:.3g} to {_number(end)} at epsilon {last:.3g}")
    axes = "on a logarithmic axis" if is_probability else "both axes logarithmic"
    return f"{label[:1].upper()}{label[1:]}. Against epsilon, {axes}: {'; '.join(parts)}."


def _number(value: float) -> str:
    return f"{value:.3g}"
