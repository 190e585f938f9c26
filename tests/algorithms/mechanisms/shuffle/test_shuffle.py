import functools
import itertools
import math
import time
from fractions import Fraction

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from jaxdp.audit import exact_delta, exact_epsilon, g_test
from jaxdp.audit.shuffle_distribution import distribution_of_ones
from jaxdp.mechanisms import (
    randomized_response,
    shuffle_delta,
    shuffle_epsilon,
    shuffle_epsilon_bound,
    shuffle_guarantee,
    shuffle_local_epsilon,
    shuffle_local_epsilon_bound,
    shuffle_worst_ones,
    shuffled,
    shuffled_ones,
)
from jaxdp.mechanisms._shuffled_bits import (
    LEFT_OUT,
    MARGIN,
    count_distribution,
    delta_measure,
    is_delta_at_most,
    worst,
)

INF = math.inf
SUSPICIOUS = 1e-6
GRID = [(0.0, 0.5), (0.1, 0.5), (0.5, 1.0), (0.05, 1.0), (0.5, 2.0), (1.0, 2.0), (1.0, 3.0), (1.0, 5.0), (2.0, 9.0)]


def one_more_report(distribution, odds, one):
    """Returns integer weights of counts after one more report.

    A bit is kept `odds.numerator : odds.denominator` times.
    """
    moved, kept = (odds.denominator, odds.numerator) if one else (odds.numerator, odds.denominator)
    return [moved * a + kept * b for a, b in zip([*distribution, 0], [0, *distribution], strict=True)]


@functools.cache
def distributions_of_the_others(odds, batch):
    """Returns, for every number of ones among the others, weights of the count of their reports: report by report."""
    zeros = [[1]]
    for _ in range(batch - 1):
        zeros.append(one_more_report(zeros[-1], odds, one=False))
    distributions = []
    for ones in range(batch):
        distribution = zeros[batch - 1 - ones]
        for _ in range(ones):
            distribution = one_more_report(distribution, odds, one=True)
        distributions.append(distribution)
    return distributions


def enumerated_delta(epsilon, local_epsilon, batch):
    """Computes the largest divergence, in integers except the two exponentials, and the numbers of ones that
    have it.
    """
    odds, times = Fraction(math.exp(local_epsilon)), Fraction(math.exp(epsilon))
    deltas = []
    for distribution in distributions_of_the_others(odds, batch):
        first, second = (one_more_report(distribution, odds, one) for one in (True, False))
        deltas.append(
            max(
                sum(max(0, times.denominator * p - times.numerator * q) for p, q in zip(a, b, strict=True))
                for a, b in ((first, second), (second, first))
            )
        )
    total = times.denominator * (odds.numerator + odds.denominator) ** batch
    return Fraction(max(deltas), total), [ones for ones, delta in enumerate(deltas) if delta == max(deltas)]


@pytest.mark.parametrize("batch", [1, 2, 5, 12, 30, 100])
def test_delta_is_that_of_an_enumeration(batch):
    for epsilon, local_epsilon in GRID:
        delta, worst = enumerated_delta(epsilon, local_epsilon, batch)
        computed = shuffle_delta(epsilon, local_epsilon, batch)
        assert delta <= Fraction(computed) <= delta * (1 + Fraction(1, 10**9)), (epsilon, local_epsilon)
        assert shuffle_worst_ones(epsilon, local_epsilon, batch) in worst or delta > 0.999


@pytest.mark.parametrize("batch", range(1, 13))
def test_delta_of_few_users_to_ten_digits(batch):
    """Enumerates the reports of every size one by one, with no code of the library."""
    for epsilon, local_epsilon in GRID:
        delta, _ = enumerated_delta(epsilon, local_epsilon, batch)
        assert abs(Fraction(shuffle_delta(epsilon, local_epsilon, batch)) - delta) <= Fraction(1, 10**10)


@pytest.mark.parametrize(("epsilon", "local_epsilon", "batch"), [(0.1, 0.6, 120), (1.0, 5.0, 300), (0.2, 4.0, 401)])
def test_the_worst_number_of_ones_of_all(epsilon, local_epsilon, batch):
    """Checks where bounds on ranges of numbers are compared, and where each number is tried."""
    measure, looked_at = delta_measure(epsilon, local_epsilon), itertools.count(1)
    deltas = [measure(count_distribution(ones, local_epsilon, batch)) for ones in range(batch)]

    def counting(distribution):
        assert next(looked_at) < batch, "the search must end, and sooner than one that tries each number"
        return measure(distribution)

    assert worst(counting, local_epsilon, batch) == (max(deltas), np.argmax(deltas))
    assert shuffle_delta(epsilon, local_epsilon, batch) == max(deltas)
    assert shuffle_worst_ones(epsilon, local_epsilon, batch) == np.argmax(deltas)
    assert max(deltas) > 1.001 * measure(count_distribution(batch // 2, local_epsilon, batch))


def test_a_hundred_users_as_enumerated():
    """Checks the long test's largest batch, at one point; and the epsilon for this delta."""
    delta, _ = enumerated_delta(1.0, 2.0, 100)
    assert shuffle_delta(1.0, 2.0, 100) == pytest.approx(float(delta), rel=1e-9)
    assert shuffle_epsilon(float(delta), 2.0, 100) == pytest.approx(1.0, rel=1e-9)
    assert shuffle_local_epsilon(1.0, float(delta), 100) == pytest.approx(2.0, rel=1e-9)
    worst = shuffle_worst_ones(1.0, 2.0, 100)
    zero, one = (distribution_of_ones([bit] + [1] * worst + [0] * (99 - worst), 2.0) for bit in (0, 1))
    assert exact_delta(zero, one, 1.0) == pytest.approx(float(delta), rel=1e-9)
    assert exact_epsilon(zero, one, float(delta)) == pytest.approx(1.0, rel=1e-9)


def test_only_the_two_extreme_distributions_would_not_do():
    """Not always are all other bits alike in the worst case."""
    zero, one = (distribution_of_ones([bit] + [1] * 299, 5.0) for bit in (0, 1))
    assert shuffle_delta(1.0, 5.0, 300) > 1.005 * exact_delta(zero, one, 1.0)


@pytest.mark.parametrize(("epsilon", "local_epsilon", "batch"), [(0.1, 2.5, 10_000), (0.05, 1.5, 10_000), (1, 8, 3000)])
def test_delta_of_many_users_to_its_digits(epsilon, local_epsilon, batch):
    """Computes one distribution, of all others with a 1, in 60 digits."""
    with mpmath.workdps(60):
        keep = 1 / (1 + mpmath.exp(-mpmath.mpf(local_epsilon)))
        distribution = [(1 - keep) ** (batch - 1)]
        for count in range(1, batch):
            distribution.append(distribution[-1] * (batch - count) / count * keep / (1 - keep))
        times, delta = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(0)
        for below, here in zip([0, *distribution], [*distribution, 0], strict=True):
            delta += max(0, (1 - keep) * here + keep * below - times * (keep * here + (1 - keep) * below))
        computed = delta_measure(epsilon, local_epsilon)(count_distribution(batch - 1, local_epsilon, batch))
        assert 0 < delta < 0.9
        assert abs((computed - LEFT_OUT) / (1 + MARGIN) / delta - 1) < MARGIN / 4


def test_what_is_found_holds_and_little_more_would():
    for epsilon, delta, batch in itertools.product([0.1, 0.5, 1.0, 4.0], [1e-12, 1e-6, 1e-3, 0.3], [1, 7, 60, 400]):
        local = shuffle_local_epsilon(epsilon, delta, batch)
        assert local >= epsilon
        assert shuffle_delta(epsilon, local, batch) <= delta
        assert shuffle_delta(epsilon, local * (1 + 1e-8) + 1e-8, batch) > delta
        back = shuffle_epsilon(delta, local, batch)
        assert back <= epsilon * (1 + 1e-8)
        assert shuffle_delta(back, local, batch) <= delta
        assert back < 1e-8 or shuffle_delta(back * (1 - 1e-8), local, batch) > delta


def test_monotone_in_everything():
    deltas = np.array([[shuffle_delta(0.5, local, n) for n in range(1, 60)] for local in (0.4, 0.6, 1, 2, 4, 8, 30)])
    slack = 1 + 1e-9
    assert np.all(deltas[:, 1:] <= slack * deltas[:, :-1])
    assert np.all(deltas[1:] * slack >= deltas[:-1])
    assert np.all(deltas[0] == 0)  # with less than epsilon to begin with
    locals_ = [shuffle_local_epsilon(0.5, 1e-4, batch) for batch in range(1, 120)]
    assert np.all(np.diff(locals_) >= -1e-9)


def test_ends():
    assert shuffle_delta(2.0, 2.0, 10) == shuffle_delta(INF, INF, 10) == 0.0
    assert shuffle_delta(2.0, INF, 10) == shuffle_delta(2.0, 501.0, 10) == 1.0
    assert shuffle_delta(2.0, 499.0, 10) == 1.0  # to 1e-200
    assert shuffle_delta(0.0, 1.0, 1) == pytest.approx(math.tanh(0.5))  # one user: randomized response itself
    assert shuffle_delta(0.0, 1e-12, 1) == pytest.approx(5e-13)
    assert shuffle_epsilon(1e-300, 1.0, 10) == 1.0
    assert shuffle_epsilon(0.9, 1.0, 10) == 0.0
    assert shuffle_epsilon(0.1, INF, 10) == INF
    assert shuffle_local_epsilon(INF, 0.1, 10) == INF
    assert shuffle_local_epsilon(600.0, 0.1, 10) == 600.0
    assert shuffle_local_epsilon(1.0, 1e-300, 10) == 1.0
    assert 1.0 < shuffle_local_epsilon(1.0, 1 - 1e-12, 10) < 40.0


def test_the_closed_form_is_never_below_the_exact_value():
    checked = 0
    for delta, batch in itertools.product([1e-9, 1e-6, 1e-3], [200, 400, 1000]):
        limit = math.log(batch / (16 * math.log(2 / delta)))
        for local in np.linspace(0.05, 1, 4) * limit if limit > 0 else ():
            assert shuffle_epsilon(delta, local, batch) <= shuffle_epsilon_bound(delta, local, batch)
            checked += 1
    assert checked == 4 * 7
    assert math.log(400 / (16 * math.log(2e6))) == pytest.approx(0.544, abs=1e-3)
    with pytest.raises(ValueError, match=r"local_epsilon must be <= log.* = 0.5441 for the closed form, got 0.55"):
        shuffle_epsilon_bound(1e-6, 0.55, 400)
    with pytest.raises(ValueError, match=r"batch must be > 16 log.* = 232.1 for the closed form, got 232"):
        shuffle_local_epsilon_bound(1.0, 1e-6, 232)
    for epsilon, batch in itertools.product([1e-4, 0.1, 1.0, 50.0], [233, 400, 10**6]):
        local = shuffle_local_epsilon_bound(epsilon, 1e-6, batch)
        assert shuffle_epsilon_bound(1e-6, local, batch) <= epsilon
        at_limit = local == math.log(batch / (16 * math.log(2e6)))
        assert at_limit or shuffle_epsilon_bound(1e-6, local * (1 + 1e-9), batch) > epsilon


def test_beyond_ten_thousand_users():
    start = time.perf_counter()
    exact = shuffle_local_epsilon(0.3, 1e-6, 10_000)
    assert time.perf_counter() - start < 60
    assert shuffle_local_epsilon(0.3, 1e-6, 10_001) == exact
    huge = shuffle_local_epsilon(0.3, 1e-6, 10**7)
    assert huge == shuffle_local_epsilon_bound(0.3, 1e-6, 10**7) > exact
    assert shuffle_epsilon(1e-6, huge, 10**7) <= 0.3
    assert shuffle_delta(0.3, huge, 10**7) > 1e-6  # the value of 10,000 users
    assert shuffle_guarantee(0.3, 1e-6, local_epsilon=huge, batch=10**7).local_epsilon == huge


def test_the_claim():
    claim = shuffle_guarantee(1.0, 1e-3, local_epsilon=2.0, batch=100)
    assert (claim.kind, claim.trust_model, claim.batch, claim.local_epsilon) == ("approximate", "shuffle", 100, 2.0)
    assert not shuffle_guarantee(INF, 1e-3, local_epsilon=2.0, batch=100).is_private
    with pytest.raises(
        ValueError, match=r"epsilon must be >= 2.44697 for a batch of 50 at local_epsilon = 2.5 .*got 1"
    ):
        shuffle_guarantee(1.0, 1e-3, local_epsilon=2.5, batch=50)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: shuffle_delta(-1.0, 1.0, 5), "epsilon must be >= 0, got -1.0"),
        (lambda: shuffle_delta(math.nan, 1.0, 5), "epsilon must be >= 0, got nan"),
        (lambda: shuffle_delta(1.0, 0.0, 5), "local_epsilon must be > 0, got 0.0"),
        (lambda: shuffle_delta(1.0, 1.0, 0), "batch must be an integer >= 1, got 0"),
        (lambda: shuffle_epsilon(0.0, 1.0, 5), "delta must be in .0, 1., got 0.0"),
        (lambda: shuffle_local_epsilon(0.0, 0.1, 5), "epsilon must be > 0, got 0.0"),
        (lambda: shuffle_worst_ones(1.0, 1.0, 5), "epsilon must be < local_epsilon = 1.0, got 1.0"),
        (lambda: shuffle_worst_ones(1.0, 2.0, 10_001), "batch must be <= 10000, got 10001"),
        (lambda: shuffled(jax.random.key(0), {}), "reports must be arrays with one leading axis of users"),
        (lambda: shuffled(jax.random.key(0), jnp.zeros(())), "reports must be arrays with one leading axis of users"),
        (lambda: shuffled(jax.random.key(0), (jnp.zeros(2), jnp.zeros(3))), r"got shapes \[\(2,\), \(3,\)\]"),
        (lambda: shuffled_ones(jax.random.key(0), 1.5, 1.0, batch=5), "ones must be integers"),
        (lambda: shuffled_ones(jax.random.key(0), 1, -1.0, batch=5), "local_epsilon must be > 0, got -1.0"),
        (lambda: distribution_of_ones(np.zeros((1, 2)), 1.0), r"bits must be a vector, got shape \(1, 2\)"),
        (lambda: distribution_of_ones([0, 2], 1.0), "bits must be in"),
    ],
)
def test_bad_input(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def draws(release, number=50_000):
    return np.asarray(jax.vmap(release)(jax.random.split(jax.random.key(7), number)))


def test_every_order_is_as_likely_and_rows_stay_together():
    def release(key):
        out = shuffled(
            key, {"user": jnp.arange(4, dtype=jnp.int32), "pair": jnp.arange(8, dtype=jnp.int32).reshape(4, 2)}
        )
        return jnp.concatenate([out["user"], out["pair"].ravel()])

    rows = draws(release)
    users, pairs = rows[:, :4], rows[:, 4:].reshape(-1, 4, 2)
    assert np.array_equal(pairs, np.stack([2 * users, 2 * users + 1], axis=2))
    uniform = dict.fromkeys(itertools.permutations(range(4)), 1 / 24)
    assert g_test(map(tuple, users.tolist()), uniform) > SUSPICIOUS
    rolled = draws(lambda key: jnp.roll(jnp.arange(4, dtype=jnp.int32), jax.random.randint(key, (), 0, 4, jnp.int32)))
    assert g_test(map(tuple, rolled.tolist()), uniform) < SUSPICIOUS  # each user is anywhere, yet next to the same


@pytest.mark.parametrize("local_epsilon", [0.3, 2.0])
def test_the_count_has_the_distribution_of_shuffled_reports(local_epsilon):
    bits = jnp.asarray([1] * 17 + [0] * 23, jnp.int32)
    distribution = distribution_of_ones(np.asarray(bits), local_epsilon)
    epsilon = jnp.asarray(local_epsilon, float)

    def by_reports(key):
        key_report, key_order = jax.random.split(key)
        return shuffled(key_order, randomized_response(key_report, bits, epsilon)).sum(dtype=jnp.int32)

    counts = draws(lambda key: shuffled_ones(key, jnp.int32(17), epsilon, batch=40))
    for sample in (counts, draws(by_reports)):
        assert g_test(sample.tolist(), distribution) > SUSPICIOUS
    assert g_test(counts.tolist(), distribution_of_ones([1] * 18 + [0] * 22, local_epsilon)) < SUSPICIOUS
    half = draws(lambda key: 2 * shuffled_ones(key, jnp.int32(8), epsilon, batch=20))
    assert g_test(half.tolist(), distribution) < SUSPICIOUS


@pytest.mark.precision
def test_counts_without_noise_and_of_many_batches():
    ones = jnp.asarray([[0, 3], [5, 5]], jnp.int32)
    assert shuffled_ones(jax.random.key(0), ones, INF, batch=5).tolist() == ones.tolist()
    assert shuffled_ones(jax.random.key(0), ones.astype(jnp.int8), 1.0, batch=5).dtype == jnp.int32
    noisy = np.asarray(shuffled_ones(jax.random.key(0), jnp.full(1000, 5, jnp.int32), 1.0, batch=5))
    assert noisy.min() >= 0
    assert noisy.max() <= 5


@pytest.mark.parametrize("batch", [1, 2, 17, 300])
@pytest.mark.parametrize(("epsilon", "local_epsilon"), [(0.1, 0.3), (1.0, 5.0), (1.0, 501.0)])
def test_the_decision_agrees_with_the_exact_delta(epsilon, local_epsilon, batch):
    delta = shuffle_delta(epsilon, local_epsilon, batch)
    for limit, expected in ((delta, True), (delta * (1 - 1e-12), False), (delta * (1 + 1e-12), True), (1.0, True)):
        assert is_delta_at_most(limit, epsilon, local_epsilon, batch) == expected
