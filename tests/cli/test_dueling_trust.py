"""The study of trust in dueling bandits: which learners play, what its text and figure say, and errors."""

import math
import re

import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg

from jaxdp.registry import LEARNERS
from jaxdp.stats import paired
from jaxdp.studies import dueling_trust as study
from jaxdp.studies.command import mean_and_half_width

NAMES = ["ebs_phased", "ebs_local", "double_thompson_blocks"]
NAMES_BY_MODEL = ["ebs_phased", "double_thompson_blocks", "ebs_local"]


def made_up(num_seeds=5):
    """Makes regret of about 100, 200 and 20, except for a larger epsilon, where the first learner is the best one."""
    coords = {
        "num_arms": [4, 8],
        "learner": NAMES,
        "epsilon": [1.0, 0.1],
        "round": [100, 1000],
        "seed": range(num_seeds),
    }
    sizes = [len(values) for values in coords.values()]
    noise = xr.DataArray(np.random.default_rng(0).uniform(0.95, 1.05, sizes), coords, list(coords))
    level = xr.DataArray([[10.0, 200.0, 20.0], [100.0, 200.0, 20.0]], dims=("epsilon", "learner"))
    results = xr.Dataset({"pseudo_regret": (noise * level).transpose(*coords)})
    return results.assign_coords(trust_model=("learner", ["central", "local", "central"]), span=1.0, delta=1e-6)


def test_who_plays():
    """Checks that the paper's algorithm plays in every trust model, and the others with and without a curator."""
    found = study.learners()
    assert set(found) <= set(LEARNERS)
    assert {"ebs_phased", "ebs_elimination", "ebs_local", "rucb", "rucb_blocks", "double_thompson"} < set(found)
    models = {name: LEARNERS[name].make().guarantee(**LEARNERS[name].values).trust_model for name in found}
    assert set(models.values()) <= set(study.MODELS)
    assert (models["rucb"], models["rucb_blocks"]) == ("local", "central")


def test_results():
    small = study.dueling_trust(
        epsilon=[0.5, math.inf],
        learner=["rucb_blocks", "ebs_phased"],
        num_arms=[2],
        horizon=100,
        num_seeds=3,
        key=jax.random.key(6),
    )
    regret = small.pseudo_regret
    assert regret.dims == ("num_arms", "learner", "epsilon", "round", "seed")
    assert regret["round"].values.tolist() == [10, 100]
    assert np.all(np.diff(regret, axis=3) >= 0)
    np.testing.assert_array_equal(small.trust_model, ["central", "central"])
    balanced = regret.sel(learner="ebs_phased", num_arms=2).isel(round=-1)  # in its first phase: all pairs alike
    np.testing.assert_allclose(balanced, study.uniform_regret(small))
    assert study.report(small)


def test_tables_hold_the_numbers_of_the_dataset():
    results = made_up()
    mean, half = mean_and_half_width(results.pseudo_regret.isel(round=-1))
    lines = study.table(results, 8).splitlines()
    assert lines[0] == "regret after 1,000 rounds, 8 arms"
    labels = ["central: EBS, phases", "central: Double Thompson, blocks", "local: EBS"]
    for line, label, name in zip(lines[2:5], labels, NAMES_BY_MODEL, strict=True):
        assert line.startswith(label + " ")
        at = [{"num_arms": 8, "learner": name, "epsilon": epsilon} for epsilon in (1.0, 0.1)]
        cells = [f"{float(mean.sel(each)):,.0f} +- {float(half.sel(each)):,.0f}" for each in at]
        assert re.split(r"\s{2,}", line)[1:] == cells
    assert lines[5].split()[-2:] == ["1,000", "1,000"]


def test_winners():
    results = made_up()
    lines = study.winners(results).splitlines()
    rows = [re.split(r"\s{2,}", line) for line in lines[2:]]
    assert [row[:3] for row in rows] == [
        [str(size), label, first]
        for size in (4, 8)
        for label, first in (("ε = 1", "EBS, phases"), ("ε = 0.1", "Double Thompson, blocks"))
    ]
    here = results.pseudo_regret.isel(round=-1).sel(num_arms=8, epsilon=0.1, drop=True)
    found = paired(here, "learner", against="double_thompson_blocks").sel(learner="ebs_phased")
    difference, low, high = (float(found[each]) for each in ("difference", "low", "high"))
    told = f"EBS, phases {difference:+,.0f} ({low:+,.0f} to {high:+,.0f})"
    assert rows[3][3:] == [told, told, "Double Thompson, blocks", "EBS, local"]
    assert rows[0][4] == "-"  # the best of the paper's forms is the first of all
    assert study.ADVICE in study.report(results)
    alone = study.winners(results.sel(learner=["ebs_local"])).splitlines()
    assert re.split(r"\s{2,}", alone[2])[3:] == ["-", "-", "EBS, local"]


def test_the_figure():
    figure = study.figure(made_up())
    FigureCanvasAgg(figure).draw()
    assert [panel.get_title() for panel in figure.axes] == ["4 arms", "8 arms"]
    assert len({panel.get_ylim() for panel in figure.axes}) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learner": ["ucb"]}, "learner must be one of ebs_phased, .*, got 'ucb'"),
        ({"num_arms": [1]}, "num_arms must be an integer >= 2, got 1"),
        ({"horizon": 99}, "horizon must be an integer >= 100, got 99"),
        ({"num_arms": [20]}, "horizon must be an integer >= 200, got 100"),
        ({"span": 0.0}, "span must be > 0, got 0"),
        ({"span": math.nan}, "span must be > 0, got nan"),
        ({"epsilon": [0.0]}, "epsilon must be > 0, got 0"),
    ],
)
def test_errors(values, message):
    with pytest.raises(ValueError, match=message):
        study.dueling_trust(
            **{"learner": ["rucb"], "num_arms": [2], "horizon": 100, "num_seeds": 2, "key": jax.random.key(6), **values}
        )
