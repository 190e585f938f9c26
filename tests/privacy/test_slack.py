"""Docstrings' proofs about claims that audits do not reach, checked by independent numbers."""

import math

import jax
import numpy as np
import pytest
import scipy.stats

from jaxdp import registry
from tests.algorithms.experts import golden_tracking as exact
from tests.algorithms.experts.limited_updates_oblivious.golden import limited_updates_oblivious_distribution
from tests.algorithms.experts.svt_restarts.golden import Thresholds, svt_restarts_distribution

PANELS = 600


# ---- selections by the exponential mechanism -------------------------------------------------------------------------
def check_selections(rate, drawn_at):
    """Checks that no transcript of selections at a rate spends more than its probability allows.

    Returns the closest.
    """
    rng, closest = np.random.default_rng(0), 0.0
    for _ in range(60):
        rounds, num_experts = int(rng.integers(2, 5)), int(rng.integers(2, 5))
        losses = rng.integers(0, 2, (rounds, num_experts)).astype(float)
        other = losses.copy()
        losses[0, 0], losses[0, 1:], other[0, 0], other[0, 1:] = 1, 0, 0, 1
        distributions = [limited_updates_oblivious_distribution(each, drawn_at, 1) for each in (losses, other)]
        for seen, chance in distributions[0].items():
            low, high = sorted(
                (num_experts * chance, num_experts * distributions[1][seen])
            )  # the first one is drawn by a coin
            share = high ** (1 / (rounds - 1))
            allowed = (rounds - 1) * math.log(share + (1 - share) * math.exp(2 * rate))
            assert math.log(high / low) <= allowed + 1e-9
            closest = max(closest, math.log(high / low) / allowed)
    return closest


def test_selections_spend_what_their_probability_allows():
    assert check_selections(0.7, 0.7) > 0.999
    with pytest.raises(AssertionError):
        check_selections(0.7, 1.4)  # planted: half the noise


def test_two_selections_of_one_expert_of_ten():
    """Checks the registry's example, as the docstring of `limited_updates_oblivious` has it."""
    entry = registry.LEARNERS["limited_updates_oblivious"]
    params = entry.make().params(**entry.values)
    assert (params.learning_rate, params.batch) == (1, 2)
    first, second = (np.clip(users.answers, 0, 1) for users in entry.make_neighbours())
    chances = [
        math.prod(exact.exponential_mechanism(losses[:rounds].sum(axis=0), 1.0)[0] for rounds in (2, 4))
        for losses in (first, second)
    ]
    assert chances[1] == pytest.approx(0.01)
    assert math.log(chances[1] / chances[0]) == pytest.approx(2 * math.log(0.1 + 0.9 * math.e**2))
    assert math.log(chances[1] / chances[0]) / 4 == pytest.approx(0.955, abs=5e-4)


# ---- runs of the sparse vector technique -----------------------------------------------------------------------------
def answered(questions, threshold_scale, question_scale, *, ends):
    """Returns the probability that all questions are below the threshold 0, or all except the last one, which is
    above.
    """
    places, weights = exact.laplace_grid(threshold_scale, panels=PANELS)
    noise = scipy.stats.laplace(scale=question_scale)
    gaps = places[:, None] - np.asarray(questions)
    logs = noise.logcdf(gaps)
    if ends:
        logs[:, -1] = noise.logsf(gaps[:, -1])
    return float(weights @ np.exp(logs.sum(axis=1)))


def spent(questions, moved, threshold_scale, question_scale, *, ends):
    return abs(
        math.log(answered(questions, threshold_scale, question_scale, ends=ends))
        - math.log(answered(moved, threshold_scale, question_scale, ends=ends))
    )


def restarts_cost(together):
    """Returns the largest share of a run's budget, 1, between questions that move together, or independently."""
    rng, worst = np.random.default_rng(0), 0.0
    for case in range(20):
        questions = rng.uniform(-20, 30, int(rng.integers(1, 9)))
        common = rng.choice([-1, 1, rng.uniform(-1, 1)])
        ends = common + rng.choice([-1, 1], len(questions)) if together else rng.choice([-2, 2], len(questions))
        worst = max(worst, spent(questions, questions + ends, 4.0, 8.0, ends=case % 2 == 0))
    # the limit: many questions far above the threshold rise by 2, and one far below it stays, or falls by as much
    limit = np.asarray([60.0] * 12 + [-200.0])
    rise = np.asarray([2.0] * 12 + [0.0 if together else -2.0])
    return max(worst, spent(limit, limit + rise, 4.0, 8.0, ends=True))


def test_a_run_of_restarts_spends_three_quarters_of_its_budget():
    assert 0.749 < restarts_cost(together=True) <= 0.75 + 1e-6
    assert restarts_cost(together=False) > 0.99  # planted: questions of sensitivity 2, as of any run


def restarts_question(losses, plays, thresholds):
    """Returns the largest regret of a window of rounds that ends now, to any expert, less the window's threshold."""
    regrets = losses[range(len(plays)), plays][:, None] - losses
    sums = np.cumsum(regrets[::-1], axis=0).max(axis=1)
    return float(np.max(sums - thresholds))


def check_moves(low, high):
    """Checks the move of a question where one round's losses are replaced.

    C is the change of that round's play's loss.
    """
    rng, ends = np.random.default_rng(0), []
    for _ in range(2000):
        rounds = int(rng.integers(1, 6))
        losses, plays = rng.integers(0, 2, (rounds, 3)).astype(float), rng.integers(0, 3, rounds)
        moved, place = losses.copy(), rng.integers(rounds)
        moved[place] = rng.choice([0, 1, rng.uniform()], 3)
        change = moved[place, plays[place]] - losses[place, plays[place]]
        thresholds = rng.uniform(0, 1, rounds)
        questions = [restarts_question(each, plays, thresholds) for each in (losses, moved)]
        by = questions[1] - questions[0]
        assert change + low - 1e-12 <= by <= change + high + 1e-12
        ends.append(by)
    return min(ends), max(ends)


def test_a_question_of_restarts_moves_with_its_play():
    assert check_moves(-1, 1) == pytest.approx((-2, 2))  # of `svt_restarts`: sensitivity 2, and not either way at once
    with pytest.raises(AssertionError):
        check_moves(-0.5, 0.5)  # planted: the paper's sensitivity of 1


def restarts_share(sensitivity):
    """Returns the largest share of epsilon that restarts spend, by the exact distribution of three rounds."""
    epsilon, worst = 4.0, 0.0
    for rest in ([[1, 0], [1, 0]], [[0, 1], [1, 0]], [[1, 0], [0, 0]]):
        for margin in (-9.0, -5.0):
            told = Thresholds(num_experts=2, horizon=3, epsilon=epsilon, failure_prob=0.5, margin=margin)
            distributions = [
                svt_restarts_distribution(np.asarray([first, *rest], float), epsilon, told, sensitivity=sensitivity)
                for first in ([1, 0], [0, 1])
            ]
            worst = max(
                worst, max(abs(math.log(distributions[0][seen] / distributions[1][seen])) for seen in distributions[0])
            )
    return worst / epsilon


def test_restarts_spend_seven_eighths_at_most():
    assert restarts_share(2.0) <= 7 / 8
    assert restarts_share(0.2) > 7 / 8  # planted: noise for a tenth of the sensitivity


def lazy_cost(far, level=2.0):
    """Returns the cost of a run of `svt_lazy` at level 2: four questions above the threshold are answered below,
    then one above.

    All questions are larger by 1 under the other neighbour.
    """
    questions = np.full(5, far)
    return spent(questions, questions + 1, 2 / level, 4 / level, ends=True)


def test_a_run_of_lazy_selections_spends_half_its_level_in_the_limit():
    costs = [lazy_cost(far) for far in (0.0, 1.0, 4.0, 12.0)]
    assert costs == sorted(costs)
    assert costs[-1] == pytest.approx(1, abs=1e-3)
    assert max(costs) <= 1 + 1e-6
    assert lazy_cost(12.0, level=4.0) > 1.9  # planted: half the noise


def test_lazy_weights_and_selections_are_told_by_their_examples():
    for name, share in (("lazy_weights_switching", 0.949), ("svt_lazy", 0.971), ("svt_restarts", 0.576)):
        target = registry.attacks([name])[name]
        assert target.distributions is not None
        first, second = target.distributions()
        ratios = [abs(math.log(first[seen] / second[seen])) for seen in first if first[seen] > 0 and second[seen] > 0]
        assert max(ratios) / target.guarantee.epsilon == pytest.approx(share, abs=6e-4)


# ---- elimination -----------------------------------------------------------------------------------------------------
RUNS = 100_000


def taken_back(attack, data):
    """Returns, for runs of the registry's example, the first left arm's first entry, and what was later subtracted from
    its sum.

    Only runs in which the right arm of its first duel is dropped and it stays.
    """
    keys = jax.random.split(jax.random.key(3), RUNS)
    seen = jax.tree.map(np.asarray, jax.jit(jax.vmap(attack.release, (0, None, None)))(keys, attack.params, data))
    public, runs = seen["public"], np.arange(RUNS)
    left, right = seen["action"][:, 0, 0], seen["action"][:, 0, 1]
    estimates = public.estimates[runs, :, 0, left]
    assert not public.dropped[:, 0].any()  # after one duel, so that the subtraction is in the third round
    happened = public.dropped[runs, 1, right] & public.active[runs, 1, left] & (left != right)
    return estimates[happened, 0], estimates[happened, 1] - estimates[happened, 2]


def both_exceed(x):
    """Returns the probability that the sum of two Laplace variables of scale 2 exceeds x."""
    places, weights = exact.laplace_grid(2.0, panels=PANELS)
    return float(weights @ scipy.stats.laplace(scale=2.0).sf(x - places))


def told_by_both(x):
    """Returns the cost out of epsilon = 1 where the first entry differs, and the sum of two noises exceeds x."""
    return 1 - math.log(1 + 1 / (2 * (2 + x / 2)))


@pytest.mark.parametrize("x", [1.0, 2.0, 5.5])
def test_the_sum_of_two_noises_spends_less_than_one(x):
    y = x / 2
    assert both_exceed(x) == pytest.approx((2 + y) * math.exp(-y) / 4, rel=1e-4)
    spent_by_sum = math.log(both_exceed(x) / both_exceed(x + 1))
    assert 0.5 + spent_by_sum == pytest.approx(told_by_both(x), abs=1e-4)
    alone = scipy.stats.laplace(scale=2.0)
    assert alone.logsf(x) - alone.logsf(x + 1) > spent_by_sum + 0.05  # planted: what one noise spends


def test_an_outcome_of_elimination_that_is_taken_back():
    """Gives entries noise of scale 2, at epsilon = 1; the next duel is won under either neighbour."""
    attack = registry.attacks(["ebs_elimination"])["ebs_elimination"].attacks["rounds"]
    runs = [taken_back(attack, data) for data in attack.neighbours]
    for x, share, rate in ((1.0, 0.82, 1 / 20), (5.5, 0.90, 1 / 100)):
        counts = [int(np.sum((first >= 1) & (taken >= x))) for first, taken in runs]
        error = math.sqrt(sum(1 / count for count in counts))
        assert told_by_both(x) == pytest.approx(share, abs=5e-3)
        assert math.log(counts[1] / counts[0]) == pytest.approx(share, abs=4 * error)
        assert counts[1] / RUNS == pytest.approx(rate, rel=0.1)
        if x == 1.0:
            assert 1 - math.log(counts[1] / counts[0]) > 4 * error  # planted: an entry that is seen alone spends all
