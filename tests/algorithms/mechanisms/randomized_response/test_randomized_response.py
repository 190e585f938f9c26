import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms import debias_labels, debias_one_hot, debias_scalar, randomize_scalar, randomized_response
from jaxdp.mechanisms._randomized_response import sign_turns
from jaxdp.mechanisms.local_randomizers.label import noisy_ones

NUM_DRAWS = 100_000
EPSILONS = np.array([1e-3, 0.1, 1.0, 5.0, np.inf], np.float32)


def response_probabilities(epsilon, num_labels):
    """Returns [label, report]: e^epsilon / (e^epsilon + K - 1) on the diagonal, the rest shared equally."""
    keep = 1 / (1 + (num_labels - 1) * math.exp(-epsilon))
    matrix = np.full((num_labels, num_labels), (1 - keep) / (num_labels - 1))
    np.fill_diagonal(matrix, keep)
    return matrix


def assert_frequencies(frequencies, probabilities, num_draws):
    """Checks frequencies of n draws; the standard error of one is sqrt(p (1 - p) / n)."""
    error = np.abs(frequencies - probabilities)
    assert np.all(error <= 5 * np.sqrt(probabilities * (1 - probabilities) / num_draws) + 1e-12)


def check_response(respond, epsilon, num_labels):
    labels = np.tile(np.arange(num_labels, dtype=np.int32)[:, None], NUM_DRAWS)
    reports = np.asarray(respond(jax.random.key(1), labels))
    frequencies = np.stack([np.bincount(row, minlength=num_labels) for row in reports]) / NUM_DRAWS
    assert frequencies.shape == (num_labels, num_labels)
    assert_frequencies(frequencies, response_probabilities(epsilon, num_labels), NUM_DRAWS)


@pytest.mark.parametrize(("epsilon", "num_labels"), [(0.1, 2), (1.0, 2), (4.0, 2), (1.0, 3), (3.0, 5), (math.inf, 4)])
def test_response_probabilities(epsilon, num_labels):
    def respond(key, labels, epsilon=epsilon):
        return randomized_response(key, labels, epsilon, num_labels=num_labels)

    check_response(respond, epsilon, num_labels)
    if epsilon < math.inf:
        keep = 0.95 / (1 + (num_labels - 1) * math.exp(-epsilon))  # planted: 5% off
        wrong_epsilon = math.log(keep / (1 - keep) * (num_labels - 1)) if keep * num_labels > 1 else 1e-6
        with pytest.raises(AssertionError):
            check_response(lambda *args: respond(*args, epsilon=wrong_epsilon), epsilon, num_labels)


def test_a_move_that_can_stay_is_caught():
    """Plants "otherwise uniform on all labels", which keeps too often."""

    def respond(key, labels):
        key_move, key_label = jax.random.split(key)
        moves = jax.random.uniform(key_move, labels.shape) >= jax.nn.sigmoid(1.0 - math.log(2))
        return jnp.where(moves, jax.random.randint(key_label, labels.shape, 0, 3, jnp.int32), labels)

    with pytest.raises(AssertionError):
        check_response(respond, 1.0, 3)


def probabilities_of_moving(monkeypatch, epsilon, num_labels):
    """Bisects for the number of 32-bit words that move label 0, which gives the exact probability."""
    low, high = 0, 2**32
    while low < high:
        middle = (low + high) // 2
        monkeypatch.setattr(jax.random, "bits", lambda key, shape, dtype=None, m=middle: jnp.full(shape, m, jnp.uint32))
        moved = randomized_response(jax.random.key(0), jnp.zeros((), jnp.int32), epsilon, num_labels=num_labels) != 0
        low, high = (middle + 1, high) if moved else (low, middle)
    return low / 2**32


@pytest.mark.precision
@pytest.mark.parametrize("num_labels", [2, 3, 100])
@pytest.mark.parametrize("epsilon", [1e-4, 1e-2, 0.3, 1.2, 5.0, 15.0, 30.0, 87.0, 90.0, 1e4, 3e38])
def test_probabilities_are_within_the_claim_and_close_to_it(monkeypatch, epsilon, num_labels):
    """Checks exactly, without sampling: the log odds of the draw never exceed epsilon, and are hardly below it."""
    monkeypatch.setattr(jax.random, "randint", lambda key, shape, low, high, dtype: jnp.full(shape, low, dtype))
    move = probabilities_of_moving(monkeypatch, jnp.float32(epsilon), num_labels)
    assert move > 0  # at epsilon = 20 the float32 sigmoid is 1: comparing with it would never move a label
    spent = math.log((1 - move) / (move / (num_labels - 1)))
    assert spent <= epsilon * (1 + 1e-12)
    if epsilon < 15:  # beyond, the least probability of a move is 2^-32
        assert spent >= epsilon - 1e-6 * num_labels - 2e-3 * epsilon
    assert probabilities_of_moving(monkeypatch, jnp.float32(math.inf), num_labels) == 0


def reports_by_word(monkeypatch, words, epsilon, num_labels):
    """Returns the reports of label 0 for these random words; a label that moves becomes 1."""
    monkeypatch.setattr(jax.random, "randint", lambda key, shape, low, high, dtype: jnp.full(shape, low, dtype))
    monkeypatch.setattr(jax.random, "bits", lambda key, shape, dtype=None: jnp.asarray(words, jnp.uint32))
    labels = jnp.zeros(len(words), jnp.int32)
    return np.asarray(randomized_response(jax.random.key(0), labels, jnp.float32(epsilon), num_labels=num_labels))


@pytest.mark.precision
@pytest.mark.parametrize("num_labels", [3, 1000, 10**8])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-7, 1e-6, 1e-4, 0.01])
def test_a_label_is_never_rarer_than_others(monkeypatch, epsilon, num_labels):
    """Checks the probability of keeping, or that reports are words modulo K, for any label."""
    words = np.asarray([0, 1, num_labels - 1, num_labels, 2**31, 2**32 - 1], np.uint32)
    reports = reports_by_word(monkeypatch, words, epsilon, num_labels)
    if (reports == words % num_labels).all():
        assert epsilon < 1e-5 + 2 * num_labels / 2**32
        return
    keep = 1 - probabilities_of_moving(monkeypatch, jnp.float32(epsilon), num_labels)
    assert 0 <= math.log(keep / (1 - keep) * (num_labels - 1)) <= epsilon
    planted = math.floor(2**32 / (1 + (num_labels - 1) * math.exp(-1e-9)) * (1 - 2**-19)) / 2**32  # as it was
    assert math.log(planted / (1 - planted) * (num_labels - 1)) < -1e-6


@pytest.mark.precision
@pytest.mark.parametrize("epsilon", [0.3, 5.0, 30.0, 87.0, 90.0, 3e38])
def test_a_sure_sign_turns_as_often_as_is_claimed(monkeypatch, epsilon):
    def turns(word, epsilon):
        monkeypatch.setattr(jax.random, "bits", lambda key, shape, dtype=None: jnp.full(shape, word, jnp.uint32))
        return bool(sign_turns(jax.random.key(0), jnp.ones((), jnp.float32), jnp.float32(epsilon)))

    claimed = math.ceil(2.0**32 / (1 + math.exp(min(epsilon, 700.0))))
    assert claimed >= 1
    assert turns(claimed - 1, epsilon)
    assert not turns(0, math.inf)


def chance_of_a_move(monkeypatch, epsilon, count):
    """Searches the first of the waiting times' words for the exact probability that any of so many reports is a
    move.
    """
    low, width, moved = 0, 2**31, np.zeros(1, bool)
    while width > 1:
        width //= 2**10 if width > 2 else 2
        words = jnp.asarray(low + width * np.arange(2**10), jnp.uint32)
        monkeypatch.setattr(jax.random, "bits", lambda key, shape, dtype, words=words: words.astype(dtype))
        with jax.disable_jit():
            counts = jnp.full(words.shape, count, jnp.int32)
            moved = np.asarray(noisy_ones(jax.random.key(0), epsilon, 0 * counts, counts) != 0)
        low += width * max(int(moved.sum()) - 1, 0)
    return (low + moved[0]) / 2**32


@pytest.mark.precision
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("epsilon", [10.0, 15.0, 21.8, 22.3, 30.0, 90.0])
def test_counts_show_a_move_as_often_as_is_claimed(monkeypatch, epsilon, count):
    """Checks counts: one that shows no move at all would distinguish two neighbours for certain."""
    chance = chance_of_a_move(monkeypatch, jnp.float32(epsilon), count)
    claimed = -math.expm1(-count * math.log1p(1 / (1 + math.exp(epsilon))))
    assert claimed * (1 - 2e-6) <= chance <= claimed * (1 + 1e-4) + 1.5 * count / 2**32


@pytest.mark.precision
@pytest.mark.parametrize("dtype", [jnp.int8, jnp.uint8, jnp.int32, int])
@pytest.mark.parametrize("num_labels", [2, 127])
def test_reports_keep_shape_dtype_and_range(dtype, num_labels):
    labels = jnp.asarray(np.random.default_rng(0).integers(num_labels, size=(50, 40)), dtype)
    reports = randomized_response(jax.random.key(2), labels, 0.5, num_labels=num_labels)
    assert (reports.dtype, reports.shape) == (labels.dtype, labels.shape)
    assert reports.min() == 0
    assert reports.max() == num_labels - 1


def check_unbiased(estimates, truth):
    """estimates [n, ...]: the mean of n has standard error std / sqrt(n)."""
    estimates = np.asarray(estimates, np.float64)
    error = estimates.std(0) / math.sqrt(len(estimates))
    assert np.all(np.abs(estimates.mean(0) - truth) <= 5 * error + 1e-6)


@pytest.mark.precision
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 6.0])
def test_debiasing_labels_is_unbiased(epsilon):
    labels = np.tile(np.array([0, 1], np.int32), (NUM_DRAWS, 1))
    reports = randomized_response(jax.random.key(3), labels, epsilon)
    check_unbiased(debias_labels(reports, epsilon), labels[0])
    with pytest.raises(AssertionError):
        check_unbiased(debias_labels(reports, 0.8 * epsilon), labels[0])


@pytest.mark.precision
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 6.0])
def test_debiasing_one_hot_is_unbiased(epsilon):
    labels = np.tile(np.arange(4, dtype=np.int32), (NUM_DRAWS // 2, 1))
    reports = randomized_response(jax.random.key(4), labels, epsilon, num_labels=4)
    check_unbiased(debias_one_hot(reports, epsilon, num_labels=4), np.eye(4))
    with pytest.raises(AssertionError):
        check_unbiased(debias_one_hot(reports, 0.8 * epsilon, num_labels=4), np.eye(4))


@pytest.mark.precision
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 30.0, 1000.0])
def test_debiasing_is_exactly_unbiased_and_stable(epsilon):
    """Averages over the reports' exact probabilities, in float64, at the float32 estimates."""
    for num_labels in [2, 3, 10]:
        estimates = np.asarray(
            debias_one_hot(np.arange(num_labels, dtype=np.int32), jnp.float32(epsilon), num_labels=num_labels), float
        )
        means = response_probabilities(float(np.float32(epsilon)), num_labels) @ estimates
        np.testing.assert_allclose(means, np.eye(num_labels), atol=1e-6 * max(1, num_labels / epsilon))
    estimates = np.asarray(debias_labels(np.arange(2, dtype=np.int32), jnp.float32(epsilon)), float)
    means = response_probabilities(float(np.float32(epsilon)), 2) @ estimates
    np.testing.assert_allclose(means, [0, 1], atol=1e-6 * max(1, 1 / epsilon))


@pytest.mark.precision
def test_golden():
    p = 1 / (1 + math.exp(-1))
    np.testing.assert_allclose(
        debias_labels(np.array([0, 1], np.int32), 1.0), [-(1 - p) / (2 * p - 1), p / (2 * p - 1)], rtol=1e-6
    )
    for epsilon, size in [(0.5, 4.08), (1.0, 2.16), (4.0, 1.04)]:  # SPEC 0.4
        report = np.array([-1, 1], np.int32)
        np.testing.assert_allclose(debias_scalar(report, epsilon, bound=1), size * report, rtol=3e-3)


def scalar_probability(value, epsilon, bound):  # SPEC 0.4
    return 0.5 + value / (2 * bound) * math.tanh(epsilon / 2)


def check_scalar(randomize, epsilon, bound):
    values = np.array([-1.0, -0.3, 0.0, 0.6, 1.0], np.float32) * np.float32(bound)
    reports = np.asarray(randomize(jax.random.key(5), np.tile(values, (NUM_DRAWS, 1))))
    assert set(np.unique(reports)) == {-1, 1}
    probabilities = np.array([scalar_probability(v, epsilon, bound) for v in values.tolist()])
    assert_frequencies((reports == 1).mean(0), np.clip(probabilities, 0, 1), NUM_DRAWS)
    return values, reports


@pytest.mark.precision
@pytest.mark.parametrize(("epsilon", "bound"), [(0.1, 1.0), (1.0, 0.5), (5.0, 3.0), (math.inf, 2.0)])
def test_scalar_reports(epsilon, bound):
    def randomize(key, values, epsilon=epsilon):
        return randomize_scalar(key, values, epsilon, bound=bound)

    values, reports = check_scalar(randomize, epsilon, bound)
    estimates = debias_scalar(reports, epsilon, bound=bound)
    check_unbiased(estimates, values)
    size = np.float32(bound / math.tanh(epsilon / 2))
    np.testing.assert_allclose(np.abs(estimates), np.full(estimates.shape, size), rtol=1e-6)
    wrong_epsilon = 1.5 * epsilon if epsilon < 4 else 3.0
    with pytest.raises(AssertionError):
        check_scalar(lambda *args: randomize(*args, epsilon=wrong_epsilon), epsilon, bound)
    with pytest.raises(AssertionError):
        check_unbiased(debias_scalar(reports, wrong_epsilon, bound=bound), values)


@pytest.mark.precision
def test_scalar_report_dtypes():
    for dtype in [jnp.float32, float]:
        values = jnp.zeros((2, 3), dtype)
        reports = randomize_scalar(jax.random.key(0), values, 1.0, bound=1)
        assert (reports.dtype, reports.shape) == (jnp.int32, (2, 3))
    assert debias_scalar(reports, jnp.float32(1), bound=1).dtype == jnp.float32
    assert debias_labels(reports, jnp.float32(1)).dtype == jnp.float32
    assert debias_one_hot(reports, jnp.float32(1), num_labels=4).shape == (2, 3, 4)


@pytest.mark.precision
def test_no_privacy():
    labels = jnp.asarray(np.random.default_rng(0).integers(3, size=200), jnp.int32)
    bits = labels // 2
    key, inf = jax.random.key(0), math.inf
    np.testing.assert_array_equal(randomized_response(key, bits, inf), bits)
    np.testing.assert_array_equal(randomized_response(key, labels, inf, num_labels=3), labels)
    np.testing.assert_array_equal(debias_labels(bits, inf), bits)
    np.testing.assert_array_equal(debias_one_hot(labels, inf, num_labels=3), np.eye(3)[labels])
    np.testing.assert_array_equal(debias_scalar(2 * bits - 1, inf, bound=2.5), 2.5 * (2 * np.asarray(bits) - 1))
    ends = jnp.where(bits == 1, jnp.float32(2.5), jnp.float32(-2.5))
    np.testing.assert_array_equal(randomize_scalar(key, ends, inf, bound=2.5), 2 * bits - 1)  # certain at the ends only


def test_one_compilation_for_every_epsilon_and_vmap_equals_loop():
    key = jax.random.key(7)
    labels = jnp.asarray(np.random.default_rng(0).integers(2, size=300), jnp.int32)
    values = jnp.linspace(-1, 1, 300, dtype=jnp.float32)
    for function in [
        lambda epsilon: randomized_response(key, labels, epsilon),
        lambda epsilon: randomized_response(key, labels, epsilon, num_labels=3),
        lambda epsilon: randomize_scalar(key, values, epsilon, bound=epsilon**0),
        lambda epsilon: debias_labels(labels, epsilon),
        lambda epsilon: debias_one_hot(labels, epsilon, num_labels=3),
        lambda epsilon: debias_scalar(labels, epsilon, bound=1.0),
    ]:
        traces = []

        @jax.jit
        def compiled(epsilon, function=function, traces=traces):
            traces.append(epsilon)
            return function(epsilon)

        loop = np.stack([compiled(jnp.asarray(epsilon)) for epsilon in EPSILONS])
        assert len(traces) == 1
        assert np.all(np.isfinite(loop))
        np.testing.assert_allclose(jax.vmap(compiled)(EPSILONS), loop, rtol=1e-6, atol=1e-6)


@pytest.mark.precision
def test_flips_are_nested_in_epsilon():
    """Checks common random numbers: with one key, moves at a larger epsilon are also moves at a smaller one."""
    labels = jnp.zeros(2000, jnp.int32)
    flips = [randomized_response(jax.random.key(8), labels, epsilon) for epsilon in [0.1, 1.0, 3.0]]
    assert np.all(flips[0] >= flips[1])
    assert np.all(flips[1] >= flips[2])


def test_errors():
    key, labels, values = jax.random.key(0), np.zeros(2, np.int32), np.zeros(2, np.float32)
    for bad in [0.0, -1.0, math.nan]:
        for call in [
            lambda bad=bad: randomized_response(key, labels, bad),
            lambda bad=bad: randomized_response(key, labels, bad, num_labels=3),
            lambda bad=bad: randomize_scalar(key, values, bad, bound=1.0),
            lambda bad=bad: debias_labels(labels, bad),
            lambda bad=bad: debias_one_hot(labels, bad, num_labels=3),
            lambda bad=bad: debias_scalar(labels, bad, bound=1.0),
        ]:
            with pytest.raises(ValueError, match=f"epsilon must be > 0, got {bad}"):
                call()
        with pytest.raises(ValueError, match=f"bound must be > 0, got {bad}"):
            randomize_scalar(key, values, 1.0, bound=bad)
    with pytest.raises(ValueError, match="labels must be integers, got dtype float32"):
        randomized_response(key, values, 1.0)
    with pytest.raises(ValueError, match="values must be floats, got dtype int32"):
        randomize_scalar(key, labels, 1.0, bound=1.0)
    with pytest.raises(ValueError, match="num_labels must be an integer >= 2, got 1"):
        randomized_response(key, labels, 1.0, num_labels=1)
    with pytest.raises(ValueError, match="holds num_labels - 1 = 128, got int8"):
        randomized_response(key, np.zeros(2, np.int8), 1.0, num_labels=129)
    with pytest.raises(ValueError, match="epsilon must be a scalar"):
        randomized_response(key, labels, jnp.ones(2, jnp.float32))


def test_keys_are_used_once():
    values = jnp.zeros(3, jnp.float32)
    with jax.debug_key_reuse(True):
        for function in [
            lambda key: randomized_response(key, jnp.zeros(3, jnp.int32), 1.0),
            lambda key: randomized_response(key, jnp.zeros(3, jnp.int32), 1.0, num_labels=3),
            lambda key: randomize_scalar(key, values, 1.0, bound=1.0),
        ]:
            jax.jit(function)(jax.random.key(0))
