"""Exact laws of entries whose outputs are few, written from the definitions of the mechanisms.

No law here calls the code of the mechanism that it is the law of. Each is a function (params, data, **sizes) of an
entry's params and of one of its neighbours, on the host in float64, and returns probabilities by `outcome` of the
output; of a learner by `outcome` of what is `seen` of its transcript.
"""

import math
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from jaxdp import bandits, dueling
from jaxdp.audit import Users, by_pair
from jaxdp.audit.enumeration import Told, Values, outcome, transcript_law
from jaxdp.audit.exact import Law
from jaxdp.core import Learner, State
from jaxdp.numerics.fixed_point import UNITS

REACH = 45.0  # scales of noise beyond which nothing is integrated: exp(-45) of it is there


def label_law(params: Any, data: Any, *, num_labels: int) -> Law:
    """Of randomized response: the label, clipped to [0, K), is e^epsilon times as likely as any other."""
    label, odds = min(max(int(data), 0), num_labels - 1), math.exp(-_epsilon(params))
    weights = [1.0 if report == label else odds for report in range(num_labels)]
    return dict(enumerate(np.divide(weights, math.fsum(weights)).tolist()))


def sign_law(params: Any, data: Any) -> Law:
    """Of a random sign whose mean is the number, in [-1, 1], times (e^epsilon - 1) / (e^epsilon + 1)."""
    return dict(zip((1, -1), _ends((float(data) + 1) / 2, _epsilon(params)), strict=True))


def scalar_law(params: Any, data: Any) -> Law:
    """Of one of the two numbers c widths from the centre of an interval, whose mean is the clipped number.

    c is (e^epsilon + 1) / (2 (e^epsilon - 1)), so that the likelier end of two numbers at the edges is e^epsilon times
    as likely as the other.
    """
    low, high = float(params.low), float(params.high)
    value = _clipped(float(data), low, high)
    centre, reach = (low + high) / 2, (high - low) / (2 * math.tanh(_epsilon(params) / 2))
    upper, lower = _ends((value - low) / (high - low), _epsilon(params))
    return {outcome(np.asarray(centre + reach)): upper, outcome(np.asarray(centre - reach)): lower}


def noisy_max_law(params: Any, data: Any, *, noise: str) -> Law:
    """Of the index of the largest of noisy scores of sensitivity 1.

    "gumbel" is the exponential mechanism, of probabilities in proportion to exp(epsilon score / 2). "exponential" is
    permute-and-flip: scores are visited in random order, and the first is taken that a coin of bias
    exp(epsilon (score - largest) / 2) accepts. "laplace" is an integral over the winner's noise.
    """
    scores = np.asarray(data, np.float64) * _epsilon(params) / 2
    if noise == "laplace":
        return dict(enumerate(largest_with_laplace(scores)))
    if noise == "gumbel":
        return dict(enumerate(softmax(scores).tolist()))
    accepted = np.exp(scores - scores.max())
    # Each score's place in the order is uniform in [0, 1]. If j has place t, another comes earlier and is accepted with
    # probability t accepted[i]. Gauss's formula is exact for the polynomial in t.
    nodes, weights = np.polynomial.legendre.leggauss(len(scores) // 2 + 1)
    turned_down = 1 - np.outer((nodes + 1) / 2, accepted)
    none_before = [np.delete(turned_down, j, axis=1).prod(axis=1) @ weights / 2 for j in range(len(scores))]
    return dict(enumerate((accepted * none_before).tolist()))


def above_threshold_law(params: Any, data: Any, *, split: str) -> Law:
    """Of the index of the first noisy query above the noisy threshold 1/2; the number of queries if none is.

    Given the threshold's noise the queries are independent; an integral over it is the law.
    """
    queries, epsilon = np.asarray(data, np.float64), _epsilon(params)
    first = epsilon / 2 if split == "even" else epsilon / (1 + 2 ** (2 / 3))
    threshold_scale, query_scale = 1 / first, 2 / (epsilon - first)

    def conditional(threshold: np.ndarray) -> np.ndarray:
        behind = (threshold[:, None] - queries) / query_scale
        before = np.cumprod(_laplace_cdf(behind), axis=1)
        reached = np.concatenate([np.ones_like(before[:, :1]), before], axis=1)
        return reached * np.concatenate([_laplace_cdf(-behind), np.ones_like(before[:, :1])], axis=1)

    kinks = np.concatenate([[0.5], queries])
    threshold, weights = _quadrature(kinks, min(threshold_scale, query_scale), REACH * threshold_scale)
    density = np.exp(-np.abs(threshold - 0.5) / threshold_scale) / (2 * threshold_scale)
    return dict(enumerate(((weights * density) @ conditional(threshold)).tolist()))


def largest_with_laplace(scores: np.ndarray) -> list[float]:
    """The probability of each score to be the largest after Laplace noise of scale 1, which each gets."""
    x, weights = _quadrature(scores, 1.0, REACH)
    behind = x[:, None] - scores
    density, below = np.exp(-np.abs(behind)) / 2, _laplace_cdf(behind)
    return [float((weights * density[:, j]) @ np.delete(below, j, axis=1).prod(axis=1)) for j in range(len(scores))]


def explore_then_commit_law(
    params: Any, data: Users, *, num_arms: int, explore_rounds: int, rewards: str = "binary"
) -> Law:
    """Arms take turns; then the one whose total of rewards, clipped to [low, high], is largest after Laplace noise.

    Binary rewards are in {0, 1}, others rounded to units of their range. The noise has scale (high - low) / epsilon.
    """
    learner = bandits.explore_then_commit(num_arms=num_arms, explore_rounds=explore_rounds, rewards=rewards)
    is_binary = rewards == "binary"
    low, high = (0.0, 1.0) if is_binary else (float(params.low), float(params.high))

    def commits(params: Any, state: State, report: Any) -> Values | None:
        if state.public.round + 1 != explore_rounds:
            return None
        arm, reward = report
        share = (_clipped(float(reward), low, high) - low) / (high - low)
        is_played, sums = np.arange(num_arms) == arm, state.private.totals
        if is_binary:
            totals = sums + is_played * share
            ranges = totals
        else:
            units = np.asarray(sums.whole, np.int64) * UNITS + sums.part + is_played * round(share * UNITS)
            parts = {"whole": units // UNITS, "part": units % UNITS}
            totals = sums._replace(**{name: part.astype(sums.whole.dtype) for name, part in parts.items()})
            ranges = units / UNITS
        chances = largest_with_laplace(ranges * _epsilon(params))
        private = state.private._replace(totals=totals)
        committed = [state.public._replace(round=state.public.round + 1, best_arm=best) for best in range(num_arms)]
        return [(State(private, public), chance) for public, chance in zip(committed, chances, strict=True)]

    claim = learner.guarantee(epsilon=_epsilon(params))
    return transcript_law(learner, params, data, claim=claim, update_law=commits)


def ebs_local_law(params: Any, data: Users, *, num_arms: int, horizon: int) -> Law:
    """Of the report on a duel of the least played active arm with any active one."""

    def duels(params: Any, public: Any, context: None) -> Values:
        del params, context
        active = np.flatnonzero(public.active)
        played = public.plays[np.ix_(active, active)].sum(axis=1)
        seldom = active[played == played.min()]
        chance = 1 / (len(seldom) * len(active))
        return [(np.asarray([left, right]), chance) for left in seldom for right in active]

    return _report_law(dueling.ebs_local(num_arms=num_arms, horizon=horizon), params, data, duels)


def versatile_sparring_law(params: Any, data: Users, *, num_arms: int) -> Law:
    """Of the report on a duel for which each of two players has drawn an arm by weights of its own."""

    def duels(params: Any, public: Any, context: None) -> Values:
        del params, context
        weights = np.outer(*np.asarray(public.weights, np.float64).T)
        return [(np.asarray(pair), chance) for pair, chance in np.ndenumerate(weights / weights.sum())]

    return _report_law(dueling.versatile_sparring(num_arms=num_arms), params, data, duels)


def rucb_law(params: Any, data: Users, *, num_arms: int) -> Law:
    """Of the report on the first duel: any arm may be the champion, and any other its strongest rival."""
    chances = np.full((num_arms, num_arms), 1 / (num_arms - 1) / num_arms)
    np.fill_diagonal(chances, 0.0)
    return _report_law(dueling.rucb(num_arms=num_arms), params, data, _first_duel(chances))


def double_thompson_law(params: Any, data: Users, *, num_arms: int) -> Law:
    """Of the report on the first duel.

    Its left arm is any. Its right arm is the likeliest to beat the left one: by a chance that is uniform in [0, 1], or
    1/2 for the left arm itself.
    """
    itself = 0.5 ** (num_arms - 1)  # all others are below
    chances = np.full((num_arms, num_arms), (1 - itself) / (num_arms - 1) / num_arms)
    np.fill_diagonal(chances, itself / num_arms)
    return _report_law(dueling.double_thompson(num_arms=num_arms), params, data, _first_duel(chances))


def _first_duel(chances: np.ndarray) -> Told:
    """The law of the pair that is played first, by a matrix of chances."""

    def duels(params: Any, public: Any, context: None) -> Values:
        del params, context
        if public.round > 0:
            raise ValueError(f"data must have 1 round, of which the law is known, got round {public.round + 1}")
        return [(np.asarray(pair), chance) for pair, chance in np.ndenumerate(chances)]

    return duels


def _report_law(learner: Learner, params: Any, data: Users, duels: Told) -> Law:
    """Of what is seen of the last user of a local learner: a pair of arms, and the randomized outcome of its duel."""

    def reports(params: Any, public: Any, context: None, action: np.ndarray, won: np.ndarray) -> Values:
        del public, context
        return [((action, told), chance) for told, chance in label_law(params, won, num_labels=2).items()]

    claim, last = learner.guarantee(epsilon=_epsilon(params)), len(data.answers) - 1
    return transcript_law(
        learner, params, data, claim=claim, changed=last, answer=by_pair, act_law=duels, report_law=reports
    )


def _epsilon(params: Any) -> float:
    return float(getattr(params, "epsilon", params))


def _ends(share: float, epsilon: float) -> tuple[float, float]:
    """Probabilities of the upper and of the lower end, for a number at this share of the way up; each is precise.

    At an end that end is e^epsilon times as likely as the other; in between, the mean is a straight line.
    """
    likely, unlikely = float(expit(epsilon)), float(expit(-epsilon))
    return share * likely + (1 - share) * unlikely, share * unlikely + (1 - share) * likely


def _clipped(value: float, low: float, high: float) -> float:
    return min(max(value, low), high) if value == value else low  # NaN is low


def _laplace_cdf(x: np.ndarray) -> np.ndarray:
    """Of scale 1."""
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x < 0, tail, 1 - tail)


def _quadrature(kinks: np.ndarray, unit: float, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights of an integral of what is smooth between kinks, and nothing far from all of them.

    Args:
        kinks: [num_kinks] float.
        unit: > 0, over which what is integrated changes by a small factor.
        reach: how far from a kink it matters.

    Returns:
        (places, weights), each [num_places] float: Gauss's formula on intervals no longer than a unit.
    """
    offsets = np.arange(-math.ceil(reach / unit), math.ceil(reach / unit) + 1) * unit
    edges = np.unique(np.add.outer(kinks, offsets))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    widths = np.diff(edges)
    return (edges[:-1, None] + np.outer(widths, (nodes + 1) / 2)).ravel(), np.outer(widths, weights / 2).ravel()
