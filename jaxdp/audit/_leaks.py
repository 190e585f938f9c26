"""Tests a learner at a tiny budget, where noise hides the data; a value that still depends on the data has no noise."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxdp.audit.adversary import Answer, UserData, feedback_of_action, num_rounds
from jaxdp.audit.checks import check_alike
from jaxdp.audit.play import play
from jaxdp.audit.quick_programs import jit_quickly
from jaxdp.audit.seen import must_add_stop, visible_history
from jaxdp.audit.units import map_units
from jaxdp.checks import check_made
from jaxdp.core import Guarantee, Learner
from jaxdp.core.made_by import shorten
from jaxdp.simulation.run.values import parameters
from jaxdp.validation import check_count, check_key

EPSILON = 1e-6
TINY = {"epsilon": EPSILON, "mu": EPSILON, "rho": EPSILON**2 / 2, "delta": EPSILON**2}  # mu-GDP implies mu^2/2-zCDP
# After n rounds, a relative difference of up to max(RELATIVE, PER_ROUND * n) is attributed to data that noise of scale
# 1 / EPSILON hides. Such data cause a larger difference only if the noisy number is at most a tenth of this scale.
RELATIVE, PER_ROUND = 1e-3, 10 * EPSILON
MOST_ROUNDS = 50_000  # then half of a number may be data


@dataclass(frozen=True, kw_only=True)
class Leaks:
    """The result of a leak test.

    Attributes:
        found: one text for each value that differs under every key: its name, and the first round in which it differs,
            counted from 1.
        notes: reasons why the test could not decide.
    """

    found: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return shorten(
            f"Leaks({self.verdict}: {len(self.found)} found; {'; '.join((*self.found, *self.notes)) or 'none'})"
        )

    @property
    def verdict(self) -> str:
        """The verdict: "violated" if a value leaks; else "inconclusive" if there are notes; else "consistent"."""
        return "violated" if self.found else "inconclusive" if self.notes else "consistent"


def leaks(
    key: jax.Array,
    learner: Learner,
    values: Mapping[str, float],
    users: tuple[UserData, UserData],
    *,
    answer: Answer = feedback_of_action,
    num_keys: int = 4,
    path: str = "rounds",
    randomizes: bool = False,
) -> Leaks:
    """Finds values that a learner releases without noise: values that differ between two runs at a tiny budget.

    The test plays two runs with the same keys, unrelated users, and epsilon = 1e-6, mu = 1e-6 or rho = 5e-13. Additive
    noise that is calibrated to this budget has scale about 1e6 and is the same in both runs. So every noisy number is
    nearly the same in both runs, and every decision depends only on noise. The test cannot decide in three cases: the
    claim at these values shows that the noise is not calibrated to this budget; the learner rejects these values; or
    reports are randomized responses, which depend on the data at any epsilon if the key is the same.

    The test finds values released *beside* the noise: a number or a decision without any noise. It does not find data
    added *to* a noisy number, such as a raw reward added to a noisy estimate: the noise hides both. If the exact values
    of the two runs differ by d times the sensitivity, noise that is too small is found only if it is about max(1000, 10
    * rounds) / d times too small. `grey_box` finds these mistakes.

    Args:
        key: a typed PRNG key.
        learner: the learner to test.
        values: a grid point of the learner's params. The test replaces epsilon, mu, rho and delta. If values contain
            neither epsilon, mu nor rho, the test adds the first of these that params takes.
        users: users of two runs, with the same structure, shapes and dtypes; the more they differ, the more the test
            can find. The test uses only those leaves of the second run that the claim's `sensitive_fields` name. At
            most 50,000 rounds: sums of more data show through correct noise. Above 100 rounds, the relative difference
            of two numbers that the test attributes to noise grows with the number of rounds, from 0.001; a hundred
            rounds or fewer find most.
        answer: (answers, history, action) -> feedback. The history is the part of the past that the claim shows.
        num_keys: number of keys, >= 1. Noise may be small by chance, so a difference counts only if it occurs with
            every key.
        path: how rounds are played: "rounds"; "blocks" or "counts" if the learner has them.
        randomizes: whether reports are randomized responses.

    Returns:
        The differences in the plays, public states and reports that the claim's `adversary_view` names, and in the
        stopping time if it does not follow from them. In the local model reports are always compared, and public states
        are never compared. In the joint model plays and reports are never compared: all users differ here, and a user's
        play and report may depend on the user's own data.

    Raises:
        ValueError: if key is not a single typed key, learner is not a `Learner`, or num_keys < 1; if the runs' users
            differ in structure, shapes or dtypes, or have more than 50,000 rounds; if the learner lacks the path, or an
            entry of `sensitive_fields` is not a field of users' data.

    Examples:
        >>> import jaxdp
        >>> learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
        >>> users = (UserData(np.tile(np.int32([0, 1]), (6, 1))), UserData(np.tile(np.int32([1, 0]), (6, 1))))
        >>> leaks(jax.random.key(0), learner, {}, users).verdict
        'consistent'
    """
    check_key(key)
    check_made("learner", learner, Learner)
    check_count("num_keys", num_keys)
    check_alike("users", *users)
    rounds = num_rounds(users[0])
    if rounds > MOST_ROUNDS:
        raise ValueError(f"users must have at most {MOST_ROUNDS} rounds: more data show through noise, got {rounds}")
    tiny = _tiny(learner, values)
    try:
        params, claim = learner.params(**tiny), learner.guarantee(**tiny)
    except ValueError as error:
        return Leaks(found=(), notes=(f"values of a tiny budget are rejected: {error}",))
    if randomizes:
        return Leaks(found=(), notes=("reports are randomized responses, which show the data at any epsilon",))
    if not _is_tiny(claim):
        names = ", ".join(name for name in tiny if name in TINY)
        state = f"with a tiny {names}" if names else "with no value that is a budget"
        note = f"values do not make the noise large enough to hide data: {state} the claim is {claim}"
        return Leaks(found=(), notes=(note,))
    pair = users[0], map_units(claim, lambda old, new: new, *users)

    @jit_quickly
    def observe(key: jax.Array, users: UserData) -> Any:
        shown = partial(visible_history, claim, None)
        transcript = play(learner, answer, key, params, users, path=path, shown=shown)
        return {name: getattr(transcript, _ATTRIBUTES[name]) for name in _names_to_compare(claim, learner)}

    differences: dict[str, np.ndarray] = {}
    for run_key in jax.random.split(key, num_keys):
        same = (jax.random.clone(run_key), jax.random.clone(run_key))  # equal keys on purpose
        first, second = (_by_name(observe(k, run)) for k, run in zip(same, pair, strict=True))
        for name, mask in _find_differences(first, second, max(RELATIVE, PER_ROUND * rounds)).items():
            differences[name] = mask & differences.get(name, np.True_)
    return Leaks(
        found=tuple(
            f"{name} of round {int(np.flatnonzero(mask.reshape(len(mask), -1).any(axis=1))[0]) + 1}"
            for name, mask in differences.items()
            if mask.any()
        )
    )


_ATTRIBUTES = {"play": "actions", "public": "after", "report": "reports", "length": "length"}


def _names_to_compare(claim: Guarantee, learner: Learner) -> list[str]:
    names = [name for name, word in (("play", "action"), ("public", "public")) if word in claim.adversary_view]
    if claim.trust_model == "local":
        return ["report", *(name for name in names if name == "play")]
    stop = ["length"] if must_add_stop(claim, learner) else []
    if claim.trust_model == "joint":
        return [*(name for name in names if name == "public"), *stop]
    names += stop
    return [*names, *(["report"] if "report" in claim.adversary_view else [])]


def _tiny(learner: Learner, values: Mapping[str, float]) -> dict[str, float]:
    tiny = {**values, **{name: TINY[name] for name in values if name in TINY}}
    if not any(name in values for name in ("epsilon", "mu", "rho")):
        budgets = [name for name in ("epsilon", "mu", "rho") if name in parameters(learner.params)][:1]
        tiny |= {name: TINY[name] for name in budgets}
    return tiny


def _is_tiny(claim: Guarantee) -> bool:
    """Returns whether the claimed epsilon, mu or sqrt(2 rho) is at most 100 EPSILON, so that noise is large."""
    budget = claim.epsilon if claim.mu is None else claim.mu
    if claim.rho is not None:
        budget = (2 * claim.rho) ** 0.5
    return budget <= 100 * EPSILON


def _by_name(tree: Any) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {"".join(str(part).strip("[]'") for part in where): np.asarray(leaf) for where, leaf in leaves}


def _find_differences(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], relative: float = RELATIVE
) -> dict[str, np.ndarray]:
    """Returns, for each name, where the arrays of two runs differ by more than the relative difference."""
    differences = {}
    for name, left in first.items():
        total, rounding = f"{name.removesuffix('.excess')}.total", 0.0
        if name.endswith(".excess") and total in first:  # may differ by the rounding of `total`
            size = np.maximum(np.abs(first[total]), np.abs(second[total])).astype(np.float64)
            rounding = float(np.finfo(first[total].dtype).eps) * size
        smallest = 0.0
        if not np.issubdtype(left.dtype, np.inexact):
            # Plays and stopping times have no noise. Other integers may have noise, except small ones.
            smallest = np.inf if name.startswith(("play", "length")) else 1 / RELATIVE
        differences[name] = _differ(left, second[name], relative, rounding, smallest)
    return differences


def _differ(left: np.ndarray, right: np.ndarray, relative: float, rounding: Any, smallest: float) -> np.ndarray:
    """Returns where numbers differ; a tolerance applies where they are finite and one is at least `smallest`."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    size = np.maximum(np.abs(left), np.abs(right))
    with np.errstate(invalid="ignore"):
        near = (size >= smallest) & (np.abs(left - right) <= relative * size + rounding)
    return ~(same | (near & np.isfinite(left) & np.isfinite(right)))
