"""Made-up results for figures, and what must hold of every figure."""

import itertools
import warnings
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

ESTIMATORS = ("mle", "objective_perturbation", "debiased_rr", "literal_objective_perturbation")
EPSILONS = (0.1, 0.5, 1.0, 2.0, float("inf"))


def errors(num_epsilons=1, num_sizes=1, num_samples=(1000, 3000, 10000), num_seeds=5, spread=0.1):
    """Makes errors of about (1, 2, 3, ...) / sqrt(num_samples), with the same relative spread over seeds everywhere."""
    coords = {
        "estimator": list(ESTIMATORS),
        "epsilon": list(EPSILONS[-num_epsilons:]),
        "num_features": [5 * (index + 1) for index in range(num_sizes)],
        "num_samples": list(num_samples),
        "seed": range(num_seeds),
    }
    sizes = [len(values) for values in coords.values()]
    noise = xr.DataArray(np.random.default_rng(0).uniform(1 - spread, 1 + spread, sizes), coords, list(coords))
    return (noise * xr.DataArray(np.arange(1.0, 5), dims="estimator") / np.sqrt(noise.num_samples)).rename("l2_error")


def regret(epsilons=(0.5, 1.0, np.inf), num_rounds=8, num_seeds=6):
    """Makes regret of about T^(1/2) (1 + 1 / epsilon)."""
    rounds = np.geomspace(10, 10**5, num_rounds).round().astype(int)
    coords = {"epsilon": list(epsilons), "round": rounds, "seed": range(num_seeds)}
    noise = np.random.default_rng(1).uniform(0.8, 1.2, (len(epsilons), 1, num_seeds))
    height = (1 + 1 / np.array(epsilons))[:, None, None] * np.sqrt(rounds)[:, None]
    return xr.DataArray(height * noise, coords, list(coords), "pseudo_regret")


def single(values):
    """Selects the errors of one epsilon and one number of features."""
    return values.isel(epsilon=0, num_features=0)


def below(figure: Any) -> str:
    """Returns the caption of a figure, in one line."""
    return figure._supxlabel.get_text().replace("\n", " ").replace("\u00a0", " ")


def entries(figure: Any) -> list[str]:
    """Returns the texts of a figure's legend."""
    return [entry.get_text().replace("\n", " ") for entry in figure.legends[0].get_texts()]


def heights(line: Any) -> np.ndarray:
    """Returns the marks of a line."""
    return np.asarray(line.get_ydata(), float)


def labelled(ax: Any, label: str) -> Any:
    """Returns the line of that legend text."""
    (line,) = (line for line in ax.get_lines() if line.get_label() == label)
    return line


def check_inside(figure: Any) -> None:
    """Draws the figure; every text and legend must lie inside it, and every panel must have room."""
    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout that does not fit only warns
        canvas.draw()
    renderer = canvas.get_renderer()
    artists = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    shown = [panel for panel in figure.axes if panel.get_visible()]
    hidden = [text for panel in figure.axes if not panel.get_visible() for text in panel.findobj(Text)]
    ticks = [label for panel in shown for label in (*panel.get_xticklabels(), *panel.get_yticklabels())]
    for artist in [*(artist for artist in artists if artist not in ticks and artist not in hidden), *figure.legends]:
        box = artist.get_window_extent(renderer)
        assert box.x0 >= -0.5 and box.y0 >= -0.5, artist  # noqa: PT018  half a pixel is rounding
        assert box.x1 <= figure.bbox.x1 + 0.5 and box.y1 <= figure.bbox.y1 + 0.5, artist  # noqa: PT018
    whole = figure.get_tightbbox(renderer)  # with tick labels
    assert whole.x0 >= -0.01
    assert whole.y0 >= -0.01
    assert whole.x1 <= figure.get_figwidth() + 0.01
    assert whole.y1 <= figure.get_figheight() + 0.01
    for panel in shown:
        if panel.get_label() == "<colorbar>":
            continue
        size = panel.get_window_extent(renderer)
        assert size.width >= 1.2 * figure.dpi
        assert size.height >= 0.8 * figure.dpi
        for legend in figure.legends:
            assert not legend.get_window_extent(renderer).overlaps(panel.get_tightbbox(renderer))
        boxes = [label.get_window_extent(renderer) for label in panel.get_xticklabels() if label.get_rotation() == 0]
        for first, second in itertools.pairwise(boxes):
            assert first.x1 <= second.x0 + 1 or not first.width or not second.width
