"""Links against mpmath; samplers against binomial standard errors."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from jaxdp.preferences import Link, link, logistic, probit, sample_comparisons

FLOAT = jax.dtypes.canonicalize_dtype(float)  # float64 in the x64 run
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}[FLOAT.name]
LINKS = pytest.mark.parametrize("known", [logistic, probit], ids=lambda known: known.name)
FUNCTIONS = ("cdf", "log_cdf", "slope", "curvature")

# Dense at the switch of formulas (4), at the gap of JAX 0.10's erfcx (13.0 to 13.3), and where float32 underflows.
_HALF = np.concatenate(
    [
        [0.0, 1e-30, 1e-6],
        np.linspace(0.01, 3.9, 30),
        np.linspace(3.95, 4.05, 11),
        np.linspace(4.1, 14.5, 60),
        np.linspace(15, 45, 25),
        np.linspace(80, 110, 16),
        np.logspace(2.1, 4, 12),
    ]
).astype(FLOAT)
GRID = np.unique(np.concatenate([-_HALF, _HALF]))


def exact(name: str, margin: float) -> dict[str, mpmath.mpf]:
    """Computes the five functions from their definitions."""
    z = mpmath.mpf(margin)
    if name == "logistic":
        decay = mpmath.exp(-abs(z))
        tail, density = decay / (1 + decay), decay / (1 + decay) ** 2
    else:
        tail, density = mpmath.erfc(abs(z) / mpmath.sqrt(2)) / 2, mpmath.npdf(z)
    cdf = tail if z < 0 else 1 - tail
    slope = density / cdf
    return {
        "cdf": cdf,
        "log_cdf": mpmath.log(cdf) if z < 0 else mpmath.log1p(-tail),
        "slope": slope,
        "curvature": density if name == "logistic" else slope * (slope + z),  # (F'/F)² - F''/F
    }


@LINKS
def test_values_match_mpmath(known: Link):
    with mpmath.workdps(60):  # the probit's curvature at -1e4 loses 16 digits by its definition
        expected = [exact(known.name, float(z)) for z in GRID]
    for name in FUNCTIONS:
        got = np.asarray(jax.jit(getattr(known, name))(GRID))
        want = np.array([float(values[name]) for values in expected])
        assert got.dtype == FLOAT
        assert np.isfinite(got).all()
        normal = np.abs(want) >= np.finfo(FLOAT).tiny
        np.testing.assert_allclose(got[normal], want[normal], rtol=TOLERANCE, atol=0, err_msg=name)
        assert (np.abs(got[~normal]) <= 1.001 * np.finfo(FLOAT).tiny).all()


@LINKS
def test_shape_of_functions(known: Link):
    half = np.linspace(0, 60, 1201).astype(FLOAT)
    z = np.concatenate([-half[:0:-1], half])
    cdf, log_cdf, slope, curvature = (np.asarray(jax.jit(getattr(known, name))(z)) for name in FUNCTIONS)
    np.testing.assert_allclose(cdf + cdf[::-1], 1, rtol=2 * np.finfo(FLOAT).eps)
    slack = 1 + 8 * np.finfo(FLOAT).eps
    assert (cdf[:-1] <= cdf[1:] * slack).all()
    assert (log_cdf[:-1] * slack <= log_cdf[1:]).all()
    assert (slope[1:] <= slope[:-1] * slack).all()
    for values, top in ((cdf, 1), (curvature, slack)):
        assert ((values >= 0) & (values <= top)).all()
    assert (log_cdf <= 0).all()


@LINKS
def test_derivatives(known: Link):
    z = GRID[np.abs(GRID) < 1e3]
    with mpmath.workdps(60):
        values = [exact(known.name, float(point)) for point in z]
        want = {
            "cdf": [float(v["slope"] * v["cdf"]) for v in values],
            "log_cdf": [float(v["slope"]) for v in values],
            "slope": [float(-v["curvature"]) for v in values],
        }
    for name, expected in want.items():
        got = jax.jit(jax.vmap(jax.grad(getattr(known, name))))(z)
        np.testing.assert_allclose(got, expected, rtol=TOLERANCE, atol=2 * np.finfo(FLOAT).tiny, err_msg=name)


def test_link_by_name():
    assert link("logistic") is logistic
    assert link("probit") is probit
    with pytest.raises(ValueError, match="link must be one of logistic, probit, got 'cauchit'"):
        link("cauchit")


def worst_error(labels: jax.Array, probabilities: np.ndarray) -> float:
    """Returns the largest distance, in standard errors, of the labels' means over axis 0 from their probabilities."""
    means = np.asarray(labels).mean(axis=0)
    return float(np.max(np.abs(means - probabilities) / np.sqrt(probabilities * (1 - probabilities) / len(labels))))


@LINKS
def test_sampled_frequencies(known: Link):
    margins = jnp.array([-2.0, -1.0, -0.3, 0.0, 0.5, 1.5])
    probabilities = np.array([float(exact(known.name, float(z))["cdf"]) for z in margins])
    many = jnp.broadcast_to(margins, (100_000, 6))

    def error(cdf: Callable[[jax.Array], jax.Array]) -> float:
        labels = sample_comparisons(jax.random.key(1), many, known._replace(cdf=cdf))
        assert labels.shape == many.shape
        assert labels.dtype == np.int32
        assert set(np.unique(labels)) == {0, 1}
        return worst_error(labels, probabilities)

    assert error(known.cdf) < 5
    assert error(lambda z: known.cdf(1.1 * z)) > 5  # the planted wrong versions
    assert error(lambda z: known.cdf(-z)) > 5


def test_sampler_transforms():
    keys = jax.random.split(jax.random.key(2), 3)
    margins = jnp.linspace(-1, 1, 5)
    batch = jax.jit(jax.vmap(sample_comparisons, (0, None)))(keys, margins)
    for key, labels in zip(keys, batch, strict=True):
        np.testing.assert_array_equal(labels, sample_comparisons(key, margins))
