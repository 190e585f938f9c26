"""Figures show themselves: in notebooks, on dark backgrounds, and as text."""

import io
from typing import Any

import matplotlib.style
import numpy as np
import pytest
from matplotlib import image
from matplotlib.colors import same_color, to_rgba
from matplotlib.figure import Figure

from jaxdp import plotting
from tests.notebook import run_cells, shown
from tests.plotting.made_up import regret

VALUES = """
import numpy as np, xarray as xr
from jaxdp import plotting
values = xr.DataArray(np.arange(1.0, 13).reshape(2, 2, 3), {"epsilon": [1.0, np.inf], "round": [1, 10]},
                      ("epsilon", "round", "seed"), "regret")
"""
CURVES = "plotting.curves(values, hue='epsilon')"
FACETS = "plotting.facets(values, col='epsilon', title='Two budgets')"


def pictures(outputs):
    return [found["data"]["image/png"] for found in outputs if "image/png" in found.get("data", {})]


def picture(figure):
    return image.imread(io.BytesIO(figure._repr_png_()[0]))


def test_cells_show_one_picture_each():
    """Runs without pyplot, then with it: its backend shows figures, too, and closes its own after each cell."""
    own = "figure, ax = plt.subplots()\nplotting.curves(values, hue='epsilon', ax=ax)"
    cells = run_cells(
        VALUES,
        CURVES,
        FACETS,
        "ax = " + CURVES,
        "plotting.bound(ax, [1, 10], [5.0, 50.0])",
        "import sys; print('matplotlib.pyplot' in sys.modules)",
        "import matplotlib.pyplot as plt",
        CURVES,
        FACETS,
        own,
        f"plt.style.use('dark_background')\n{CURVES}",
    )
    assert [len(pictures(outputs)) for outputs in cells] == [0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1]
    assert shown(cells[5]) == "False\n"
    texts = [shown(outputs) for outputs in cells]
    assert texts[1] == texts[7] == "<axes: regret against rounds T>"
    assert texts[2] == texts[8] == "<figure of 2 panels: Two budgets>"
    assert not any("0x" in text for text in texts[:9])
    assert pictures(cells[1])[0] != pictures(cells[10])[0]


def test_text_forms_name_what_is_drawn():
    ax = plotting.curves(regret(), hue="epsilon")
    for found in (ax, ax.figure, plotting.panels(2, 2), plotting.panels().axes[0]):
        assert "0x" not in f"{found!r}{found}"
    assert repr(ax.figure) == "<figure of 1 panel: cumulative regret against rounds T>"
    assert len(repr(plotting.curves(regret(), hue="epsilon", ylabel="word " * 99))) < 200


@pytest.mark.parametrize(
    ("style", "background"), [({}, 1.0), ({"figure.facecolor": "none"}, 1.0), ("dark_background", 0.0)]
)
def test_the_background_is_opaque_and_the_first_curve_is_seen(style, background):
    with matplotlib.style.context(style):
        ax = plotting.curves(regret(), hue="epsilon")
        pixels = picture(ax.figure)
    np.testing.assert_allclose(pixels[2, 2], [background] * 3 + [1.0])
    assert np.all(pixels[..., 3] == 1)
    assert same_color(ax.get_lines()[0].get_color(), "black" if background else "white")


@pytest.mark.parametrize("where", ["axes", "figure"])
def test_the_first_curve_is_seen_on_a_dark_ax_of_the_users(where):
    own: Any = Figure().add_subplot()
    if where == "axes":
        own.set_facecolor("#111111")  # with black text beside it
    else:
        own.figure.set_facecolor("black")
        own.set_facecolor("none")
    plotting.curves(regret(), hue="epsilon", ax=own)
    for colour in (own.get_lines()[0].get_color(), own.get_legend().get_texts()[0].get_color()):
        assert np.mean(to_rgba(colour)[:3]) > 0.8


def test_a_legend_follows_what_is_added_later():
    ax = plotting.curves(regret(), hue="epsilon")
    before = picture(ax.figure)
    plotting.bound(ax, [10, 10**5], [50.0, 5e4], label="linear")
    (legend,) = ax.figure.legends
    assert [text.get_text() for text in legend.get_texts()][-1] == "linear"
    after = picture(ax.figure)
    assert before.shape != after.shape or not np.array_equal(before, after)


def test_panels_are_explained_when_asked():
    figure = plotting.panels(1, 2, sharey=True)
    for ax, epsilon in zip(figure.axes, (0.5, 1.0), strict=True):
        plotting.curves(regret().sel(epsilon=epsilon), ax=ax, label="mine")
    assert not figure.legends
    figure.explain(title="Both", note="One more thing.")
    height = figure.get_figheight()
    figure.explain(title="Both", note="One more thing.")
    assert figure.get_figheight() == height
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["mine"]
    assert figure._supxlabel.get_text().endswith("One more thing.")  # pyright: ignore[reportAttributeAccessIssue]
