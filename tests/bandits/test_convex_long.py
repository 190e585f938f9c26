"""Long runs in float32: the same as in float64, fed the same uniform and normal variates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.bandits import convex
from jaxdp.random import fast
from tests.few import few

pytestmark = [pytest.mark.once, pytest.mark.optimised]

PROBLEMS = {
    "fkm": (convex.fkm, {"slope": 0.5, "lipschitz": 0.5, "loss_bound": 0.5}),
    "two_point_strongly_convex": (
        lambda **sizes: convex.two_point(**sizes, losses="strongly_convex"),
        {"curvature": 0.5, "target": 0.5, "strong_convexity": 0.5, "lipschitz": 0.75},
    ),
    "barrier_smooth": (convex.barrier_smooth, {"slope": 0.5, "smoothness": 0.01, "loss_bound": 0.5}),
    "barrier_strongly_convex": (
        convex.barrier_strongly_convex,
        {"curvature": 0.5, "target": 0.9, "strong_convexity": 0.5, "smoothness": 0.5},
    ),
}


@pytest.fixture
def same_variates(monkeypatch):
    """Uniform and normal variates of either precision are those of float32."""
    for name in ("uniform", "normal"):
        own = getattr(jax.random, name)

        def narrow(key, shape=(), dtype=float, own=own):
            wanted = jax.dtypes.canonicalize_dtype(dtype)
            return own(key, shape, jnp.float32).astype(wanted)

        monkeypatch.setattr(jax.random, name, narrow)
    jax.clear_caches()
    yield
    jax.clear_caches()


def regret(name, horizon, lanes):
    factory, values = PROBLEMS[name]
    family = convex.linear_losses if "slope" in values else convex.quadratic_losses
    feedback = "difference" if name.startswith("two_point") else "point"
    learner = factory(dim=2, horizon=horizon)
    run = jaxdp.simulator(learner, family(dim=2, feedback=feedback), horizon)
    keys = fast(jax.random.split(jax.random.key(4), lanes))
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(keys, run.params(epsilon=4.0, **values))
    return np.asarray(found["pseudo_regret"])[:, -1].astype(float)


def check(name, horizon, lanes):
    narrow = regret(name, horizon, lanes)
    with jax.enable_x64(True):
        wide = regret(name, horizon, lanes)
    apart, error = np.mean(narrow - wide), np.std(narrow - wide) / np.sqrt(lanes)
    assert abs(apart) + 2 * error < 0.01 * wide.mean(), (apart, error, wide.mean())
    return narrow, wide


@pytest.mark.parametrize("name", few(PROBLEMS, ["fkm", "barrier_strongly_convex"]))
def test_both_precisions_agree(name, same_variates):
    narrow, wide = check(name, 10_000, 20)
    assert (narrow != wide).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_both_precisions_agree_at_1e7(name, same_variates):
    check(name, 10**7, 100)
