"""The auditor's own promises: tight bounds, independence of chunks, honest verdicts, errors."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

from jaxdp.audit import Attack, audit, python_release, sampling
from jaxdp.audit.sampling import Score, draw, histogram
from jaxdp.core import Guarantee
from jaxdp.mechanisms import gaussian, laplace, randomized_response

LABELS = (np.int32(0), np.int32(1))
COUNTS = (np.float32(0), np.float32(1))


def claim(epsilon, delta=0.0):
    return Guarantee.approximate(epsilon, delta, trust_model="central", privacy_unit="one record", argument="test")


def keep(key, epsilon, label):
    return randomized_response(key, label, epsilon)


def noisy(key, epsilon, count):
    return laplace(key, count, epsilon, l1_sensitivity=1.0)


def bounds(release, neighbours, epsilon, *, trials, num_keys):
    attack = Attack(release, np.float32(epsilon), neighbours, claim(epsilon))
    return np.array([audit(jax.random.key(k), attack, trials=trials).lower_bound for k in range(num_keys)])


@pytest.mark.parametrize(("release", "neighbours"), [(keep, LABELS), (noisy, COUNTS)])
def test_bounds_are_tight(release, neighbours):
    found = bounds(release, neighbours, 1.0, trials=200_000, num_keys=3)
    assert np.median(found) >= 0.95
    assert np.median(found) <= 1.0


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize(("release", "neighbours"), [(keep, LABELS), (noisy, COUNTS)])
def test_bounds_with_a_million_trials(release, neighbours, epsilon):
    found = bounds(release, neighbours, epsilon, trials=10**6, num_keys=20)
    assert np.median(found) >= (0.85 if epsilon == 0.1 else 0.9) * epsilon
    assert np.sum(found > epsilon) <= binom.ppf(0.999, len(found), 0.05)


def test_a_vector_needs_a_score_of_all_coordinates():
    """Moves four coordinates together: no single one has more than half of the evidence in their sum."""

    def release(key, noise_stddev, values):
        return gaussian(key, values, noise_stddev)

    neighbours = (np.zeros(4, np.float32), np.full(4, 1.0, np.float32))
    result = audit(jax.random.key(0), Attack(release, np.float32(2), neighbours, claim(1.0, 1e-2)), trials=200_000)
    assert result.verdict == "violated"  # the sum spends epsilon = 2.3
    assert any(score in result.event for score in ("log ratio", "along the means"))


def test_a_tree_of_integers_and_floats():
    def release(key, epsilon, label):
        report = randomized_response(key, label, epsilon)
        return {"report": report, "copies": [report.astype(jnp.float32), report == 1]}

    result = audit(jax.random.key(0), Attack(release, np.float32(1), LABELS, claim(1.0)), trials=100_000)
    assert 0.9 < result.lower_bound < 1.0


def test_nothing_is_found_where_nothing_is():
    for release, neighbours in [(keep, LABELS), (noisy, COUNTS)]:
        attack = Attack(release, np.float32(1), (neighbours[0],) * 2, claim(0.01))
        assert audit(jax.random.key(3), attack, trials=20_000).lower_bound == 0


def test_the_result_tells_what_was_done():
    attack = Attack(keep, np.float32(2), LABELS, claim(1.0))
    result = audit(jax.random.key(0), attack, trials=20_000, confidence=0.99)
    assert (result.guarantee, result.confidence, result.trials) == (attack.guarantee, 0.99, 20_000)
    assert result.verdict == "violated"
    assert result.event.startswith("output in {")
    assert result.seconds > 0
    again = audit(jax.random.key(0), attack, trials=20_000, confidence=0.99)
    assert again.lower_bound == result.lower_bound
    assert audit(jax.random.key(0), attack._replace(guarantee=claim(math.inf)), trials=20_000).verdict == "consistent"


def test_unlike_inputs_are_told_apart_without_limit():
    attack = Attack(lambda key, params, data: data, None, LABELS, claim(1.0))
    result = audit(jax.random.key(0), attack, trials=10_000)
    assert result.verdict == "violated"
    assert result.lower_bound > 7


def _first(weights, outputs):
    return outputs.numbers[:, 0] * weights.astype(outputs.numbers.dtype)


def test_counts_are_those_of_the_draws():
    """Checks that counting in the program and keeping the outputs agree, with a last chunk that is not full."""
    key, params, data = jax.random.key(1), np.float32(1), np.zeros(2, np.float32)
    outputs = draw(key, noisy, params, data, trials=1000, chunk=64)
    assert outputs.numbers.shape == (1000, 2)
    assert len(np.unique(outputs.numbers)) > 1900  # a few draws are equal, as noise is on a grid
    thresholds = np.asarray([[-1.0, 0.0, 0.0, 2.0], [-2.0, -1.0, 1.0, 1.0]])
    scores = [Score(_first, np.float32(w), "") for w in (1, -1)]
    above = histogram(key, noisy, params, data, scores, thresholds, trials=1000, chunk=64)
    part = draw(jax.random.fold_in(key, 0), noisy, params, data, trials=1000, chunk=64).numbers[:, 0]
    expected = [(w * part[:, None] > row).sum(0) for w, row in zip((1, -1), thresholds, strict=True)]
    np.testing.assert_array_equal(above, expected)


def test_draws_do_not_depend_on_the_size_of_a_call():
    key, params, data = jax.random.key(1), np.float32(1), np.zeros(2, np.float32)
    whole = draw(key, noisy, params, data, trials=300, chunk=128)
    for part, one in zip(whole, draw(key, noisy, params, data, trials=300, chunk=128, lanes=32), strict=True):
        np.testing.assert_array_equal(part, one)


def test_few_trials_draw_few_outputs(monkeypatch):
    """Checks how many outputs are drawn, because a run of 100,000 rounds for each unused one takes minutes."""
    sizes, program = [], sampling._draw

    def draw_and_count(release, chunk, lanes, *arguments):
        sizes.append(lanes)
        return program(release, chunk, lanes, *arguments)

    monkeypatch.setattr(sampling, "_draw", draw_and_count)
    audit(jax.random.key(0), Attack(keep, np.float32(1), LABELS, claim(1.0)), trials=1000)
    assert 2 * 1000 <= sum(sizes) <= 2 * (512 + 512 + 2 * 512)


def test_plain_samplers_run_under_nested_vmaps():
    """Maps keys by an inner or an outer `jax.vmap`; equal keys give equal draws."""

    def sampler(generator, scale, data):
        return 10 * data + scale * generator.random()

    release = python_release(sampler)
    keys, data = jax.random.split(jax.random.key(0), 3), jnp.arange(2.0)
    by_data = jax.vmap(jax.vmap(release, (0, None, None)), (None, None, 0))(keys, 1.0, data)
    by_key = jax.vmap(jax.vmap(release, (None, None, 0)), (0, None, None))(keys, 1.0, data)
    alone = [[release(key, 1.0, x) for key in keys] for x in data]
    np.testing.assert_array_equal(by_data, alone)
    np.testing.assert_array_equal(by_key.T, alone)


def test_errors():
    attack, key = Attack(keep, np.float32(1), LABELS, claim(1.0)), jax.random.key(0)
    for bad in [jax.random.PRNGKey(0), jax.random.split(key), 0]:
        with pytest.raises(ValueError, match="key must be one typed PRNG key"):
            audit(bad, attack)
    with pytest.raises(ValueError, match="trials must be an integer >= 100, got 99"):
        audit(key, attack, trials=99)
    with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\), got 1.0"):
        audit(key, attack, confidence=1.0)
    for bad in [np.float32(1), np.zeros(2, np.int32), (np.int32(0),)]:
        with pytest.raises(ValueError, match="neighbours must have the same structure, shapes and dtypes"):
            audit(key, attack._replace(neighbours=(np.int32(0), bad)))
    with pytest.raises(ValueError, match="release must return at least one number"):
        audit(key, attack._replace(release=lambda key, params, data: ()))
    with pytest.raises(ValueError, match="release must return numbers, got dtype key<fry>"):
        audit(key, attack._replace(release=lambda key, params, data: (data, key)))
