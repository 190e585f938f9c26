"""Estimates of both rates, their difference and the lift, with intervals that account for the privacy noise.

Intervals are asymptotic. Rates have Wilson's score intervals, from which the intervals of the difference and the lift
are computed. For the fixed test, the half width in standard errors is a normal quantile. For the anytime test, the half
width is the boundary of a normal mixture, and the intervals are valid at every look. From a curator's releases in the
anytime test, only the difference can be estimated.

Source:
    Wilson (1927); Newcombe (1998), DOI 10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I, for the
    difference; Donner & Zou (2012), the method MOVER-R, for the ratio; Waudby-Smith, Arbour, Sinha, Kennedy &
    Ramdas (2024), arXiv 2103.06476, for intervals that are valid at every look.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from scipy.special import ndtri

from jaxdp.abtests._fixed import Setting, fixed_users


class Interval(NamedTuple):
    """An estimate and its confidence interval.

    Attributes:
        estimate: the estimate; NaN if the data do not determine it.
        low: lower end of the interval.
        high: upper end of the interval.
    """

    estimate: float
    low: float
    high: float


class Effect(NamedTuple):
    """Estimates of users' rates. Each single interval has the confidence 1 - failure_prob; all together have less.

    Attributes:
        control: the control arm's rate.
        treatment: the treatment arm's rate.
        difference: the treatment arm's rate minus the control arm's rate.
        lift: the difference divided by the control arm's rate.
    """

    control: Interval
    treatment: Interval
    difference: Interval
    lift: Interval


UNKNOWN = Interval(math.nan, math.nan, math.nan)


def fixed_width(setting: Setting) -> float:
    """Returns the half width, in standard errors, of an interval for a single look."""
    return -float(ndtri(setting.failure_prob / 2))


def anytime_width(setting: Setting, pairs: float) -> float:
    """Returns the half width, in standard errors, of an interval after `pairs` pairs that is valid at every look.

    The mixture's variance is chosen to approximately minimize this half width at the number of pairs that the fixed
    test needs.
    """
    threshold = 2 * math.log(1 / setting.failure_prob)
    ratio = (threshold + math.log1p(threshold)) * pairs / (fixed_users(setting) / 2)
    return math.sqrt((1 + 1 / ratio) * (threshold + math.log1p(ratio)))


def effect(
    setting: Setting, users: Sequence[float], ones: Sequence[float], width: float, noise_variance: float = 0.0
) -> Effect:
    """Estimates the rates, their difference and the lift from numbers of ones.

    Args:
        setting: the planned values.
        users: `[2]`, numbers of users, control first.
        ones: `[2]`, numbers of ones among reports (local), or released noisy numbers of ones (central).
        width: half width of the intervals, in standard errors.
        noise_variance: variance of the noise in each released number.
    """
    shrink = math.tanh(setting.epsilon / 2) if setting.trust == "local" else 1.0
    control, treatment = (
        _rate(_score(size, count / size, width, noise_variance / size**2), shrink)
        for size, count in zip(users, ones, strict=True)
    )
    return Effect(_clip(control), _clip(treatment), _difference(control, treatment), _lift(control, treatment))


def pairs_effect(pairs: float, lead: float, discordant: float, noise_variance: float, width: float) -> Effect:
    """Estimates the difference of rates from a curator's releases, which do not determine single rates.

    Args:
        pairs: number of pairs.
        lead: sum of the released S (see `AnytimeCentral`). It estimates a difference: the number of pairs in which only
            the treatment's bit is 1 minus the number of pairs in which only the control's bit is 1.
        discordant: sum of the released D, an estimate of the number of pairs in which the bits differ.
        noise_variance: variance of the noise in `lead`, the sum over all epochs.
        width: half width of the interval, in standard errors.
    """
    mean = lead / pairs
    share = min(max(discordant, 1.0) / pairs, 1.0)
    half = width * math.sqrt(max(share - mean * mean, 0.0) / pairs + noise_variance / pairs**2)
    interval = Interval._make(min(max(value, -1.0), 1.0) for value in (mean, mean - half, mean + half))
    return Effect(UNKNOWN, UNKNOWN, interval, UNKNOWN)


def _score(size: float, share: float, width: float, noise_variance: float) -> Interval:
    """Returns the interval of all p with |share - p| <= width * sqrt(p (1 - p) / size + noise_variance)."""
    square = width**2
    lead, middle = 1 + square / size, share + square / (2 * size)
    # The same as middle^2 - lead (share^2 - square noise_variance), but without cancellation and overflow.
    discriminant = square / size * (share * (1 - share) + square / (4 * size)) + lead * square * noise_variance
    root = math.sqrt(max(discriminant, 0.0))
    return Interval(share, (middle - root) / lead, (middle + root) / lead)


def _rate(reports: Interval, shrink: float) -> Interval:
    return Interval._make(0.5 + (value - 0.5) / shrink for value in reports)


def _clip(interval: Interval) -> Interval:
    return Interval._make(min(max(value, 0.0), 1.0) for value in interval)


def _difference(control: Interval, treatment: Interval) -> Interval:
    middle = treatment.estimate - control.estimate
    below = math.hypot(treatment.estimate - treatment.low, control.high - control.estimate)
    above = math.hypot(treatment.high - treatment.estimate, control.estimate - control.low)
    return Interval._make(min(max(value, -1.0), 1.0) for value in (middle, middle - below, middle + above))


def _lift(control: Interval, treatment: Interval) -> Interval:
    """Returns the lift and its interval, which has no upper end if the control arm's interval contains 0."""
    control, treatment = _clip(control), _clip(treatment)
    if control.estimate == 0:
        return Interval(math.nan, -1.0, math.inf)
    product = control.estimate * treatment.estimate
    least = treatment.low * (2 * treatment.estimate - treatment.low)
    root = math.sqrt(max(product**2 - least * control.high * (2 * control.estimate - control.high), 0.0))
    low = least / (product + root) if least > 0 else 0.0
    dividend = treatment.high * (2 * treatment.estimate - treatment.high)
    divisor = control.low * (2 * control.estimate - control.low)
    root = math.sqrt(max(product**2 - dividend * divisor, 0.0))
    high = (product + root) / divisor if divisor > 0 else math.inf
    return Interval(treatment.estimate / control.estimate - 1, low - 1, high - 1)
