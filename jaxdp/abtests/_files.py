"""Evaluates a file of reports for the command line, and checks the path of a picture.

The file has two columns: the arm, and 0 or 1.
"""

import math
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from jaxdp.abtests._plan import Plan
from jaxdp.abtests._release import num_releases
from jaxdp.abtests._rules import AnytimeCentral, AnytimeLocal, Verdict
from jaxdp.validation import check_local_path, name_options, refuse_private

NUM_COLUMNS = 2


class Arms(NamedTuple):
    """The bits of both arms, in the order of the file.

    Attributes:
        control: `[control users]` of 0 and 1.
        treatment: `[treatment users]` of 0 and 1.
        names: the arms' names, control first.
        order: `[users]`, 0 for a user of the control arm and 1 for a user of the treatment arm.
    """

    control: np.ndarray
    treatment: np.ndarray
    names: tuple[str, str]
    order: np.ndarray


def read_arms(path: Path, control: str | None, *, is_private: bool) -> Arms:
    """Reads a CSV file with a header and two columns: the arm, and 0 or 1.

    Args:
        path: path of the file, with one line for each user, in the order of arrival.
        control: name of the control arm; None raises an error that names both arms.
        is_private: whether the second column contains the users' true bits, which errors must not show.

    Raises:
        ValueError: if the file is not UTF-8 text, has no header, or does not have two columns and two arms; if a line
            has more than two values, or its second value is not 0 or 1; if control is not the name of an arm; or if
            path is a URL.
        OSError: if the file cannot be read.
    """
    checked = check_local_path("reports", path)
    try:  # with a header, pandas would take the first column of longer lines as an index
        lines = pd.read_csv(checked, header=None, dtype=str, keep_default_na=False, skipinitialspace=True)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"reports must have two columns, arm and 0 or 1, got {path}: {str(error).strip()}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"reports must be UTF-8 text, got other bytes in {path} ({error.reason})") from None
    if len(lines.columns) != NUM_COLUMNS:
        raise ValueError(f"reports must have two columns, arm and 0 or 1, got {len(lines.columns)} in {path}")
    table = lines.iloc[1:].reset_index(drop=True)
    header = [str(name).strip() for name in lines.iloc[0]]
    if header[1] in ("0", "1"):
        example = "0 or 1 in the second column" if is_private else repr(",".join(header))
        raise ValueError(f"reports must name its columns in the first line, got {example} in {path}")
    arms, values = (table[name].str.strip() for name in table.columns)
    is_wrong = ~values.isin(["0", "1"]).to_numpy()
    if is_private:
        refuse_private("reports", "0 or 1 in the second column", is_wrong)
    elif is_wrong.any():
        row = int(np.flatnonzero(is_wrong)[0])
        more = f", and {is_wrong.sum() - 1} more" if is_wrong.sum() > 1 else ""
        raise ValueError(f"reports must be 0 or 1 in the second column, got {values[row]!r} in line {row + 2}{more}")
    names = sorted(set(arms))
    if len(names) != NUM_COLUMNS or "" in names:
        first_names = (": " + ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")) if names else ""
        raise ValueError(f"reports must have two arms in the first column, got {len(names)}{first_names}")
    if control is None or control not in names:
        raise ValueError(f"control must be the name of an arm, {names[0]} or {names[1]}, got {control}")
    treatment = names[1 - names.index(control)]
    bits = (values == "1").to_numpy().astype(np.int8)
    is_control = (arms == control).to_numpy()
    return Arms(bits[is_control], bits[~is_control], (control, treatment), (~is_control).astype(np.int8))


def new_picture(path: Path) -> Path:
    """Checks the extension and the folder of a new picture, and returns its path.

    Raises:
        ValueError: if the file exists, its folder does not exist, its extension is not .png, .pdf or .svg, or path is a
            URL.
    """
    checked = check_local_path("plot", path)
    if checked.suffix not in (".png", ".pdf", ".svg"):
        raise ValueError(f"plot must end in .png, .pdf or .svg, got {path}")
    if not checked.parent.is_dir():
        raise ValueError(f"plot must lie in a folder that exists, got {path}")
    if checked.exists():
        raise ValueError(f"plot must be a new file, so that nothing is overwritten, got {path}")
    return checked


def describe(plan: Plan, users: float) -> str:
    """Formats the power, the minimum detectable lift and the minimum epsilon of the fixed test with `users` users."""
    lift, epsilon = plan.smallest_lift(users), plan.least_epsilon(users)
    return "\n".join(
        [
            f"{users:,.0f} users and the test that looks once:",
            f"  power for the planned lift: {plan.power_at(users):.2f}",
            f"  smallest lift with power {plan.power:g}: {'none' if math.isnan(lift) else f'{lift:+.3g}'}",
            f"  smallest epsilon for the planned lift: {'none' if math.isnan(epsilon) else f'{epsilon:.3g}'}",
        ]
    )


def evaluate(plan: Plan, kind: str, arms: Arms, *, seed: int, release: Path | None = None) -> str:
    """Evaluates a file's reports by a plan's rule, and returns the verdict as text.

    With central trust and a finite epsilon, the file contains the users' true bits, and this function draws the noise.
    If `release` is None, the noise is simulated, and the returned text says so.

    Args:
        plan: the plan.
        kind: "fixed" or "anytime".
        arms: the reports, or with central trust the users' true bits.
        seed: seed of simulated noise.
        release: file that stores a curator's releases; None for local trust, infinite epsilon or a simulation.

    Raises:
        ValueError: if `plan.test` or the rule raises a ValueError; or if `release` is None for the fixed test with
            central trust and a finite epsilon.
        OSError: if the file of releases cannot be written.
    """
    if release is not None:
        with name_options(path="--release", arms="--reports"):
            curator, earlier = plan.test(kind, release=True), num_releases(release)
            verdict = curator.evaluate(arms.control, arms.treatment, release, arms=arms.order)
        claim, added = curator.guarantee(), num_releases(release) - earlier
        text = verdict_text(kind, verdict, arms, 1 - plan.failure_prob)
        state = (
            f"{release} has {earlier} earlier releases, and {added} new ones" if earlier else f"{release} is a new file"
        )
        return (
            f"{text}\n\n{claim}: {claim.argument}. {state}. Keep it: another file for the same users adds its epsilon."
        )
    rule, end = plan.test(kind), ""
    if isinstance(rule, AnytimeCentral):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="simulation")
            releases = rule.simulate_releases(arms.control, arms.treatment, seed=seed)
        verdict = rule.evaluate(*releases)
        end = (
            f"\n  Simulation: the noise follows from --seed {seed}. Another seed gives other numbers and perhaps "
            "another decision, and nobody is protected."
        )
    elif isinstance(rule, AnytimeLocal):
        verdict = rule.evaluate(arms.control, arms.treatment)
    elif plan.schedule is not None:
        raise ValueError(
            f"kind must be anytime for a file with central trust and no --release, got {kind}; for the fixed test add "
            '--release FILE, which draws the noise, or pass noisy counts to plan.test("fixed")'
        )
    else:
        bits = (arms.control, arms.treatment)
        verdict = rule.evaluate([len(arm) for arm in bits], [int(arm.sum()) for arm in bits])
    return verdict_text(kind, verdict, arms, 1 - plan.failure_prob) + end


def verdict_text(kind: str, verdict: Verdict, arms: Arms, confidence: float) -> str:
    """Formats the decision, the estimates with their intervals, and the numbers of users who are not in the test."""
    sizes = [len(arms.control), len(arms.treatment)]
    lines = [
        f"{kind} test: control {arms.names[0]} ({sizes[0]:,} users), treatment {arms.names[1]} ({sizes[1]:,} users)",
        f"  {verdict.decision}, p = {verdict.p_value:.3g} after {verdict.users:,} users"
        + ("" if verdict.stopped_at is None else f"; decided after {verdict.stopped_at:,}"),
    ]
    effect = verdict.effect
    level = f"{100 * confidence:.12g}%"
    rates = {f"rate of {name}": rate for name, rate in zip(arms.names, effect[:2], strict=True)}
    lines += [
        f"  {name}: {interval.estimate:.4g}, {level} interval {interval.low:.4g} to {interval.high:.4g}"
        for name, interval in {**rates, "difference of rates": effect.difference}.items()
        if not math.isnan(interval.estimate)
    ]
    if not math.isnan(effect.lift.estimate):
        lift = [f"{value:+.3g}" for value in effect.lift]
        lines.append(f"  lift: {lift[0]}, {level} interval {lift[1]} to {lift[2]}")
    if abs(effect.treatment.estimate - effect.control.estimate - effect.difference.estimate) > 1e-9:
        lines.append(
            "  An estimated rate lies outside [0, 1], and is printed as 0 or 1; the difference uses the estimate."
        )
    if kind == "anytime":
        lines.append("  Intervals are approximate, and hold at every look.")
        unmatched = abs(sizes[0] - sizes[1])
        if unmatched:
            larger = arms.names[0] if sizes[0] > sizes[1] else arms.names[1]
            lines.append(f"  {unmatched:,} users of {larger} have no partner in the other arm, and are not in the test")
        if waiting := sum(sizes) - verdict.users - unmatched:
            lines.append(f"  {waiting:,} users wait for the next look")
    return "\n".join(lines)
