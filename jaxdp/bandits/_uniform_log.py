"""Tests whether logged arms were drawn uniformly, as replay assumes."""

import numpy as np
from scipy.special import chdtrc

# P-values below this refute uniform arms. So at most three in a million uniform logs are refuted if the chi-square
# approximation holds. It is poor for short logs with contexts that are zero for most arms: with 20 rounds, 1,000 arms,
# and a nonzero context of one arm only, about one uniform log in fifty is refuted.
REFUTED = 1e-6
_CHUNK = 2**14  # rounds that are processed at a time
_MOST_COLUMNS = 256  # maximum num_arms * dim for the test against all contexts, which is slow
_ROUNDS_PER_DEGREE = 10  # with fewer rounds per degree of freedom, sums over rounds may be far from normal


class NonuniformLogWarning(RuntimeWarning):
    """Warning that logged arms were not drawn uniformly, so that replay is biased."""


def nonuniformity(contexts: np.ndarray | None, actions: np.ndarray, num_arms: int) -> str | None:
    """Returns the p-value and name of the test with the smallest p-value if it refutes uniform arms; otherwise None.

    There are three tests. Pearson's test compares the numbers of rounds in which each arm was logged. The other two are
    score tests in logit models. In the conditional logit model, the odds of an arm depend on this arm's context, with
    the same weights for all arms. In the multinomial logit model, the odds of an arm depend on the contexts of all
    arms, with separate weights for each arm. If arms are uniform, each statistic is asymptotically chi-square. A test
    is skipped if there are fewer than ten rounds for each degree of freedom. The test against the contexts of all arms
    is also skipped if num_arms * dim exceeds 256.

    The p-values of short logs are approximate: if few contexts are nonzero, far more uniform logs are refuted than the
    p-value states. A log that passes all tests need not be uniform: the score tests detect neither nonlinear
    preferences nor dependence on features that are not in the contexts.

    Args:
        contexts: [horizon, num_arms, dim] finite; if None, only Pearson's test is made.
        actions: [horizon] integers in [0, num_arms).
        num_arms: number of arms.
    """
    horizon = len(actions)
    counts = np.bincount(actions, minlength=num_arms)
    tests = []
    if num_arms > 1 and horizon >= _ROUNDS_PER_DEGREE * (num_arms - 1):
        shares = ", ".join(f"{share:.1%}" for share in counts[:8] / horizon) + ", ..." * (num_arms > 8)
        excess = float(np.sum((counts - horizon / num_arms) ** 2)) / (horizon / num_arms)  # Pearson's statistic
        tests.append((float(chdtrc(num_arms - 1, excess)), f"chi-square by arm: shares of {shares}"))
    dim = 0 if contexts is None else contexts.shape[2]
    if contexts is not None and horizon >= _ROUNDS_PER_DEGREE * dim:
        tests.append((_by_own_context(contexts, actions), "score test of arms against their contexts"))
    columns = num_arms * dim
    if contexts is not None and columns <= _MOST_COLUMNS and horizon >= _ROUNDS_PER_DEGREE * (num_arms - 1) * columns:
        tests.append((_by_all_contexts(contexts, actions), "score test of arms against the contexts of all arms"))
    least, which = min(tests, default=(1.0, ""))
    if least >= REFUTED:
        return None
    return f"p {'< 1e-300' if least < 1e-300 else f'= {least:.1g}'}, {which}"


def _by_own_context(contexts: np.ndarray, actions: np.ndarray) -> float:
    """Returns the p-value of the score test of the null hypothesis that an arm's odds do not depend on its own context.

    The score is sum_t (x_t,a - mean_k x_t,k), where a is the logged arm of round t, and x_t,k the context of arm k.
    """
    horizon, _, dim = contexts.shape
    score, moments = np.zeros(dim), np.zeros((dim, dim))
    for first in range(0, horizon, _CHUNK):
        part = np.asarray(contexts[first : first + _CHUNK], np.float64)
        part = part - part.mean(axis=1, keepdims=True)
        score += part[np.arange(len(part)), actions[first : first + _CHUNK]].sum(axis=0)
        rows = part.reshape(-1, dim)
        moments += rows.T @ rows / part.shape[1]
    return _p_value(score[:, None], moments, 1.0, 1)


def _by_all_contexts(contexts: np.ndarray, actions: np.ndarray) -> float:
    # The score of arm k is sum_t (1[a_t = k] - 1 / K) z_t, where z_t are all arms' contexts, centred over rounds.
    horizon, num_arms, dim = contexts.shape
    center = contexts.reshape(horizon, -1).mean(axis=0, dtype=np.float64)
    scores, moments = np.zeros((num_arms * dim, num_arms)), np.zeros((num_arms * dim,) * 2)
    for first in range(0, horizon, _CHUNK):
        rows = np.asarray(contexts[first : first + _CHUNK], np.float64).reshape(-1, num_arms * dim) - center
        is_logged = actions[first : first + _CHUNK, None] == np.arange(num_arms)
        scores += rows.T @ (is_logged - 1 / num_arms)
        moments += rows.T @ rows
    return _p_value(scores, moments, float(num_arms), num_arms - 1)


def _p_value(scores: np.ndarray, moments: np.ndarray, factor: float, copies: int) -> float:
    # The statistic is `factor` times the sum of s' moments^+ s over the columns s of `scores`. Its distribution is
    # chi-square with copies * rank(moments) degrees of freedom.
    lengths = np.sqrt(np.diag(moments))
    # Columns that are constant up to the rounding of float32 contexts in [-1, 1] are omitted. The statistic does not
    # depend on the scale of a column.
    varies = lengths > 1e-6 * max(lengths.max(initial=0.0), 1.0)
    if not varies.any() or copies < 1:
        return 1.0
    lengths = lengths[varies]
    values, vectors = np.linalg.eigh(moments[np.ix_(varies, varies)] / np.outer(lengths, lengths))
    is_nonzero = values > 1e-9 * values[-1]
    parts = (vectors[:, is_nonzero].T @ (scores[varies] / lengths[:, None])) / np.sqrt(values[is_nonzero])[:, None]
    return float(chdtrc(copies * is_nonzero.sum(), factor * np.sum(parts**2)))
