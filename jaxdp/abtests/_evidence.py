r"""E-values of pairs, which are evidence against equal rates of the two arms and are valid at any time.

The k-th user of one arm is paired with the k-th user of the other arm. A pair is discordant if its two bits differ. If
the arms have equal rates, the treatment's bit in a discordant pair is a fair coin, at every rate. The same holds for
pairs of randomized-response reports, at every epsilon. Let the treatment's bit be 1 in (D + S) / 2 of D discordant
pairs. Then exp(l S) / cosh(l)^D is a test martingale for every slope l, and so is every average over slopes. By Ville's
inequality, the probability that this martingale ever reaches 1 / failure_prob is at most failure_prob. The full
argument, also for batches of pairs and for a curator's noise, is in `docs/proofs/pairs.md`.

Source:
    Wald (1947), "Sequential Analysis", chapter 6 (double dichotomies); Robbins (1970), DOI 10.1214/aoms/1177696786;
    Ville (1939), "Étude critique de la notion de collectif".
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from jaxdp.abtests._fixed import Setting
from jaxdp.abtests._rates import log_cosh, log_odds_ratio

# Slopes are at most this fraction of the epsilon of the noise in S, and their log cosh at most this fraction of the
# epsilon of the noise in D: a noise's moment generating function is infinite from its epsilon on.
SLOPE_SHARE = 0.85
NUM_SLOPES = 25


class LocalEvidence(NamedTuple):
    """The e-value of randomized-response reports: the mean of two e-values.

    The first e-value averages over the slopes `slope` and -`slope`. The second averages over Gaussian slopes, and uses
    the bound cosh l <= exp(l^2 / 2), which makes the e-value smaller but gives it a closed form.

    Attributes:
        slope: absolute value of half the planned log odds ratio of the reports.
        precision: 1 / variance of the Gaussian slopes, which have the mean 0.
    """

    slope: float
    precision: float

    def log_value(self, leads: np.ndarray, discordant: np.ndarray) -> np.ndarray:
        """Returns the log e-value.

        `leads` is S, the number of ones in the treatment arm minus the number of ones in the control arm. `discordant`
        is D, the number of discordant pairs; for batches, the sum of `mean_discordant` over disjoint batches.
        """
        planned = log_cosh(self.slope * leads) - discordant * log_cosh(self.slope)
        total = discordant + self.precision
        mixed = 0.5 * np.log(self.precision / total) + leads**2 / (2 * total)
        return np.logaddexp(planned, mixed) - math.log(2)


def local_evidence(setting: Setting) -> LocalEvidence:
    """Makes the e-value of randomized-response reports for the planned rates."""
    slope = abs(log_odds_ratio(*setting.rates)) / 2
    threshold = math.log(1 / setting.failure_prob)
    typical = 2.8 * math.log(2 / setting.failure_prob) / slope**2  # discordant pairs for which the mixture is tuned
    return LocalEvidence(slope, typical / (2 * threshold + math.log1p(2 * threshold)))


def mean_discordant(size: np.ndarray | int, control: np.ndarray, treatment: np.ndarray) -> np.ndarray:
    """Returns the number of discordant pairs of a batch, averaged over all pairings of its two arms' users.

    The e-value at this mean is valid for disjoint batches if their ends do not depend on private data. It is not valid
    for running totals. The reason is that the e-value is convex in D: by Jensen's inequality, the e-value at the mean
    of D is at most the mean of the e-values over pairings.

    Args:
        size: number of users of each arm in the batch.
        control: number of ones among the control arm's users.
        treatment: number of ones among the treatment arm's users.
    """
    # Products of large integers could exceed 2^63.
    users, first, second = (np.asarray(count, np.float64) for count in (size, control, treatment))
    return (first * (users - second) + second * (users - first)) / users


class CentralEvidence(NamedTuple):
    """The e-value of a curator's noisy releases: a weighted mean over slopes of e-values, each corrected for the noise.

    Attributes:
        lead_epsilon: the privacy budget of each epoch's released S.
        discordant_epsilon: the privacy budget of each epoch's released D.
        slopes: `[slopes]`, each used with both signs. The first is the slope for the planned rates, bounded so that the
            noise's moment generating functions are finite.
        log_weights: `[slopes]`, logs of the slopes' weights; the weights sum to 1.
        log_noise: `[slopes]`, log of the product of the two noises' moment generating functions. It is subtracted once
            for each epoch (the pairs between two looks).
    """

    lead_epsilon: float
    discordant_epsilon: float
    slopes: np.ndarray
    log_weights: np.ndarray
    log_noise: np.ndarray

    def log_value(self, leads: np.ndarray, discordant: np.ndarray, epochs: int | np.ndarray) -> np.ndarray:
        """Returns the log e-value, given the sums of the released S (`leads`) and D (`discordant`) over all epochs."""
        shape = (-1, *(1 for _ in np.shape(leads)))
        slopes, weights, noise = (part.reshape(shape) for part in (self.slopes, self.log_weights, self.log_noise))
        logs = log_cosh(slopes * leads) - log_cosh(slopes) * discordant - epochs * noise
        return np.asarray(logsumexp(logs + weights, axis=0))


def central_evidence(setting: Setting, slope_share: float) -> CentralEvidence:
    """Makes the e-value of a curator's releases for the planned rates.

    Epsilon is split between S and D to approximately minimize the variance that their noise adds to the log e-value.

    Args:
        setting: the planned values.
        slope_share: the first slope, as a share of half the planned log odds ratio. The other slopes are multiples of
            the first slope. Bounds in terms of epsilon then make large slopes smaller.
    """
    planned = slope_share * abs(log_odds_ratio(*setting.rates)) / 2
    share = (float(log_cosh(planned)) / planned) ** (2 / 3)
    lead_epsilon = setting.epsilon / (1 + share)
    discordant_epsilon = setting.epsilon - lead_epsilon
    mixture = planned * np.exp(np.linspace(-math.log(4), math.log(4), NUM_SLOPES))
    slopes = np.minimum(np.append(planned, mixture), SLOPE_SHARE * lead_epsilon)
    largest_log_cosh = min(SLOPE_SHARE * discordant_epsilon, 700.0)
    slopes = np.minimum(slopes, _arcosh_exp(largest_log_cosh))
    weights = slopes[1:] * np.exp(-((slopes[1:] / (1.5 * planned)) ** 2) / 2)
    log_weights = np.log(np.append(1.0, weights / weights.sum()) / 2)
    log_noise = log_noise_mgf(slopes, lead_epsilon) + log_noise_mgf(log_cosh(slopes), discordant_epsilon)
    return CentralEvidence(lead_epsilon, discordant_epsilon, slopes, log_weights, log_noise)


def log_noise_mgf(slopes: np.ndarray, epsilon: float) -> np.ndarray:
    """Returns log E[exp(slope N)] for two-sided geometric noise N, P(N = k) proportional to exp(-epsilon |k|).

    The expectation is (cosh epsilon - 1) / (cosh epsilon - cosh slope) for slopes in (-epsilon, epsilon).
    """
    return 2 * _log_sinh(epsilon / 2) - _log_sinh((epsilon + slopes) / 2) - _log_sinh((epsilon - slopes) / 2)


def _arcosh_exp(value: float) -> float:
    """Returns the s >= 0 with log cosh s = value."""
    return math.sqrt(2 * value) if value < 1e-8 else math.acosh(math.exp(value))


def _log_sinh(values: np.ndarray | float) -> np.ndarray:
    """Returns log sinh of values > 0, without overflow."""
    return values + np.log(-np.expm1(-2 * np.asarray(values))) - math.log(2)
