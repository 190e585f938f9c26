"""Sweeps in a real notebook: a bar, a cell that is run again, and processes that get a cell's function."""

from tests.notebook import run_cells, shown

SETUP = """
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import jax, jaxdp
warnings.simplefilter("always")
compiled = []
def listen(event, duration_secs, **details):
    if event.endswith("backend_compile_duration"):
        compiled.append(event)
jax.monitoring.register_event_duration_secs_listener(listen)
explore_rounds = 4  # a global of the notebook
"""
SWEPT = """
def made(means):
    def build(num_arms):  # of a closure
        learner = jaxdp.bandits.explore_then_commit(num_arms=num_arms, explore_rounds=explore_rounds)
        return jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit(means[:num_arms]), horizon=8)
    return build
build = made([0.1, 0.9])
grid = dict(axes={"epsilon": [1.0, 2.0]}, static_axes={"num_arms": [2]}, num_seeds=5, key=jax.random.key(0))
compiled.clear()
here = jaxdp.sweep(build, **grid, progress=True)
print("compiled", len(compiled))
"""
ELSEWHERE = """
with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
    found = jaxdp.sweep(build, **grid, executor=pool)
found.identical(here)
"""


def test_a_notebook():
    """Checks also that no warning says that widgets are missing, where they are."""
    _, first, again, elsewhere = map(shown, run_cells(SETUP, SWEPT, SWEPT, ELSEWHERE))
    for text in (first, again):
        assert "10/10" in text
        assert "Warning" not in text
    assert "compiled 0" not in first
    assert "compiled 0" in again
    assert elsewhere.strip() == "True"
