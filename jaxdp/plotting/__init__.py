"""Figures of a sweep's results. Captions explain the marks and bands.

`curves` draws any variable of the results, `cost_of_privacy` draws a metric against epsilon, and `facets` draws one
panel for every value of a dimension. Functions with an argument `ax` draw on the given axes. If `ax` is None, they make
a new figure, which a notebook shows without pyplot.

>>> import xarray as xr
>>> values = xr.DataArray([[3.0, 5.0], [1.0, 2.0]], {"epsilon": [0.5, float("inf")]}, ("epsilon", "seed"), "l2_error")
>>> cost_of_privacy(values, title="What privacy costs")
<axes: l2 error against ε>
"""

from jaxdp.plotting._dot_plot import dot_plot, slopes
from jaxdp.plotting._paper import paper
from jaxdp.plotting.bounds import bound
from jaxdp.plotting.differences import paired
from jaxdp.plotting.figure import Axes, Figure, panels
from jaxdp.plotting.grids import facets
from jaxdp.plotting.labels import epsilon_label, prefix_labels
from jaxdp.plotting.lines import cost_of_privacy, curves
from jaxdp.plotting.maps import heatmap
from jaxdp.plotting.positions import share_limits
from jaxdp.plotting.records import caption
from jaxdp.plotting.summaries import seed_count

__all__ = [
    "Axes",
    "Figure",
    "bound",
    "caption",
    "cost_of_privacy",
    "curves",
    "dot_plot",
    "epsilon_label",
    "facets",
    "heatmap",
    "paired",
    "panels",
    "paper",
    "prefix_labels",
    "seed_count",
    "share_limits",
    "slopes",
]
