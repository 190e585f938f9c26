"""Figures for papers: true width, nothing cut, fonts embedded as text, in the block and after it."""

import io
import re

import pytest
from matplotlib import image
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.plotting import layout, paper
from jaxdp.plotting._paper import POINTS, USUAL_POINTS
from tests.plotting.made_up import ESTIMATORS, check_inside, errors, regret, single

WIDTHS = {3.25: 3.25, 5.5: 5.5, "icml2024": 3.25, "neurips2024": 5.5, "aistats2025": 3.25, "jmlr2001": 6.0}
WORDS = {name: name.replace("_", " ") for name in ESTIMATORS}


def save(figure, **options):
    buffer = io.BytesIO()
    figure.savefig(buffer, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("style", WIDTHS)
@pytest.mark.parametrize("caption", [True, False])
def test_figures_have_the_true_width_and_nothing_is_cut(style, caption):
    with paper(style, caption=caption):
        figures = [
            plotting.cost_of_privacy(regret(), title="a title of many words " * 3).figure,
            plotting.curves(single(errors()), hue="estimator", ylabel="a long name " * 9).figure,
            plotting.facets(
                errors(2, 1).isel(num_features=0, num_samples=0), x="epsilon", col="estimator", labels=WORDS
            ),
        ]
        for figure in figures:
            assert figure.get_figwidth() == WIDTHS[style]
            assert bool(figure.get_supxlabel()) == caption
            check_inside(figure)


def test_the_full_width_of_two_columns():
    with paper("icml2024", columns=2):
        figure = plotting.facets(errors(2, 1).isel(num_features=0, num_samples=0), x="epsilon", col="estimator")
    assert figure.get_figwidth() == 6.75


def test_fonts_are_embedded_as_text_also_after_the_block():
    with paper("icml2024"):
        figure = plotting.cost_of_privacy(regret()).figure
    later = save(figure, format="pdf")
    assert b"/Type3" not in later
    assert b"STIX" in later or b"Times" in later
    usual = save(plotting.cost_of_privacy(regret()).figure, format="pdf")
    assert b"/Type3" in usual  # Matplotlib's default: the test sees the difference


def test_both_axes_have_the_venue_s_ticks():
    with paper("icml2024"):
        ax = plotting.panels().axes[0]
    assert {text.get_fontsize() for text in (*ax.get_xticklabels(), *ax.get_yticklabels())} == {6.0}


def test_figures_outside_are_as_before():
    before = save(plotting.curves(single(errors()), hue="estimator").figure, format="png")
    with paper(3.25):
        plotting.curves(single(errors()), hue="estimator")
    assert save(plotting.curves(single(errors()), hue="estimator").figure, format="png") == before


def test_without_a_caption_its_text_is_still_available():
    with paper(3.25, caption=False):
        ax = plotting.cost_of_privacy(regret())
    assert ax.figure.get_supxlabel() == ""
    assert plotting.caption(ax).startswith("Marks: mean of")


def test_drawing_more_after_the_block_keeps_the_style():
    with paper(3.25):
        ax = plotting.curves(single(errors()).isel(estimator=[0]), hue="estimator")
    sizes = {text.get_fontsize() for text in ax.figure.legends[0].get_texts()}
    plotting.bound(ax, [1.0, 10.0], [1.0, 2.0], label="a bound")
    assert {text.get_fontsize() for text in ax.figure.legends[0].get_texts()} == sizes
    assert len(ax.figure.legends[0].get_texts()) == 2


def test_notebooks_get_twice_the_pixels():
    figure = plotting.cost_of_privacy(regret()).figure
    assert isinstance(figure, plotting.Figure)
    data, metadata = figure._repr_png_()
    height, width = image.imread(io.BytesIO(data)).shape[:2]
    assert (width, height) == pytest.approx((2 * metadata["width"], 2 * metadata["height"]), abs=2)


@pytest.mark.parametrize(
    ("style", "columns", "message"),
    [
        ("icml2042", 1, "style must be a width in inches or one of .*, got 'icml2042'. Did you mean icml2024"),
        (0.0, 1, "style must be > 0"),
        (40.0, 1, "style must be a width in [1.5, 20] inches, got 40.0"),
        ("neurips2024", 2, "columns must be 1 for neurips2024, which has one column, got 2"),
        (3.25, 2, "columns must be 1 with a width in inches, got 2"),
        (3.25, 3, "columns must be 1 or 2, got 3"),
    ],
)
def test_wrong_arguments(style, columns, message):
    pattern = message if "Did you mean" in message else re.escape(message)
    with pytest.raises(ValueError, match=pattern), paper(style, columns=columns):
        pass


def test_two_marks_of_one_legend_differ():
    with paper(3.25):
        ax = plotting.curves(single(errors()), hue="estimator")
    lines = {(line.get_color(), line.get_marker()) for line in ax.figure.legends[0].get_lines()}
    assert len(lines) == len(ESTIMATORS)


def test_texts_take_as_much_of_the_height_as_their_fonts():
    with paper(6.0):
        figure = Figure(figsize=(6.0, 1.0), layout="constrained")
        layout.surround(figure, 2.0, "A title", [], [], "A caption")
    assert figure.get_figheight() - 2 == pytest.approx(POINTS / USUAL_POINTS * (0.3 + 2.5 * layout.LINE_HEIGHT))
