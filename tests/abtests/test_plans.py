"""Plans give the users that independent formulas and simulations give."""

import math

import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp.abtests._fixed import Setting, fixed_users
from jaxdp.abtests._rates import lower_bound, private_divergence, relative_entropy
from jaxdp.abtests._report import figure
from jaxdp.abtests._simulation import Needs, Stopping

CONVERSIONS = {"rate": 0.02, "lift": 0.1, "num_runs": 400}
COINS = {"rate": 0.5, "lift": 0.1, "num_runs": 400}


@pytest.fixture(scope="module")
def plan():
    return jaxdp.abtest(**COINS, epsilon=1.0, trust="local")


@pytest.mark.parametrize(
    ("trust", "epsilon", "users"),
    [
        ("local", 0.1, 7.84e8),
        ("local", 0.5, 3.09e7),
        ("local", 1.0, 7.39e6),
        ("local", 2.0, 1.58e6),
        ("local", 4.0, 3.11e5),
        ("local", math.inf, 1.61e5),
        ("central", 0.1, 1.79e5),
        ("central", 0.5, 1.62e5),
    ],
)
def test_users_of_the_test_that_looks_once(trust, epsilon, users):
    setting = Setting(0.02, 0.1, epsilon, trust, 0.8, 0.05)
    assert fixed_users(setting) == pytest.approx(users, rel=5e-3)


@pytest.mark.parametrize(("rate", "lift"), [(0.02, 0.1), (0.003, 0.25), (0.9, -0.02)])
@pytest.mark.parametrize(("trust", "epsilon"), [("local", 1.0), ("central", 0.1)])
def test_the_planned_power_is_that_of_simulated_counts(rate, lift, trust, epsilon):
    """Counts are drawn and tested by an independent program: flipped bits, geometric noise from two exponentials."""
    setting, rng, runs = Setting(rate, lift, epsilon, trust, 0.8, 0.05), np.random.default_rng(7), 20_000
    users = fixed_users(setting) // 2
    flip = 1 / (1 + math.exp(epsilon)) if trust == "local" else 0.0
    counts = []
    for true in (rate, rate * (1 + lift)):
        ones = rng.binomial(users, true * (1 - flip) + (1 - true) * flip, runs).astype(float)
        if trust == "central":
            ones += np.floor(rng.exponential(1 / epsilon, runs)) - np.floor(rng.exponential(1 / epsilon, runs))
        counts.append(ones)
    pooled = (counts[0] + counts[1]) / (2 * users)
    noise = 0.0 if trust == "local" else 4 * math.exp(-epsilon) / (1 - math.exp(-epsilon)) ** 2
    z = (counts[1] - counts[0]) / np.sqrt(2 * users * pooled * (1 - pooled) + noise)
    share = float((np.sign(lift) * z > stats.norm.isf(0.025)).mean())
    assert share == pytest.approx(0.8, abs=5 * math.sqrt(0.16 / runs) + 0.005)  # .005: the normal approximation


def mean_users(control, treatment, looks, runs=20_000, most=12_000):
    """Simulates the test without privacy from its definition, one discordant pair after another; returns mean users."""
    rng = np.random.default_rng(5)
    slope = math.log(treatment / (1 - treatment) / (control / (1 - control))) / 2
    only_control, only_treatment = control * (1 - treatment), treatment * (1 - control)
    spread = 2.8 * math.log(2 / 0.05) / slope**2 / (2 * math.log(20) + math.log(1 + 2 * math.log(20)))
    users = []
    for _ in range(runs):
        pairs = np.cumsum(rng.geometric(only_control + only_treatment, most))
        rises = rng.random(most) < only_treatment / (only_control + only_treatment)
        leads = np.concatenate([[0], np.cumsum(np.where(rises, 1, -1))])
        seen = looks[: np.searchsorted(looks, pairs[-1])]
        discordant = np.searchsorted(pairs, seen, side="right")
        lead = leads[discordant]
        plan = np.cosh(slope * lead) * np.exp(-discordant * math.log(math.cosh(slope)))
        mix = np.sqrt(spread / (discordant + spread)) * np.exp(lead**2 / (2 * (discordant + spread)))
        stops = (plan + mix) / 2 >= 20
        assert stops.any()
        users.append(2 * seen[stops.argmax()])
    return float(np.mean(users))


@pytest.mark.parametrize(("rate", "lift"), [(0.003, 0.25), (0.9, -0.02)])
def test_planned_mean_users_are_those_of_simulated_pairs(rate, lift):
    """Compares within 3%, with the same looks: without them the simulated test needs 3% to 5% fewer users."""
    plan = jaxdp.abtest(rate=rate, lift=lift, epsilon=math.inf, trust="local", num_runs=20_000)
    looks = [1]
    while looks[-1] < 10**7:
        looks.append(looks[-1] + max(1, looks[-1] // 100))
    assert plan.needs.anytime.mean == pytest.approx(mean_users(rate, rate * (1 + lift), np.asarray(looks)), rel=0.03)


def test_what_a_plan_says_agrees_with_itself(plan):
    users = plan.needs.fixed
    assert plan.power_at(users) == pytest.approx(0.8, abs=1e-3)
    assert plan.smallest_lift(users) == pytest.approx(0.1, rel=1e-3)
    assert plan.least_epsilon(users) == pytest.approx(1.0, rel=1e-3)
    assert math.isnan(plan.smallest_lift(2))
    assert math.isnan(plan.least_epsilon(100))
    assert plan.needs.lower_bound < plan.needs.anytime.mean
    assert plan.without_privacy.fixed < plan.other_trust.fixed < users


def test_infinite_epsilon_is_no_privacy():
    plans = [jaxdp.abtest(**COINS, epsilon=math.inf, trust=trust) for trust in ("local", "central")]
    assert all(plan.needs == plan.without_privacy == plan.other_trust for plan in plans)


def test_simulated_users_are_near_the_known_ones():
    """Compares with known numbers: 15,178 local and 3,725 with a curator at .5 against .55.

    1.68e5 without privacy at .02.
    """
    local = jaxdp.abtest(**COINS, epsilon=1.0, trust="local")
    for mean, known in (
        (local.needs.anytime, 15_178),
        (local.other_trust.anytime, 3_725),
        (jaxdp.abtest(**CONVERSIONS, epsilon=1.0, trust="local").without_privacy.anytime, 1.68e5),
    ):
        assert abs(mean.mean - known) < 5 * mean.stderr
        assert mean.unfinished == 0


def test_bounds_are_those_of_relative_entropies():
    first, second = 0.02, 0.022
    plain = first * math.log(first / second) + (1 - first) * math.log((1 - first) / (1 - second))
    assert relative_entropy(first, second) == pytest.approx(plain, rel=1e-9)
    middle = (first + second) / 2  # the rate with the least sum of divergences
    sum_of_both = relative_entropy(first, middle) + relative_entropy(second, middle)
    assert lower_bound(first, second, 0.05) == pytest.approx(2 * math.log(20) / sum_of_both, rel=1e-6)
    # With a small epsilon a curator reveals at most epsilon times the difference of both rates.
    tiny = 1e-6
    assert lower_bound(first, second, 0.05, tiny) == pytest.approx(2 * math.log(20) / (tiny * 0.002), rel=1e-3)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"rate": 0.0}, "rate must be in"),
        ({"rate": 20}, "rate must be in"),
        ({"lift": 0.0}, "lift must not be 0"),
        ({"lift": 1.0}, "lift must not be 0, and rate"),
        ({"lift": -1.0}, "lift must not be 0, and rate"),
        ({"lift": math.nan}, "lift must be finite"),
        ({"epsilon": 0.0}, "epsilon must be > 0"),
        ({"trust": "shuffle"}, "trust must be one of local, central"),
        ({"failure_prob": 0.5}, "failure_prob must be in"),
        ({"power": 0.05}, "power must be > failure_prob"),
        ({"num_runs": 10}, "num_runs must be an integer >= 100"),
        ({"epsilon": 1e-9}, "must need at most 2\\^53 users"),
        ({"epsilon": 1e-200, "trust": "central"}, "must need at most 2\\^53 users"),
    ],
)
def test_wrong_plans_are_refused_by_name(changed, sentence):
    with pytest.raises(ValueError, match=sentence):
        jaxdp.abtest(**{**COINS, "epsilon": 1.0, "trust": "local", **changed})


def test_a_lift_in_percent_is_named():
    with pytest.warns(UserWarning, match=r"lift is relative to the rate, not in percent: 20 means \+2,000%"):
        jaxdp.abtest(rate=0.02, lift=20, epsilon=1.0, trust="local", num_runs=100)


def test_users_and_kinds_are_checked(plan):
    for ask in (plan.power_at, plan.smallest_lift, plan.least_epsilon):
        for users in (1, 1e308):
            with pytest.raises(ValueError, match=r"users must be in \[2, 2\^53\]"):
                ask(users)
    with pytest.raises(ValueError, match="kind must be one of fixed, anytime"):
        plan.test("sequential")


def test_the_table_fits_and_the_picture_has_both_trust_models(plan):
    assert max(map(len, str(plan).splitlines())) <= 100
    longer = plan._replace(rate=0.012345, lift=0.0123456, epsilon=0.123456, power=0.81234)
    assert max(map(len, str(longer).splitlines())) <= 100
    assert "power of 0." in str(plan)
    labels = [line.get_label() for line in plan.plot().axes[0].lines]
    assert (
        sum(label.startswith("local") for label in labels) == sum(label.startswith("central") for label in labels) == 3
    )


def test_the_limit_of_users_counts_both_arms():
    """Checks 2^52 to 2^53 users of each arm, and a picture that reaches beyond the limit."""
    users = [fixed_users(Setting(0.5, lift, math.inf, "local", 0.8, 0.05)) for lift in (1e-7, 6e-8)]
    assert users[1] == pytest.approx(users[0] / 0.36)
    assert users[1] < 2**53
    with pytest.raises(ValueError, match=r"at most 2\^53 users"):
        fixed_users(Setting(0.5, 5e-8, math.inf, "local", 0.8, 0.05))
    setting = Setting(0.5, 0.01, 1.2e-5, "central", 0.8, 0.05)
    needs = Needs(0, Stopping(1e9, 0.0, 0.0, 0.0, 0.0), 0.0)
    line = figure(setting, (needs, needs)).axes[0].lines[0]
    assert line.get_label() == "local, looks once"
    assert 0 < np.isnan(line.get_ydata()).sum() < len(line.get_ydata())


def entropy_of_noisy_counts(first, second, users, epsilon):
    """Returns the exact relative entropy of counts with two-sided geometric noise, for users with either rate."""
    largest = users + math.ceil(60 / epsilon)  # far enough for one mean of counts to reach the other
    steps = np.arange(-largest, largest + 1)
    noise = np.exp(-epsilon * np.abs(steps))
    bits = [stats.binom.pmf(np.arange(users + 1), users, rate) for rate in (first, second)]
    released, others = (np.convolve(chances, noise / noise.sum()) for chances in bits)
    held = released > 1e-100  # others underflow in logarithms
    return float(np.sum(released[held] * np.log(released[held] / others[held])))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_no_private_count_tells_more_than_the_curators_bound(epsilon):
    """Checks one user and many, whose count has nearly all of the information; and a bound of a quarter of epsilon."""
    shares = []
    for first, second in ((0.1, 0.9), (0.5, 0.4), (0.02, 0.05), (0.99, 0.7)):
        for users in (1, 5, 200):
            entropy = entropy_of_noisy_counts(first, second, users, epsilon)
            assert entropy <= users * private_divergence(first, second, epsilon) * (1 + 1e-9)
            shares.append(entropy / users / private_divergence(first, second, epsilon / 4))
    assert max(shares) > 1.05
