"""Plays the suite with one learner or estimator, and stores every seed's value in one JSON file."""

import inspect
import json
import math
import os
import platform
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from jaxdp.comparisons import compare
from jaxdp.comparisons._compare import make_learner_for, sizes_of
from jaxdp.core import Estimator, Learner, Problem, default_float
from jaxdp.core.conversions import gaussian_epsilon, zcdp_epsilon
from jaxdp.registry import ESTIMATORS, LEARNERS
from jaxdp.simulation.run.values import parameters
from jaxdp.simulation.sweeps._claims import claim_columns
from jaxdp.suite import _attack, v1
from jaxdp.suite._programs import FIXED, code_hash, earlier_entry, resolve
from jaxdp.validation import check_choice

LIST = re.compile(r"\[\n([^][]*)\n *\]")  # a list of numbers over several lines; strings in JSON have no line breaks
MISSING = re.compile(r"TypeError: (\w+)\(\) missing \d+ required keyword-only arguments?: (.*)")
PACKAGES = ("jaxdp", "jax", "jaxlib", "numpy")


def file_name(name: str, unit: str) -> str:
    """Returns the name of a learner's file of results."""
    return f"{name.replace(':', '.')}{'.person' if unit == 'person' else ''}.json"


def bench(
    name: str,
    path: Path,
    *,
    quick: bool = False,
    verify: bool = False,
    unit: str = "round",
    tuned: Mapping[str, Any] = {},
    family: str | None = None,
    proof: str = "",
    report: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Plays every instance that fits a learner, and writes the results after each instance; a second call resumes.

    Args:
        name: as for `resolve`.
        path: the JSON file; new, or written by an earlier call with the same arguments, except family, proof and
            report.
        quick: whether to use few seeds and short horizons. Standings do not mix quick and full results.
        verify: whether to use the second set of seeds.
        unit: the privacy unit, "round" or "person". With "person", people come according to `v1.schedule`, and learners
            use the first visit of each person, by `jaxdp.per_person`.
        tuned: arguments and values, other than epsilon and delta, that you chose for this learner; the learner's row is
            then marked.
        family: family of the instances to play; None plays all.
        proof: link to a proof of the claim. If it is empty, the link of an earlier call is kept.
        report: function that is called with one line of text for each instance that this call plays. It is also called
            for each family in which no instance fits and, in other families, for each instance that does not fit.

    Returns:
        The contents of the file.

    Raises:
        ValueError: if the file is not JSON, or has results of another learner, code, protocol, unit, `tuned`, version
            or precision; if `name` or `unit` is unknown; if `tuned` has epsilon or delta; if no instance fits the
            learner (the file is then removed); if `proof` is not a link; if an earlier entry of the registry differs
            from this learner only in arguments that the benchmark chooses, such as the kind of rewards.
    """
    for fixed in ("epsilon", "delta"):
        if fixed in tuned:
            raise ValueError(f"value must not be {fixed}, which the protocol fixes, got {fixed}={tuned[fixed]!r}")
    check_choice("unit", unit, v1.UNITS)
    if proof and not proof.startswith(("https://", "http://")):
        raise ValueError(f"proof must be a link that begins with https:// or http://, got {proof!r}")
    factory, variant = resolve(name)
    if same := earlier_entry(name):
        raise ValueError(f"learner must be {same}: the benchmark chooses the rewards, so {name} would play the same")
    head = {
        "suite": "v1",
        "suite_hash": v1.suite_hash(),
        "protocol": ("quick" if quick else "full") + (" verify" if verify else ""),
        "unit": unit,
        "learner": name,
        "code": code_hash(name),
        "arguments": {key: repr(value) for key, value in variant.items()},
        "tuned": {key: repr(value) for key, value in tuned.items()},
        "versions": {**{package: version(package) for package in PACKAGES}, "python": platform.python_version()},
        "precision": 8 * default_float().itemsize,
    }
    record = _read(path, head) or {
        **head,
        "proof": proof,
        "machine": _machine(),
        "instances": {},
        "attack": {},
    }
    if proof and proof != record["proof"]:
        record["proof"] = proof
        _write(path, record)
    for instance in v1.INSTANCES.values():
        if family not in (None, instance.family):
            continue
        if instance.name not in record["instances"]:
            start = time.perf_counter()
            try:
                played = _play(name, factory, {**variant, **tuned}, instance, unit, quick, verify)
            except (ValueError, TypeError) as error:
                played = {"skipped": _reason(error)}
            record["instances"][instance.name] = {**played, "seconds": round(time.perf_counter() - start, 2)}
            _write(path, record)
            if "skipped" not in played:
                report(f"{instance.name}: played")
        is_target = _attack.TARGETS.get(instance.family) == instance.name
        if is_target and instance.name not in record["attack"] and "skipped" not in record["instances"][instance.name]:
            arguments = {**variant, **tuned}
            record["attack"][instance.name] = _attack_instance(name, factory, arguments, instance, unit, quick)
            _write(path, record)
    reasons = {at: _plain(played["skipped"]) for at, played in record["instances"].items() if "skipped" in played}
    families = {at.partition(".")[0] for at in record["instances"] if at not in reasons}
    unfit: dict[str, str] = {}  # the first reason of each family with no instance that fits
    for at, reason in reasons.items():
        if (skipped := at.partition(".")[0]) in families:
            report(f"{at}: not played: {reason}")
        else:
            unfit.setdefault(skipped, reason)
    if not families:
        path.unlink(missing_ok=True)
        texts = "; ".join(f"{at}: {reason}" for at, reason in unfit.items())
        raise ValueError(f"learner must play some instance, got {name!r}, which plays none: {texts}")
    for skipped, reason in sorted(unfit.items()):
        report(f"{skipped}: no instance fits: {reason}")
    return record


def _play(
    name: str,
    factory: Any,
    arguments: Mapping[str, Any],
    instance: v1.Instance,
    unit: str,
    quick: bool,
    verify: bool,
) -> dict[str, Any]:
    """Plays one instance at every epsilon; returns the metric of every seed and the claims.

    Raises:
        ValueError: if the instance does not fit, if the learner may stop early, or if `_check_claims` raises it.
    """
    made, contestant, (algorithm, own_values), values = _contestant(name, factory, arguments, instance, unit, quick)
    if not isinstance(made, Problem):  # a problem adds values to an estimator's claim, which is checked after the play
        own_values = {**values, **own_values}
        claimed = {at: algorithm.guarantee(**_values(algorithm, own_values, at)) for at in v1.EPSILONS}
        _check_claims(name, [{"epsilon": at, **claim_columns(claim)} for at, claim in claimed.items()])
    horizon = instance.horizon(quick)
    problem: dict[str, Any] = {"problem": made} if isinstance(made, Problem) else {"world": made, "horizon": horizon}
    if unit == "person":
        problem["unit"] = unit
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* hears .* rounds")  # the protocol fixes the number of people
        comparison = compare(
            {name.lstrip("_"): contestant},
            **problem,
            epsilon=list(v1.EPSILONS),
            num_seeds=v1.QUICK_SEEDS if quick else v1.SEEDS,
            key=jax.random.key(v1.ROOT_SEEDS["verify" if verify else "scores"]),
            metric=instance.metric,
            values=values,
        )
    table = comparison.claims()
    _check_claims(name, table.to_dict("records"))
    claims = {}
    for epsilon in v1.EPSILONS:
        claim = table[table.epsilon == epsilon].iloc[0]
        parts = {key: str(claim[key]) for key in ("claim", "kind", "trust_model", "privacy_unit")}
        claims[f"{epsilon:g}"] = parts
    scores = comparison.values().sel({comparison.along: name.lstrip("_")}).squeeze()  # a unit is an axis of one value
    numbers = {
        f"{epsilon:g}": [float(f"{value:.7g}") for value in scores.sel(epsilon=epsilon).values.tolist()]
        for epsilon in v1.EPSILONS
    }
    return {"metric": instance.metric, "horizon": horizon, "values": numbers, "claims": claims}


def _check_claims(name: str, rows: Sequence[Mapping[Any, Any]]) -> None:
    """Raises ValueError if a claim at a finite epsilon is weaker than (epsilon, `v1.DELTA`)-DP, or claims differ.

    Claims at finite epsilons must have the same kind, trust model and privacy unit, because one table ranks them.
    """
    rows = [row for row in rows if math.isfinite(row["epsilon"])]
    for row in rows:
        epsilon, (claimed_epsilon, claimed_delta) = row["epsilon"], _epsilon_and_delta(row)
        if claimed_delta > v1.DELTA * (1 + 1e-6) or claimed_epsilon > epsilon * (1 + 1e-6):
            raise ValueError(
                f"{name} must claim ({epsilon:g}, {v1.DELTA:g})-DP or more privacy at epsilon = {epsilon:g}, "
                f"got {row['claim']}"
            )
    sorts = list(dict.fromkeys((row["kind"], row["trust_model"], row["privacy_unit"]) for row in rows))
    if len(sorts) > 1:
        raise ValueError(f"{name} must claim the same kind of privacy at every finite epsilon, got {sorts}")


def _epsilon_and_delta(row: Mapping[Any, Any]) -> tuple[float, float]:
    """Returns the epsilon and delta that a claim states or, at the protocol's delta, implies; zeros for no claim."""
    if row["kind"] == "zcdp":
        return zcdp_epsilon(row["claimed_rho"], v1.DELTA), v1.DELTA
    if row["kind"] == "gaussian":
        return gaussian_epsilon(v1.DELTA, 1 / row["claimed_mu"]), v1.DELTA
    return (0.0, 0.0) if row["kind"] == "none" else (row["claimed_epsilon"], row["claimed_delta"])


def _contestant(
    name: str, factory: Any, arguments: Mapping[str, Any], instance: v1.Instance, unit: str, quick: bool
) -> tuple[Any, Any, tuple[Any, dict[str, Any]], dict[str, float]]:
    """Makes a contestant for an instance; raises ValueError if the contestant does not fit.

    Returns:
        The world or problem, the contestant for `compare`, the learner or estimator with the values that its arguments
        give, and the values that the protocol fixes.
    """
    made, horizon = instance.make_for(unit, quick), instance.horizon(quick)
    num_used = made.visits.num_heard(1, horizon) if unit == "person" else horizon
    completed, sizes = dict(arguments), instance.sizes_for(unit)
    if name in LEARNERS and "horizon" in LEARNERS[name].sizes:  # some variants of a factory need it, others reject it
        completed.setdefault("horizon", num_used)
    is_estimation = isinstance(made, Problem)
    if name in (LEARNERS if is_estimation else ESTIMATORS):
        needed, got = ("an estimator", "a learner") if is_estimation else ("a learner", "an estimator")
        raise ValueError(f"{name} must be {needed} to play {instance.family}, got {got}")
    if callable(factory) and not isinstance(factory, Learner | Estimator):
        sizes_of_world = {} if is_estimation else sizes_of(made, num_used)
        for argument, parameter in inspect.signature(factory).parameters.items():
            is_named = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            is_needed = is_named and parameter.default is parameter.empty
            if argument in sizes:
                completed.setdefault(argument, sizes[argument])
            elif argument in FIXED and is_needed:
                completed.setdefault(argument, FIXED[argument](num_used))
            elif is_needed and argument not in completed | sizes_of_world:
                raise ValueError(f"{name} needs {argument}, which instances of {instance.family} do not have")
    contestant, own_values = (factory, completed), {}
    if is_estimation:
        algorithm = factory if isinstance(factory, Estimator) or not callable(factory) else factory(**completed)
        if not isinstance(algorithm, Estimator):
            raise ValueError(f"{name} must be an estimator to play {instance.name}")
    else:
        algorithm, own_values = make_learner_for(name, contestant, made, horizon, unit if unit == "person" else None)
        if algorithm.done is not None:  # regret of fewer rounds would be divided by the regret of all rounds
            raise ValueError(f"{name} must play until the horizon, got a learner that may stop earlier (`done`)")
    fixed = {"delta": v1.DELTA} if "delta" in parameters(algorithm.params) else {}
    if unit == "person":
        claims = [
            algorithm.guarantee(**_values(algorithm, {**fixed, **own_values}, epsilon)) for epsilon in v1.EPSILONS
        ]
        for claim in claims:
            if claim.is_private and claim.unit != unit:
                raise ValueError(f"{name} must claim privacy for a person to be played per person, got {claim}")
    return made, contestant, (algorithm, own_values), fixed


def _values(algorithm: Any, values: Mapping[str, Any], epsilon: float) -> dict[str, Any]:
    """Returns the values, with this epsilon if the algorithm accepts an epsilon."""
    return {**values, "epsilon": epsilon} if "epsilon" in parameters(algorithm.params) else dict(values)


def _attack_instance(
    name: str, factory: Any, arguments: Mapping[str, Any], instance: v1.Instance, unit: str, quick: bool
) -> dict[str, Any]:
    """Attacks the claim at epsilon 1 on one instance; returns the attack's record, or the reason why there was none."""
    world, _, (learner, own_values), fixed = _contestant(name, factory, arguments, instance, unit, quick)
    horizon = instance.horizon(quick)
    values = _values(learner, {**fixed, **own_values}, _attack.EPSILON)
    if not learner.guarantee(**values).is_private:
        return {"not attacked": "no claim"}
    key = jax.random.key(v1.ROOT_SEEDS["scores"])
    try:
        return _attack.attack(key, learner, values, world, horizon, _attack.TRIALS["quick" if quick else "full"])
    except (ValueError, TypeError, NotImplementedError) as error:
        return {"not attacked": _reason(error)}


def _reason(error: Exception) -> str:
    """Returns an error as one line; a TypeError, which is a fault of the learner's code, with its name."""
    return " ".join((f"TypeError: {error}" if isinstance(error, TypeError) else str(error)).split())[:300]


def _plain(reason: str) -> str:
    """Returns a reason for users. Older files have the names of exceptions, and Python's text for a missing size."""
    reason = reason.removeprefix("ValueError: ")
    return MISSING.sub(lambda match: f"{match[1]} needs {match[2].replace(chr(39), '')}", reason)


def _read(path: Path, head: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the results of an earlier call, or None if there is no file; raises ValueError if `head` differs."""
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"out must hold results of bench or be new, got {path}, which is not JSON") from error
    for key, value in head.items():
        if not isinstance(record, dict) or record.get(key) != value:
            got = record.get(key) if isinstance(record, dict) else None
            raise ValueError(f"out must be new, or hold results with {key} {value!r}, got {path} with {got!r}")
    return record


def _write(path: Path, record: Mapping[str, Any]) -> None:
    """Writes the record, with one line for each list, and replaces the file in one step."""
    text = json.dumps(record, indent=1, sort_keys=True)
    beside = path.with_name(path.name + ".part")
    beside.write_text(LIST.sub(lambda match: f"[{' '.join(match[1].split())}]", text) + "\n")
    os.replace(beside, path)


def _machine() -> str:
    return f"{jax.devices()[0].device_kind}, {platform.machine()}, {os.cpu_count()} cores"
