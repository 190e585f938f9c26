"""Tests whether logged arms can have been drawn uniformly, which replay takes for granted."""

import numpy as np
from scipy.stats import chi2, chisquare

REFUTED = 1e-6  # a p-value below it refutes uniform arms; of uniform logs three in a million or fewer have one
_CHUNK = 2**14  # rounds at a time
_MOST_COLUMNS = 256  # contexts of all arms side by side: more take long to compare
_ROUNDS_PER_DEGREE = 10  # with fewer, sums over rounds need not be near normal


class NonuniformLogWarning(RuntimeWarning):
    """Logged arms were not drawn uniformly, so that replay is biased."""


def nonuniformity(contexts: np.ndarray, actions: np.ndarray) -> str | None:
    """Returns what refutes that logged arms were drawn uniformly, with its p-value; None if nothing does.

    Three tests of the hypothesis that every arm is drawn uniformly, whatever the contexts: Pearson's of how often each
    arm was logged; and score tests of two logit models, in which the odds of an arm depend on its own context with the
    same weights for all arms (conditional logit), or on the contexts of all arms with weights of its own (multinomial
    logit). Under the hypothesis moments given the contexts are exact, and each statistic is chi-square in the limit of
    many rounds. A test with fewer than ten rounds for each degree of freedom is left out.

    A log that passes need not be uniform: nonlinear preferences, and traits that contexts do not hold, pass the last
    two.

    Args:
        contexts: [horizon, num_arms, dim] finite.
        actions: [horizon] integers in [0, num_arms).
    """
    horizon, num_arms, dim = contexts.shape
    counts = np.bincount(actions, minlength=num_arms)
    found = []
    if num_arms > 1 and horizon >= _ROUNDS_PER_DEGREE * (num_arms - 1):
        shares = ", ".join(f"{share:.1%}" for share in counts[:8] / horizon) + ", ..." * (num_arms > 8)
        found.append((float(chisquare(counts).pvalue), f"chi-square by arm: shares of {shares}"))
    if horizon >= _ROUNDS_PER_DEGREE * dim:
        found.append((_by_own_context(contexts, actions), "score test of arms against their contexts"))
    columns = num_arms * dim
    if columns <= _MOST_COLUMNS and horizon >= _ROUNDS_PER_DEGREE * (num_arms - 1) * columns:
        found.append((_by_all_contexts(contexts, actions), "score test of arms against the contexts of all arms"))
    least, which = min(found, default=(1.0, ""))
    if least >= REFUTED:
        return None
    return f"p {'< 1e-300' if least < 1e-300 else f'= {least:.1g}'}, {which}"


def _by_own_context(contexts: np.ndarray, actions: np.ndarray) -> float:
    """The p-value of the conditional logit: sum_t (x_t,a - mean_k x_t,k), given the contexts."""
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
    """The p-value of the multinomial logit: sum_t (1[a_t = k] - 1 / K) z_t for every arm k, z_t centred over rounds."""
    horizon, num_arms, dim = contexts.shape
    center = contexts.reshape(horizon, -1).mean(axis=0, dtype=np.float64)
    scores, moments = np.zeros((num_arms * dim, num_arms)), np.zeros((num_arms * dim,) * 2)
    for first in range(0, horizon, _CHUNK):
        rows = np.asarray(contexts[first : first + _CHUNK], np.float64).reshape(-1, num_arms * dim) - center
        chosen = actions[first : first + _CHUNK, None] == np.arange(num_arms)
        scores += rows.T @ (chosen - 1 / num_arms)
        moments += rows.T @ rows
    return _p_value(scores, moments, float(num_arms), num_arms - 1)


def _p_value(scores: np.ndarray, moments: np.ndarray, factor: float, copies: int) -> float:
    """Of factor * sum over columns s of s' moments^+ s, chi-square with copies * rank(moments) degrees of freedom."""
    lengths = np.sqrt(np.diag(moments))
    # What is constant but for rounding (of float32 contexts in [-1, 1]) has no say; neither have units.
    varies = lengths > 1e-6 * max(lengths.max(initial=0.0), 1.0)
    if not varies.any() or copies < 1:
        return 1.0
    lengths = lengths[varies]
    values, vectors = np.linalg.eigh(moments[np.ix_(varies, varies)] / np.outer(lengths, lengths))
    kept = values > 1e-9 * values[-1]
    parts = (vectors[:, kept].T @ (scores[varies] / lengths[:, None])) / np.sqrt(values[kept])[:, None]
    return float(chi2.sf(factor * np.sum(parts**2), copies * kept.sum()))
