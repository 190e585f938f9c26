r"""Evidence against equal arms that may be looked at any time: e-values of pairs.

Pair the k-th user of one arm with the k-th of the other. If the arms have equal rates, a discordant pair is a fair
coin: for every rate, and for reports at every epsilon. Among D discordant pairs the treatment's bit is the 1 in
(D + S) / 2, and exp(l S) / cosh(l)^D is a test martingale for every l. So is each mean over l. By Ville's inequality
such a process reaches 1 / failure_prob with probability at most failure_prob, at any time. The full argument, with
batches of pairs and with a curator's noise, stands in `docs/proofs/pairs.md`.

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

SLOPE_SHARE = 0.85  # of epsilon: nearer to it the noise's generating function grows without bound
NUM_SLOPES = 25


class LocalEvidence(NamedTuple):
    """The e-value of randomized-response reports: mean of the planned slope's and of a Gaussian mixture's.

    Attributes:
        slope: half the planned log odds ratio of the reports.
        spread: of the mixture, r: slopes have variance 1 / r.
    """

    slope: float
    spread: float

    def log_value(self, leads: np.ndarray, discordant: np.ndarray) -> np.ndarray:
        """Returns the log of the e-value.

        Args:
            leads: ones of the treatment minus ones of the control, S.
            discordant: number of discordant pairs, D, or the sum over disjoint batches of its mean given the counts.
        """
        planned = log_cosh(self.slope * leads) - discordant * log_cosh(self.slope)
        total = discordant + self.spread
        mixed = 0.5 * np.log(self.spread / total) + leads**2 / (2 * total)
        return np.logaddexp(planned, mixed) - math.log(2)


def local_evidence(setting: Setting) -> LocalEvidence:
    """Returns the e-value for the planned rates."""
    slope = abs(log_odds_ratio(*setting.rates)) / 2
    threshold = math.log(1 / setting.failure_prob)
    typical = 2.8 * math.log(2 / setting.failure_prob) / slope**2  # discordant pairs
    return LocalEvidence(slope, typical / (2 * threshold + math.log1p(2 * threshold)))


def mean_discordant(size: np.ndarray | int, control: np.ndarray, treatment: np.ndarray) -> np.ndarray:
    """Returns the mean number of discordant pairs of a batch, over all pairings of its two arms' users.

    Jensen's inequality: the e-value is convex in D, so with this mean it is at most its own mean over pairings, and
    stays valid. That holds for disjoint batches with public ends, never for running totals.

    Args:
        size: users of each arm in the batch.
        control: their ones in the control arm.
        treatment: their ones in the treatment arm.
    """
    both, first, second = (np.asarray(count, np.float64) for count in (size, control, treatment))  # products pass 2^63
    return (first * (both - second) + second * (both - first)) / both


class CentralEvidence(NamedTuple):
    """The e-value of a curator's releases: a finite mean over slopes, each divided by its noise's generating functions.

    Attributes:
        lead_epsilon: spent on each epoch's S.
        discordant_epsilon: spent on each epoch's D.
        slopes: `[slopes]`, the planned one first.
        log_weights: `[slopes]`.
        log_noise: `[slopes]`, log of both generating functions: the price of one release.
    """

    lead_epsilon: float
    discordant_epsilon: float
    slopes: np.ndarray
    log_weights: np.ndarray
    log_noise: np.ndarray

    def log_value(self, leads: np.ndarray, discordant: np.ndarray, epochs: int | np.ndarray) -> np.ndarray:
        """Returns the log of the e-value.

        Args:
            leads: sum of the released S.
            discordant: sum of the released D.
            epochs: number of releases.
        """
        shape = (-1, *(1 for _ in np.shape(leads)))
        slopes, weights, noise = (part.reshape(shape) for part in (self.slopes, self.log_weights, self.log_noise))
        logs = log_cosh(slopes * leads) - log_cosh(slopes) * discordant - epochs * noise
        return np.asarray(logsumexp(logs + weights, axis=0))


def central_evidence(setting: Setting, slope_share: float) -> CentralEvidence:
    """Returns the e-value for the planned rates, with epsilon split between S and D at the least variance.

    Args:
        setting: the planned values.
        slope_share: see `Schedule`.
    """
    planned = slope_share * abs(log_odds_ratio(*setting.rates)) / 2
    share = (float(log_cosh(planned)) / planned) ** (2 / 3)
    lead_epsilon = setting.epsilon / (1 + share)
    discordant_epsilon = setting.epsilon - lead_epsilon
    mixture = planned * np.exp(np.linspace(-math.log(4), math.log(4), NUM_SLOPES))
    slopes = np.minimum(np.append(planned, mixture), SLOPE_SHARE * lead_epsilon)
    largest_price = min(SLOPE_SHARE * discordant_epsilon, 700.0)  # of log cosh
    slopes = np.minimum(slopes, _arcosh_exp(largest_price))
    weights = slopes[1:] * np.exp(-((slopes[1:] / (1.5 * planned)) ** 2) / 2)
    log_weights = np.log(np.append(1.0, weights / weights.sum()) / 2)
    log_noise = log_noise_mgf(slopes, lead_epsilon) + log_noise_mgf(log_cosh(slopes), discordant_epsilon)
    return CentralEvidence(lead_epsilon, discordant_epsilon, slopes, log_weights, log_noise)


def log_noise_mgf(slopes: np.ndarray, epsilon: float) -> np.ndarray:
    """Returns log E[exp(slope N)] of two-sided geometric noise N with P(N = k) proportional to exp(-epsilon |k|).

    It is (cosh epsilon - 1) / (cosh epsilon - cosh slope), for slopes below epsilon.
    """
    return 2 * _log_sinh(epsilon / 2) - _log_sinh((epsilon + slopes) / 2) - _log_sinh((epsilon - slopes) / 2)


def _arcosh_exp(price: float) -> float:
    """Returns the slope with log cosh slope = price."""
    return math.sqrt(2 * price) if price < 1e-8 else math.acosh(math.exp(price))


def _log_sinh(values: np.ndarray | float) -> np.ndarray:
    """Returns log sinh of values > 0, without overflow."""
    return values + np.log(-np.expm1(-2 * np.asarray(values))) - math.log(2)
