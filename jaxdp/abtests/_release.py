"""A curator's releases of real data: exact secret noise, and a file of releases, so that none is drawn again."""

import json
import os
import secrets
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxdp.abtests._doubts import warn_of_split
from jaxdp.abtests._fixed import Setting
from jaxdp.abtests._rules import AnytimeCentral, FixedTest, Verdict, check_bits
from jaxdp.abtests._schedule import Schedule
from jaxdp.core import Guarantee
from jaxdp.mechanisms import secret_discrete_laplace
from jaxdp.simulation.store.locks import creation_lock
from jaxdp.validation import check_local_path

FORMAT = "jaxdp abtest release 1"


class Released(NamedTuple):
    """The content of a file of releases.

    Attributes:
        setting: the planned values.
        schedule: the public looks; None for the test that looks once.
        users: `[2]`, numbers of users of the test that looks once, control first; None for the anytime test.
        sums: `[releases][2]` integers: S and D of each epoch, or the arms' numbers of ones.
    """

    setting: Setting
    schedule: Schedule | None
    users: list[int] | None
    sums: list[list[int]]


class CentralRelease(NamedTuple):
    """The rule of a curator who holds users' true bits: it draws exact noise, and keeps every release in a file.

    The noise comes from the operating system's random words (`jaxdp.mechanisms.secret_discrete_laplace`). An evaluation
    of more users draws noise only for epochs that the file does not have. Keep the file, and use one file for one test:
    a second file would release the same users again, which adds its epsilon.

    Attributes:
        rule: the rule that evaluates releases.
    """

    rule: FixedTest | AnytimeCentral

    def guarantee(self) -> Guarantee:
        """Returns the claim of all releases of one file."""
        return Guarantee.pure(
            self.rule.setting.epsilon,
            trust_model="central",
            privacy_unit="one user's bit",
            argument="each user is in one release, of sums that a bit changes by at most 1, with exact discrete "
            "Laplace noise; arms, order and pairing are public",
            numerical_delta=0.0,
        )

    def evaluate(self, control: Any, treatment: Any, path: str | os.PathLike[str]) -> Verdict:
        """Releases the sums of new users, adds them to the file, and evaluates the releases of the file.

        Args:
            control: `[control users]` of 0 and 1, the true bits of all users so far, in the order of arrival.
            treatment: `[treatment users]`, the same for the treatment arm.
            path: the file of releases; it is made if it does not exist. Later calls must keep the users of earlier
                calls, at the same positions; this cannot be checked without another release.

        Returns:
            The verdict.

        Warns:
            UserWarning: as the rule does; if the arms' sizes are not compatible with a fair coin (p < 1e-4).

        Raises:
            ValueError: if a bit is not 0 or 1; if fewer pairs are given than the first look needs, or than the file
                has; if the file is not of this plan. Nothing is drawn then.
            OSError: if the file cannot be written. Nothing is returned then.
        """
        bits = [check_bits(name, values) for name, values in (("control", control), ("treatment", treatment))]
        checked = check_local_path("path", path)
        sizes = [len(arm) for arm in bits]
        with creation_lock(checked):
            previous = _read(checked)
            rule = self._rule(previous, checked)
            if isinstance(rule, FixedTest):
                latest = self._release_once(previous, bits, checked)
            else:
                latest = self._release_epochs(rule, previous, bits)
            if previous is None or len(latest.sums) > len(previous.sums):
                _write(checked, latest)
        if isinstance(rule, FixedTest):
            return rule.evaluate(sizes, latest.sums[0])
        warn_of_split(sizes)
        verdict = rule.evaluate(*np.transpose(latest.sums))
        return verdict._replace(waiting=sum(sizes) - verdict.users)

    def _rule(self, previous: Released | None, path: Path) -> FixedTest | AnytimeCentral:
        """Returns the rule with the file's looks, which are the ones that were fixed in advance."""
        if previous is None:
            return self.rule
        is_once = isinstance(self.rule, FixedTest)
        if previous.setting != self.rule.setting or is_once != (previous.schedule is None):
            raise ValueError(f"path must be a file of this plan and kind of test, got {path} of {previous.setting}")
        return self.rule if isinstance(self.rule, FixedTest) else self.rule._replace(schedule=previous.schedule)

    def _release_once(self, previous: Released | None, bits: Sequence[np.ndarray], path: Path) -> Released:
        sizes = [len(arm) for arm in bits]
        if previous is not None:
            if previous.users != sizes:
                raise ValueError(f"the fixed test looks once: {path} has {previous.users} users, got {sizes}")
            return previous
        noise = secret_discrete_laplace(2, self.rule.setting.epsilon)
        ones = [int(arm.sum()) + one for arm, one in zip(bits, noise, strict=True)]
        return Released(self.rule.setting, None, sizes, [ones])

    def _release_epochs(self, rule: AnytimeCentral, previous: Released | None, bits: Sequence[np.ndarray]) -> Released:
        pairs = min(len(arm) for arm in bits)
        ends, sums = [0, *rule.looks(pairs)], [] if previous is None else previous.sums
        if len(ends) == 1:
            raise ValueError(f"control and treatment must have {rule.schedule.first} users each, got {pairs} pairs")
        if len(ends) <= len(sums):
            raise ValueError(
                f"control and treatment must have all users so far, {len(sums)} looks of them are released, got "
                f"{pairs} pairs, enough for {len(ends) - 1}"
            )
        budgets = (rule.lead_epsilon, rule.discordant_epsilon)  # the floats add up to epsilon exactly
        lead = bits[1][:pairs].astype(np.int64) - bits[0][:pairs].astype(np.int64)
        added = []
        for start, end in list(pairwise(ends))[len(sums) :]:
            exact = (int(lead[start:end].sum()), int(np.abs(lead[start:end]).sum()))
            added.append(
                [count + secret_discrete_laplace(1, budget)[0] for count, budget in zip(exact, budgets, strict=True)]
            )
        return Released(rule.setting, rule.schedule, None, [*sums, *added])


def _read(path: Path) -> Released | None:
    """Returns a file's content; None if there is no file."""
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError("another format")
        schedule = None if content["schedule"] is None else Schedule(**content["schedule"])
        return Released(Setting(**content["plan"]), schedule, content["users"], content["releases"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"path must be a file of releases that jaxdp wrote, got {path}: {error}") from None


def _write(path: Path, released: Released) -> None:
    """Replaces the file in one step, before anything is returned."""
    content = {
        "format": FORMAT,
        "plan": released.setting._asdict(),
        "schedule": None if released.schedule is None else released.schedule._asdict(),
        "users": released.users,
        "releases": released.sums,
    }
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with part.open("x", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=1) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
