"""Formats a plan as a table, and draws it as a picture."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxdp.abtests._fixed import Setting, fixed_users
from jaxdp.abtests._rates import lower_bound
from jaxdp.abtests._schedule import Schedule
from jaxdp.abtests._simulation import Needs

TRUSTS = ("local", "central")
NUM_PLOTTED = 25  # number of epsilons in the picture
WIDTH = 100  # maximum number of characters of a line of text
COLOURS = ("#0072B2", "#D55E00")


def other_trust(trust: str) -> str:
    """Returns "central" for "local", and "local" for "central"."""
    return TRUSTS[1 - TRUSTS.index(trust)]


def mean_bound(setting: Setting) -> float:
    """Returns the lower bound, proved in `docs/proofs/pairs.md`, on a test's expected number of users."""
    epsilon = math.inf if setting.trust == "local" else setting.epsilon  # a test reads reports without further noise
    return lower_bound(*setting.rates, setting.failure_prob, epsilon)


def table(setting: Setting, needs: Sequence[Needs], schedule: Schedule | None) -> str:
    """Formats a plan as text; a line exceeds 100 characters only if several numbers of users have 16 digits.

    `needs` contains the numbers of users needed with the planned trust model, with the other trust model, and by the
    non-private test. `schedule` is None if no curator adds noise.
    """
    trusts = (setting.trust, other_trust(setting.trust), "")
    rows = [
        ["users of both arms", *trusts[:2], "no privacy"],
        ["looks once (two-proportion z-test)", *(f"{need.fixed:,}" for need in needs)],
        ["may stop at any look (pairs), mean", *(f"{need.anytime.mean:,.4g}" for need in needs)],
        ["  standard error of this mean", *(f"{need.anytime.stderr:,.2g}" for need in needs)],
        ["  enough in 95% of runs", *(f"{need.anytime.quantile_95:,.4g}" for need in needs)],
        ["lower bound on the mean of any test", *(f"{need.lower_bound:,.4g}" for need in needs)],
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        *_wrap(
            f"rate {setting.rate:g} against {setting.true_rates[1]:g} (lift {setting.lift:+g}), "
            f"epsilon {setting.epsilon:g} per user, {setting.trust} privacy, power {setting.power:g}, "
            f"error {setting.failure_prob:g}"
        ),
        "",
        *("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows),
        "",
    ]
    anytime = needs[0].anytime
    lines += _wrap(
        f"After {needs[0].fixed:,} users the test that may stop has a power of {anytime.power_at_fixed:.2f}, not "
        f"{setting.power:g}."
    )
    lines += _wrap(f"It looks after {looks_text(schedule)}")
    if anytime.unfinished:
        lines.append(f"{anytime.unfinished:.1%} of runs were cut off, so the mean is larger than stated.")
    return "\n".join(lines)


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH)


def looks_text(schedule: Schedule | None) -> str:
    """Returns the end of the sentence "It looks after ..."."""
    if schedule is None:
        return "1, 2, ..., 200 pairs, then after every increase of about 1%."
    return f"{schedule.first:,} pairs, then after every increase of {schedule.growth:.0%}, and releases each pair once."


def figure(setting: Setting, needs: Sequence[Needs]) -> Any:
    """Returns a figure of the users needed against epsilon, for both trust models.

    `needs` contains the numbers of users needed with the planned trust model, and then with the other trust model.
    """
    from jaxdp.plotting import panels  # imports Matplotlib only when a figure is needed

    middle = setting.epsilon if math.isfinite(setting.epsilon) else 1.0
    epsilons = [float(epsilon) for epsilon in np.geomspace(min(0.1, middle / 3), max(4.0, 3 * middle), NUM_PLOTTED)]
    new_figure = panels(width=5.0, height=3.6)
    ax = new_figure.axes[0]
    for trust, colour in zip(TRUSTS, COLOURS, strict=True):
        settings = [setting._replace(epsilon=epsilon, trust=trust) for epsilon in epsilons]
        ax.plot(epsilons, [*map(_plotted_users, settings)], color=colour, label=f"{trust}, looks once")
        ax.plot(
            epsilons,
            [mean_bound(at_epsilon) for at_epsilon in settings],
            ":",
            color=colour,
            label=f"{trust}, lower bound",
        )
        if math.isfinite(setting.epsilon):
            mean = needs[0 if trust == setting.trust else 1].anytime.mean
            ax.plot([setting.epsilon], [mean], "o", color=colour, label=f"{trust}, may stop at any look (mean)")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("ε")
    ax.set_ylabel("users of both arms")
    title = f"Users for a lift of {setting.lift:+.3g} at a rate of {setting.rate:g}, power {setting.power:g}"
    new_figure.explain(title=title)
    return new_figure


def _plotted_users(setting: Setting) -> float:
    """Returns the number of users of the fixed test; NaN, which is not drawn, if it exceeds 2^53."""
    try:
        return fixed_users(setting)
    except ValueError:
        return math.nan
