"""A curator's releases of real data with secret noise, stored in a file so that no data are released twice."""

import hashlib
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
from jaxdp.validation import check_local_path, refuse_masked

FORMAT = "jaxdp abtest release 2"


class Arrivals(NamedTuple):
    """The public order of arrival of the users in a file's releases.

    Attributes:
        users: total number of users of both arms up to the last user with a bit in a release.
        digest: SHA-256 of the arms of these users, one byte each: 0 for control, 1 for treatment.
    """

    users: int
    digest: str


class Released(NamedTuple):
    """The content of a file of releases.

    Attributes:
        setting: the planned values.
        schedule: the public schedule of looks; None for the fixed test, which looks once.
        users: `[2]`, each arm's number of users in the fixed test, control first; None for the anytime test.
        sums: `[releases][2]` noisy integers. In the anytime test they are S and D of each epoch (see `AnytimeCentral`);
            in the fixed test they are each arm's number of ones, control first.
        arrivals: the users' order of arrival; None if it was not given.
    """

    setting: Setting
    schedule: Schedule | None
    users: list[int] | None
    sums: list[list[int]]
    arrivals: Arrivals | None = None


class CentralRelease(NamedTuple):
    """A test for a curator who has users' true bits. The test draws the noise, and stores every release in a file.

    The noise is discrete Laplace noise, sampled exactly from the operating system's random words
    (`jaxdp.mechanisms.secret_discrete_laplace`). When more users have arrived, an evaluation draws noise only for new
    epochs, which are not yet in the file; an epoch is the pairs between two looks. Keep the file, and use one file for
    one test, because a second file would release the same users' bits again, which costs epsilon once more.

    Attributes:
        rule: the rule that evaluates releases.
    """

    rule: FixedTest | AnytimeCentral

    def guarantee(self) -> Guarantee:
        """Returns the claim for all releases of one file together."""
        return Guarantee.pure(
            self.rule.setting.epsilon,
            trust_model="central",
            privacy_unit="one user's bit",
            argument="each user is in one release, of sums that a bit changes by at most 1, with exact discrete "
            "Laplace noise; arms, order and pairing are public",
            numerical_delta=0.0,
        )

    def evaluate(self, control: Any, treatment: Any, path: str | os.PathLike[str], *, arms: Any = None) -> Verdict:
        """Releases the sums of new users, adds the releases to the file, and evaluates all releases of the file.

        Args:
            control: `[control users]` of 0 and 1, the true bits of all users so far, in the order of arrival.
            treatment: `[treatment users]` of 0 and 1, the same for the treatment arm.
            path: the file of releases, which is created if it does not exist; its folder must exist. Users of earlier
                calls must stay at the same positions in later calls. Their bits cannot be checked without another
                release.
            arms: `[users]` of 0 (control) and 1 (treatment), the public arms of all users in the order of arrival. The
                file stores a digest of the sequence of arms, so that a later call is rejected if this sequence has
                changed for users of earlier releases. Exchanged arms always change it. A missing user or another order
                usually changes it, but not if, for example, two users of the same arm change places. If `arms` is None,
                no such mistake is detected.

        Returns:
            The verdict.

        Warns:
            UserWarning: in the cases in which the rule warns; or if the arms' sizes are not compatible with a fair coin
                (p < 1e-4).

        Raises:
            ValueError: if an arm's bits are not a vector of 0 and 1 with at least one entry; if there are fewer pairs
                than the first look needs, or than the file has released; if the fixed test was released for other
                numbers of users; if arms do not match the bits, or were given in only some of the calls; if the file
                has another plan, arms of other users, or another format; or if path is a URL or its folder does not
                exist. In these cases no noise is drawn.
            OSError: if the file cannot be written. In this case no release is returned.
        """
        bits = [check_bits(name, values) for name, values in (("control", control), ("treatment", treatment))]
        checked = check_local_path("path", path)
        sizes = [len(arm) for arm in bits]
        order = None if arms is None else _check_arms(arms, sizes)
        if not checked.parent.is_dir():
            raise ValueError(f"path must lie in a folder that exists, got {path}")
        with creation_lock(checked):
            previous = _read(checked)
            rule = self._rule(previous, checked)
            _check_arrivals(previous, order, checked)
            if isinstance(rule, FixedTest):
                latest = self._release_once(previous, bits, checked)
            else:
                latest = self._release_epochs(rule, previous, bits)
            if previous is None or len(latest.sums) > len(previous.sums):
                pairs = None if isinstance(rule, FixedTest) else rule.looks(min(sizes))[-1]
                _write(checked, latest._replace(arrivals=None if order is None else _arrivals(order, pairs)))
        if isinstance(rule, FixedTest):
            return rule.evaluate(sizes, latest.sums[0])
        warn_of_split(sizes)
        verdict = rule.evaluate(*np.transpose(latest.sums))
        return verdict._replace(waiting=sum(sizes) - verdict.users)

    def _rule(self, previous: Released | None, path: Path) -> FixedTest | AnytimeCentral:
        """Returns the rule with the file's schedule, which was fixed before the first release.

        Raises:
            ValueError: if the file has releases of another plan or kind of test.
        """
        if previous is None:
            return self.rule
        is_once = isinstance(self.rule, FixedTest)
        if previous.setting != self.rule.setting or is_once != (previous.schedule is None):
            planned, other = self.rule.setting._asdict(), previous.setting._asdict()
            differences = [
                f"{name} {other[name]}, not {planned[name]}" for name in planned if other[name] != planned[name]
            ]
            if is_once != (previous.schedule is None):
                differences.append(f"kind {'anytime' if is_once else 'fixed'}, not {'fixed' if is_once else 'anytime'}")
            raise ValueError(
                f"path must be a file of releases of this plan and kind of test, got {path} of {', '.join(differences)}"
            )
        return self.rule if isinstance(self.rule, FixedTest) else self.rule._replace(schedule=previous.schedule)

    def _release_once(self, previous: Released | None, bits: Sequence[np.ndarray], path: Path) -> Released:
        sizes = [len(arm) for arm in bits]
        if previous is not None:
            if previous.users != sizes:
                raise ValueError(f"the fixed test looks once: {path} has {previous.users} users, got {sizes}")
            return previous
        noise = secret_discrete_laplace(2, self.rule.setting.epsilon)
        ones = [int(arm.sum()) + draw for arm, draw in zip(bits, noise, strict=True)]
        return Released(self.rule.setting, None, sizes, [ones])

    def _release_epochs(self, rule: AnytimeCentral, previous: Released | None, bits: Sequence[np.ndarray]) -> Released:
        pairs = min(len(arm) for arm in bits)
        ends, sums = [0, *rule.looks(pairs)], [] if previous is None else previous.sums
        if len(ends) == 1:
            raise ValueError(f"control and treatment must have >= {rule.schedule.first} users each, got {pairs}")
        if len(ends) <= len(sums):
            raise ValueError(
                f"control and treatment must have all users so far: {len(sums)} looks are released already, got "
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


def num_releases(path: Path) -> int:
    """Returns the number of releases in a file; 0 if there is no file."""
    previous = _read(path)
    return 0 if previous is None else len(previous.sums)


def _check_arms(arms: Any, sizes: Sequence[int]) -> np.ndarray:
    """Checks the users' arms, and returns them as [users] uint8."""
    refuse_masked("arms", arms)
    order = np.asarray(arms)
    counts = [int(np.sum(order == arm)) for arm in (0, 1)]
    if order.shape != (sum(sizes),) or counts != list(sizes):
        raise ValueError(
            f"arms must be an array [users] with 0 for each of {sizes[0]} control users and 1 for each of {sizes[1]} "
            f"treatment users, got shape {order.shape} with {counts[0]} of 0 and {counts[1]} of 1"
        )
    return order.astype(np.uint8)


def _arrivals(order: np.ndarray, pairs: int | None) -> Arrivals:
    """Returns the arrivals up to the last user of the first `pairs` pairs, or all arrivals if `pairs` is None."""
    last = order.size if pairs is None else 1 + max(int(np.flatnonzero(order == arm)[pairs - 1]) for arm in (0, 1))
    return Arrivals(last, hashlib.sha256(order[:last].tobytes()).hexdigest())


def _check_arrivals(previous: Released | None, order: np.ndarray | None, path: Path) -> None:
    """Raises a ValueError if the arms of users in previous releases changed, or were given in only some calls."""
    if previous is None or (previous.arrivals is None and order is None):
        return
    if previous.arrivals is None or order is None:
        raise ValueError(
            f"arms must be given in all calls or in none, and {path} was written with{'out' * (order is not None)} them"
        )
    users, digest = previous.arrivals
    first = order[:users]
    if first.size == users and hashlib.sha256(first.tobytes()).hexdigest() == digest:
        return
    if first.size == users and hashlib.sha256((1 - first).tobytes()).hexdigest() == digest:
        raise ValueError(f"control must be the arm that was the control when {path} was written, got the other arm")
    raise ValueError(
        f"arms must begin with the {users:,} users who are in releases of {path}, in the same order, got other arms of "
        "these users: a user is missing, or was added between them, or the order changed; nothing was released"
    )


def _read(path: Path) -> Released | None:
    """Returns a file's content; None if there is no file."""
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError("another format")
        schedule = None if content["schedule"] is None else Schedule(**content["schedule"])
        arrivals = None if content["arrivals"] is None else Arrivals(**content["arrivals"])
        return Released(Setting(**content["plan"]), schedule, content["users"], content["releases"], arrivals)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"path must be a file of releases that jaxdp wrote, got {path}: {error}") from None


def _write(path: Path, released: Released) -> None:
    """Replaces the file atomically. A verdict may be returned only afterwards."""
    content = {
        "format": FORMAT,
        "plan": released.setting._asdict(),
        "schedule": None if released.schedule is None else released.schedule._asdict(),
        "users": released.users,
        "releases": released.sums,
        "arrivals": None if released.arrivals is None else released.arrivals._asdict(),
    }
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with part.open("x", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=1) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
