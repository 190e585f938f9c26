"""The kernel over lanes equals the plain loop, for every recipe and however vmap is nested."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.estimation import one_pass as one_pass_module
from jaxdp.estimation._sgd_krr import CHOICES
from jaxdp.estimation.objectives import label_loss
from jaxdp.estimation.one_pass import AVERAGES, BLOCK, Pass, Recipe, lanes_pass, one_pass, plain_pass
from jaxdp.preferences import logistic, probit

OUTER, INNER, DIM = 2, 3, 4
DTYPE = jax.dtypes.canonicalize_dtype(float)


def data(num_samples, *, linear=False, radius=1.0):
    keys = iter(jax.random.split(jax.random.key(num_samples), 7))
    lead = (OUTER, INNER)
    return Pass(
        features=jax.random.normal(next(keys), (*lead, num_samples, DIM), DTYPE),
        targets=jax.random.normal(next(keys), (*lead, num_samples), DTYPE),
        gain=jax.random.uniform(next(keys), lead, DTYPE),
        rate=jax.random.uniform(next(keys), lead, DTYPE),
        radius=jnp.full(lead, radius, DTYPE),
        linear=jax.random.normal(next(keys), (*lead, DIM), DTYPE) / 10 if linear else None,
        ridge=jax.random.uniform(next(keys), lead, DTYPE) / 10 if linear else None,
        weights=jax.random.uniform(next(keys), (*lead, num_samples), DTYPE) if linear else None,
    )


def loop(batch, recipe):
    def pick(i, j):
        return jax.tree.map(lambda leaf: leaf[i, j], batch)

    plain = jax.jit(lambda one: plain_pass(one, recipe))
    return np.stack([[plain(pick(i, j)) for j in range(INNER)] for i in range(OUTER)])


def agrees(batch, recipe, reference):
    nested = jax.jit(jax.vmap(jax.vmap(lambda one: one_pass(one, recipe))))(batch)
    return np.allclose(nested, reference, rtol=1e-4, atol=1e-5)


def last_twice(data, recipe):
    """Builds a wrong kernel, which visits the last sample in the first one's place."""
    return lanes_pass(data._replace(features=data.features.at[:, 0].set(data.features[:, -1])), recipe)


def unweighted(data, recipe):
    """Builds a wrong kernel, which omits the samples' weights."""
    return lanes_pass(data._replace(weights=None), recipe)


def margins_turned(data, recipe):
    """Builds a wrong kernel, which compares the margins of a sample with each other's targets."""
    return lanes_pass(data, recipe._replace(slope=lambda margin, target: recipe.slope(margin, target[::-1])))


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("num_samples", [1, BLOCK - 1, BLOCK, 2 * BLOCK + 3])
def test_kernel_equals_the_loop(average, num_samples, monkeypatch):
    recipe = Recipe(label_loss(logistic).slope, average, inverse_time=num_samples % 2 == 0, zero_sum=average == "all")
    batch = data(num_samples, linear=average == "last_half")
    reference = loop(batch, recipe)
    assert agrees(batch, recipe, reference)
    if num_samples > 1:
        for wrong in (last_twice, *(() if batch.weights is None else (unweighted,))):
            monkeypatch.setattr(one_pass_module, "lanes_pass", wrong)
            assert not agrees(batch, recipe, reference)


def test_no_bound_and_another_link():
    recipe = Recipe(label_loss(probit).slope, "none", inverse_time=False, zero_sum=False)
    batch = data(BLOCK + 1, radius=np.inf)
    assert agrees(batch, recipe, loop(batch, recipe))


@pytest.mark.parametrize("num_samples", [1, 2 * BLOCK + 3])
def test_several_margins_a_sample(num_samples, monkeypatch):
    recipe = Recipe(CHOICES.slope, "last_half", inverse_time=num_samples > 1, zero_sum=num_samples > 1)
    batch, num_actions = data(num_samples), 3
    shape = (OUTER, INNER, num_samples, num_actions)
    batch = batch._replace(
        weights=jax.random.uniform(jax.random.key(3), shape[:-1], DTYPE),
        features=jax.random.normal(jax.random.key(1), (*shape, DIM), DTYPE),
        targets=jax.random.normal(jax.random.key(2), shape, DTYPE),
    )
    reference = loop(batch, recipe)
    assert agrees(batch, recipe, reference)
    monkeypatch.setattr(one_pass_module, "lanes_pass", margins_turned)
    assert not agrees(batch, recipe, reference)


def test_what_is_shared_by_all_lanes_need_not_be_batched():
    recipe = Recipe(label_loss(logistic).slope, "all", inverse_time=False, zero_sum=False)
    batch = jax.tree.map(lambda leaf: leaf[0], data(BLOCK + 1))
    one = batch._replace(features=batch.features[0], radius=batch.radius[0])
    axes = Pass(features=None, targets=0, gain=0, rate=0, radius=None)  # pyright: ignore[reportArgumentType]
    shared = jax.vmap(lambda d: one_pass(d, recipe), in_axes=(axes,))(one)
    for lane in range(INNER):
        single = one._replace(targets=one.targets[lane], gain=one.gain[lane], rate=one.rate[lane])
        np.testing.assert_allclose(shared[lane], plain_pass(single, recipe), rtol=1e-4, atol=1e-5)
