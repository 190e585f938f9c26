"""Rules evaluate reports, counts and releases as planned, and refuse data that they cannot evaluate."""

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import jaxdp
from jaxdp.abtests import AnytimeCentral, AnytimeLocal, FixedTest
from jaxdp.abtests._doubts import warn_of_split
from jaxdp.abtests._effects import anytime_width, effect, fixed_width
from jaxdp.abtests._fixed import Setting, count_noise_variance, fixed_users
from jaxdp.abtests._rules import check_bits
from jaxdp.abtests._schedule import Schedule
from jaxdp.abtests._simulation import geometric_noise


def plan(trust="local", epsilon=1.0):
    return jaxdp.abtest(rate=0.5, lift=0.2, epsilon=epsilon, trust=trust, num_runs=100)


@pytest.fixture(scope="module")
def local():
    return plan()


@pytest.fixture(scope="module")
def central():
    return plan("central")


def reports(rates, users, epsilon=1.0, seed=0):
    rng = np.random.default_rng(seed)
    flip = 0.0 if math.isinf(epsilon) else 1 / (1 + math.exp(epsilon))
    return [((rng.random(n) < rate) ^ (rng.random(n) < flip)).astype(int) for rate, n in zip(rates, users, strict=True)]


def test_a_lift_is_shown_and_arms_of_unequal_size_wait(local):
    control, treatment = reports((0.5, 0.7), (4_950, 5_050))
    verdict = local.test("anytime").evaluate(control, treatment)
    assert verdict.decision == "treatment is better"
    assert verdict.p_value < 0.05
    assert verdict.users + verdict.waiting == 10_000
    assert verdict.stopped_at is not None
    assert verdict.stopped_at <= verdict.users <= 9_900
    assert verdict.rates == pytest.approx((0.5, 0.7), abs=0.1)
    swapped = local.test("anytime").evaluate(treatment, control)
    assert swapped.decision == "control is better"
    assert swapped.p_value == pytest.approx(verdict.p_value)


def test_equal_arms_stay_undecided(local):
    verdict = local.test("anytime").evaluate(*reports((0.5, 0.5), (3_000, 3_000)))
    assert verdict.decision == "undecided"
    assert verdict.stopped_at is None


def test_looks_are_batches_of_the_same_reports(local):
    """Checks by hand: ones after 1, 2, ..., 200 pairs, and after 202, ... pairs with about 1% more each."""
    control, treatment = reports((0.5, 0.6), (500, 500))
    ends = list(range(101))
    while ends[-1] + ends[-1] // 100 <= 500:
        ends.append(ends[-1] + ends[-1] // 100)
    sums = [np.diff(np.concatenate([[0], np.cumsum(arm)])[ends]) for arm in (control, treatment)]
    rule = local.test("anytime")
    by_counts = rule.evaluate_counts(np.diff(ends), *sums)
    assert rule.evaluate(control, treatment) == by_counts._replace(waiting=1_000 - 2 * ends[-1])


def test_counts_of_the_test_that_looks_once(local):
    users = local.needs.fixed // 2
    ones = [round(0.5 * users), round(0.55 * users)]
    verdict = local.test("fixed").evaluate([users, users], ones)
    pooled = sum(ones) / (2 * users)
    z = (ones[1] - ones[0]) / math.sqrt(2 * users * pooled * (1 - pooled))
    assert verdict.p_value == pytest.approx(2 * stats.norm.sf(z))


def test_noisy_counts_have_a_larger_variance(central):
    users = central.needs.fixed // 2
    ones = [0.5 * users + 0.5, 0.58 * users - 3]
    pooled = sum(ones) / (2 * users)
    noise = 2 * 2 * math.exp(-1) / (1 - math.exp(-1)) ** 2
    z = (ones[1] - ones[0]) / math.sqrt(2 * users * pooled * (1 - pooled) + noise)
    assert central.test("fixed").evaluate([users, users], ones).p_value == pytest.approx(2 * stats.norm.sf(z))


def test_releases_of_a_curator(central):
    rule = central.test("anytime")
    bits = reports((0.4, 0.7), (4_000, 4_200), math.inf)
    with pytest.warns(UserWarning, match="simulation: this noise protects nobody"):
        leads, discordant = rule.simulate_releases(*bits, seed=3)
    verdict = rule.evaluate(leads, discordant)
    assert verdict.decision == "treatment is better"
    assert verdict.users == 2 * rule.looks(4_000)[-1]
    assert len(leads) == len(rule.looks(4_000))
    assert rule.lead_epsilon + rule.discordant_epsilon == pytest.approx(1.0)
    # Undo the noise: released sums differ from the exact ones by a few scales.
    lead = bits[1][:4_000] - bits[0]
    ends = rule.looks(4_000)
    assert abs(leads.sum() - lead[: ends[-1]].sum()) < 10 * math.sqrt(len(ends)) / rule.lead_epsilon
    assert abs(discordant.sum() - np.abs(lead[: ends[-1]]).sum()) < 10 * math.sqrt(len(ends)) / rule.discordant_epsilon


def test_kinds_of_rules(local, central):
    assert isinstance(local.test("fixed"), FixedTest)
    assert isinstance(local.test("anytime"), AnytimeLocal)
    assert isinstance(central.test("anytime"), AnytimeCentral)
    assert isinstance(plan("central", math.inf).test("anytime"), AnytimeLocal)


def test_another_number_of_users_is_warned_of(local):
    with pytest.warns(UserWarning, match="the fixed test looks once, at the planned"):
        local.test("fixed").evaluate([50, 50], [20, 25])


def test_wrong_data_are_refused(local, central):
    rule = local.test("anytime")
    for wrong in ([0, 1, 2], [0.5], [True, 3]):
        with pytest.raises(ValueError, match="control must be 0 or 1"):
            rule.evaluate(wrong, [0, 1])
    masked = np.ma.array([0, 1, 1], mask=[False, True, True])
    for wrong, message in (
        (["a"], "numbers"),
        (None, "numbers"),
        ([[0], [0, 1]], "an array"),
        (masked, "no masked entries, got 2 of them"),
    ):
        with pytest.raises(ValueError, match=f"control must (be|have) {message}"):
            rule.evaluate(wrong, [0, 1])
    with pytest.raises(ValueError, match="treatment must be an array"):
        rule.evaluate([0, 1], [])
    with pytest.raises(ValueError, match="must have one shape"):
        rule.evaluate_counts([2, 2], [1], [1, 1])
    with pytest.raises(ValueError, match="sizes must be integers >= 1"):
        rule.evaluate_counts([0], [0], [0])
    with pytest.raises(ValueError, match="treatment must be integers in"):
        rule.evaluate_counts([2], [1], [3])
    with pytest.raises(ValueError, match=r"leads must be integers, got 0\.5"):
        central.test("anytime").evaluate([0.5], [1])
    with pytest.raises(ValueError, match=r"the sum of leads must be finite, got inf at index \(1,\)"):
        central.test("anytime").evaluate([1e308, 1e308], [1, 1])
    with pytest.raises(ValueError, match=r"sizes must have a sum of at most 2\^53, got 1e\+300"):
        rule.evaluate_counts([1e300], [1e299], [1e298])
    with pytest.raises(ValueError, match="leads and discordant must have one shape"):
        central.test("anytime").evaluate([1, 2], [1])
    for wrong in ([10], 10):
        with pytest.raises(ValueError, match="users must have two entries"):
            local.test("fixed").evaluate(wrong, [5, 5])
    with pytest.raises(ValueError, match="ones must have two entries"):
        local.test("fixed").evaluate([10, 10], 5)
    with pytest.raises(ValueError, match="ones must be in"):
        local.test("fixed").evaluate([10, 10], [5, 11])
    with pytest.raises(ValueError, match=r"control and treatment must have .* users each"):
        central.test("anytime").simulate_releases([0, 1], [1, 1], seed=0)


@pytest.mark.parametrize("kind", ["fixed", "anytime"])
def test_bits_that_no_report_can_have_are_named(kind):
    """Checks the limits at epsilon = 1: 26.9% to 73.1% of randomized responses are ones."""
    rule = plan().test(kind)

    def evaluate(ones):
        if isinstance(rule, FixedTest):
            return rule.evaluate([3000, 3000], ones)
        assert isinstance(rule, AnytimeLocal)
        return rule.evaluate_counts([3000], ones[:1], ones[1:])

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the fixed test looks once")
        with pytest.warns(
            UserWarning, match=r"the reports of control is 0.02, but .* \[0.269, 0.731\]: these bits are"
        ):
            evaluate([60, 900])
        with pytest.warns(UserWarning, match=r"the reports of treatment is 0.98"):
            evaluate([900, 2940])
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="the fixed test looks once|the estimated rate of")
        evaluate([780, 2230])  # within five standard errors of the limits


def test_exchanged_bits_are_named(local):
    """Warns of .98 where the plan says .02; stays silent for equal arms at a planned rate, and for half the rate."""
    low = jaxdp.abtest(rate=0.02, lift=0.1, epsilon=1.0, trust="local", num_runs=100)
    silent = [(low, (0.02, 0.022)), (low, (0.01, 0.01)), (low, (0.04, 0.05)), (local, (0.5, 0.5)), (local, (0.6, 0.6))]
    for kind in ("fixed", "anytime"):

        def evaluate(plan, rates, kind=kind):
            users = 200_000
            ones = [round(users * (0.5 + (rate - 0.5) * math.tanh(0.5))) for rate in rates]
            rule = plan.test(kind)
            if isinstance(rule, FixedTest):
                return rule._replace(planned_users=2 * users).evaluate([users, users], ones)
            assert isinstance(rule, AnytimeLocal)
            return rule.evaluate_counts([users], ones[:1], ones[1:])

        with pytest.warns(UserWarning, match=r"rate of control is 0.98, but the plan says 0.02: perhaps 0 and 1 are"):
            evaluate(low, (0.98, 0.978))
        with pytest.warns(UserWarning, match=r"rate of treatment is 0.978, but the plan says 0.022"):
            evaluate(low, (0.02, 0.978))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for plan_of, rates in silent:
                evaluate(plan_of, rates)


def test_rates_far_from_the_plan_are_named():
    """Warns of a rate of .05 where the plan says .3, as true bits evaluated as reports give; not of 11 users."""
    rule = jaxdp.abtest(rate=0.3, lift=0.4, epsilon=1.0, trust="local", num_runs=100).test("anytime")
    assert isinstance(rule, AnytimeLocal)
    with pytest.warns(UserWarning, match="rate of control is 0.0.*, but the plan says 0.3: perhaps the bits are not"):
        rule.evaluate_counts([2000], [600], [840])
    few = jaxdp.abtest(rate=0.05, lift=0.4, epsilon=1.0, trust="local", num_runs=100).test("anytime")
    assert isinstance(few, AnytimeLocal)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few.evaluate_counts([11], [6], [5])


def test_sorted_reports_are_named(local):
    control, treatment = reports((0.5, 0.6), (1_000, 1_000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        local.test("anytime").evaluate(control, treatment)
        half = np.arange(1_000) < 500
        drifting = np.where(half, *reports((0.1, 0.9), (1_000, 1_000)))
        local.test("anytime").evaluate(drifting, drifting[::-1])
    with pytest.warns(UserWarning, match="reports of control change 1 times between 0 and 1"):
        local.test("anytime").evaluate(np.sort(control), treatment)


def test_releases_that_no_bits_give_are_named(central):
    rule = central.test("anytime")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rule.evaluate(leads=[31, 12], discordant=[133, 27])
    for leads, discordant in (([310], [13]), ([10**6], [118]), ([0], [-200]), ([0], [10_000])):
        with pytest.warns(UserWarning, match="which no bits can give with this noise"):
            rule.evaluate(leads=leads, discordant=discordant)


def test_ends_of_intervals_enclose_the_estimate(local):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        difference = local.test("fixed").evaluate([3000, 3000], [0, 3000]).effect.difference
    assert difference.low <= difference.estimate <= difference.high


def test_arms_of_unequal_size_are_named(local, central):
    """Checks the exact binomial test at both sides of p = 1e-4; the arms' sizes are public."""
    size = 10_000
    most = next(extra for extra in range(size) if 2 * stats.binom.cdf(size - extra, 2 * size, 0.5) < 1e-4)
    rule, central_rule = local.test("anytime"), central.test("anytime")
    bits = reports((0.5, 0.6), (size - most, size + most))
    with pytest.warns(UserWarning, match="which a fair coin gives with p = 9"):
        rule.evaluate(*bits)
    with pytest.warns(UserWarning, match="which a fair coin gives with p = 9"):
        central_rule.simulate_releases(*bits, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rule.evaluate(*reports((0.5, 0.6), (size - most + 1, size + most - 1)))


@pytest.mark.parametrize("users", [1_000, 2**31, 2**40])
def test_arms_of_any_unequal_size_are_named(users):
    extra = 5 * math.isqrt(users)
    with pytest.warns(UserWarning, match="which a fair coin gives with p = "):
        warn_of_split([users // 2 - extra, users // 2 + extra])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_split([users // 2, users - users // 2])


def test_running_totals_are_named(local):
    """Warns of totals of days, and not of days, nor of batches that grow by a tenth."""
    rng, rule = np.random.default_rng(4), local.test("anytime")
    for sizes, runs in (([2000] * 7, 50), ([int(2000 * 1.1**day) for day in range(7)], 50)):
        named = 0
        for _ in range(runs):
            ones = [rng.binomial(sizes, rate) for rate in (0.5, 0.55)]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                rule.evaluate_counts(sizes, *ones)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                rule.evaluate_counts(np.cumsum(sizes), *map(np.cumsum, ones))
            named += any("as running totals do (sizes 2000, 4" in str(one.message) for one in caught)
        assert named >= 0.9 * runs


COVERED = [("local", 1.0, 0.02), ("local", math.inf, 0.02), ("central", 0.1, 0.5), ("central", 1.0, 0.02)]


@pytest.mark.parametrize(("trust", "epsilon", "rate"), COVERED)
def test_intervals_cover(trust, epsilon, rate):
    """Checks 2,000 draws of counts: 95% within 4 standard errors; intervals of the reports' rates miss the users'."""
    setting, rng, runs = Setting(rate, 0.3, epsilon, trust, 0.8, 0.05), np.random.default_rng(8), 2_000
    users, noise = fixed_users(setting) // 2, 0.0
    counts = [rng.binomial(users, one, runs).astype(float) for one in setting.rates]
    if trust == "central":
        counts = [ones + geometric_noise(epsilon, runs, rng) for ones in counts]
        noise = count_noise_variance(epsilon) / 2
    truth = (*setting.true_rates, 0.3 * rate, 0.3)

    def coverage(noise_variance, width):
        effects = [effect(setting, (users, users), pair, width, noise_variance) for pair in zip(*counts, strict=True)]
        return np.mean(
            [[one.low <= true <= one.high for one, true in zip(each, truth, strict=True)] for each in effects], 0
        )

    slack = 4 * math.sqrt(0.05 * 0.95 / runs)
    assert np.abs(coverage(noise, fixed_width(setting)) - 0.95).max() < slack
    assert coverage(noise, 1.6).max() < 0.95 - slack, "planted: 1.6 standard errors, for 89%"
    if epsilon == 0.1:
        assert coverage(0.0, fixed_width(setting)).max() < 0.95 - slack, "planted: the curator's noise left out"


def test_intervals_of_looks_hold_at_every_look():
    """Watches the difference's interval from 100 pairs to the planned users: it misses in at most 5% of runs.

    Planted: the interval of one look, watched likewise.
    """
    setting, rng, runs = Setting(0.5, 0.2, 1.0, "local", 0.8, 0.05), np.random.default_rng(9), 300
    looks = np.unique(np.geomspace(100, fixed_users(setting) / 2, 25).astype(int))
    missed = {"anytime": 0, "fixed": 0}
    for _ in range(runs):
        ones = [np.cumsum(rng.random(looks[-1]) < rate)[looks - 1] for rate in setting.rates]
        for kind, width in (("anytime", anytime_width), ("fixed", lambda planned, _: fixed_width(planned))):
            intervals = [
                effect(setting, (n, n), (a, b), width(setting, n)).difference
                for n, a, b in zip(looks.tolist(), *map(np.ndarray.tolist, ones), strict=True)
            ]
            missed[kind] += any(not one.low <= 0.1 <= one.high for one in intervals)
    assert missed["anytime"] <= 0.05 * runs
    assert missed["fixed"] > 0.1 * runs


def test_the_difference_of_a_curators_pairs_is_covered(central):
    rule, runs = central.test("anytime"), 200
    covered = 0
    for seed in range(runs):
        bits = reports((0.5, 0.6), (2_000, 2_000), math.inf, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict = rule.evaluate(*rule.simulate_releases(*bits, seed=seed))
        assert math.isnan(verdict.effect.lift.estimate)
        covered += verdict.effect.difference.low <= 0.1 <= verdict.effect.difference.high
    assert covered >= 0.97 * runs  # wider than for one look


def test_a_look_without_a_leading_arm_decides_nothing():
    """Checks noise that makes D negative: its e-value is 23 at the lead 0, and the next look decides."""
    rule = AnytimeCentral(Setting(0.5, 0.5, 1.0, "central", 0.8, 0.05), Schedule(100, 0.1))
    verdict = rule.evaluate([0], [-30])
    assert (verdict.decision, verdict.p_value, verdict.stopped_at) == ("undecided", 1.0, None)
    verdict = rule.evaluate([0, 1], [-30, 0])
    assert verdict.decision == ("treatment is better" if verdict.p_value <= 0.05 else "undecided")
    assert (verdict.stopped_at is None) == (verdict.decision == "undecided")


@pytest.mark.filterwarnings("ignore:epoch 1 of 100 pairs:UserWarning")
def test_extreme_numbers_do_not_overflow():
    central = AnytimeCentral(Setting(0.5, 0.5, 1.0, "central", 0.8, 0.05), Schedule(100, 0.1))
    assert central.evaluate([1], [10**9]).p_value == 1
    assert central.evaluate([1e300], [1e300]).effect.difference == (1, 1, 1)
    once = FixedTest(central.setting, 800)
    assert once.evaluate([400, 400], [1e300, -1e300]).effect == once.evaluate([400, 400], [4e5, -4e5]).effect
    local = FixedTest(Setting(0.5, 0.1, 1000.0, "local", 0.8, 0.05), 3000)
    without = FixedTest(Setting(0.5, 0.1, math.inf, "local", 0.8, 0.05), 3000)
    assert local.evaluate([1500, 1500], [700, 900]) == without.evaluate([1500, 1500], [700, 900])
    assert count_noise_variance(1e-200) == math.inf


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float16, np.float32])
def test_sums_of_bits_are_exact_in_any_dtype(dtype):
    """Checks the sensitivity of a curator's sums; float16 would skip sums above 2048, and overflow above 65504."""
    ones = np.ones(70_001, dtype)
    fewer = ones.copy()
    fewer[0] = 0
    assert [int(check_bits("control", bits).sum()) for bits in (ones, fewer)] == [70_001, 70_000]


def test_counts_of_unsigned_integers(local):
    """Checks that differences are signed; the difference of unsigned integers would be 2^32 - 200."""
    counts = [[1000], [600], [400]]
    plain = local.test("anytime").evaluate_counts(*counts)
    assert plain.decision == "control is better"
    assert local.test("anytime").evaluate_counts(*np.asarray(counts, np.uint32)) == plain


def test_series_with_other_labels_are_refused():
    rule: Any = jaxdp.abtest(rate=0.5, lift=0.2, epsilon=1.0, trust="local").test("fixed")
    users = pd.Series({"a": 1000, "b": 1000})
    with pytest.raises(ValueError, match="ones must have the labels of users in the same order"):
        rule.evaluate(users=users, ones=pd.Series({"b": 900, "a": 500}))
    assert rule.evaluate(users=users, ones=pd.Series({"a": 500, "b": 600})).p_value < 0.01
