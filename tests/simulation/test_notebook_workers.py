"""A sweep of a function that a notebook's cell made, on processes that the notebook started."""

import pytest

from tests.notebook import run_cells, shown

pytestmark = pytest.mark.once

SETUP = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import jax, jaxdp
explore_rounds = 4  # a global of the notebook
def made(means):
    def build(num_arms):  # of a closure
        learner = jaxdp.bandits.explore_then_commit(num_arms=num_arms, explore_rounds=explore_rounds)
        return jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit(means[:num_arms]), horizon=8)
    return build
build = made([0.1, 0.9])
grid = dict(axes={"epsilon": [1.0, 2.0]}, num_seeds=5, key=jax.random.key(0))
"""
SWEPT = """
with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
    found = jaxdp.sweep(build, **grid, static_axes={"num_arms": [2]}, executor=pool)
    run = jaxdp.sweep(build(2), **grid, executor=pool)
here = jaxdp.sweep(build, **grid, static_axes={"num_arms": [2]})
print(found.identical(here), run.drop_attrs().identical(here.isel(num_arms=0, drop=True).drop_attrs()))
"""


def test_a_notebooks_function_on_its_own_processes():
    assert shown(run_cells(SETUP, SWEPT)[1]).strip() == "True True"
