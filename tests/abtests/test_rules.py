"""Rules evaluate reports, counts and releases as planned, and refuse data that they cannot evaluate."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp.abtests import AnytimeCentral, AnytimeLocal, FixedTest


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
    control, treatment = reports((0.5, 0.7), (4_000, 6_000))
    verdict = local.test("anytime").evaluate(control, treatment)
    assert verdict.decision == "treatment is better"
    assert verdict.p_value < 0.05
    assert verdict.users + verdict.waiting == 10_000
    assert verdict.stopped_at is not None
    assert verdict.stopped_at <= verdict.users <= 8_000
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
    with pytest.raises(ValueError, match="treatment must be an array"):
        rule.evaluate([0, 1], [])
    with pytest.raises(ValueError, match="must have one shape"):
        rule.evaluate_counts([2, 2], [1], [1, 1])
    with pytest.raises(ValueError, match="sizes must be whole numbers >= 1"):
        rule.evaluate_counts([0], [0], [0])
    with pytest.raises(ValueError, match="treatment must be whole numbers in"):
        rule.evaluate_counts([2], [1], [3])
    with pytest.raises(ValueError, match=r"leads must be whole numbers, got 0\.5"):
        central.test("anytime").evaluate([0.5], [1])
    with pytest.raises(ValueError, match="leads and discordant must have one shape"):
        central.test("anytime").evaluate([1, 2], [1])
    with pytest.raises(ValueError, match="users must have two entries"):
        local.test("fixed").evaluate([10], [5])
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
        warnings.filterwarnings("ignore", message="the fixed test looks once")
        evaluate([780, 2230])  # within five standard errors of the limits
