"""Results of one checkout of jaxdp, for `same_results.py`, which starts this as a process of its own.

Usage: python same_results_worker.py CHECKOUT OUTPUT PATTERN, with the checkout in PYTHONPATH. It uses public names
alone, and nothing beside it, for it has to run in checkouts of before and after a change.
"""

import math
import pickle
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from jaxdp import bandits, dueling, estimation, experts, preferences, registry

ENGINES = ("rounds", "blocks", "counts")
CLAIMED = ("epsilon", "delta", "trust_model", "privacy_unit")
SEEDS = 4
ARMS, HORIZON, CHECKPOINTS, FIRST_ROUNDS = 8, 3000, (1, 7, 12, 1000, 1777, 3000), 12
MAKERS = {"draw_user": "make_user"}  # an entry's methods, except those named after their results
Outputs = dict[str, np.ndarray]
Cases = Iterator[tuple[str, Callable[[], Outputs | None]]]  # None: there is no such engine


def plays() -> dict[str, tuple[Any, Any, int, Mapping[str, Any]]]:
    """Returns by name: learner, environment, horizon, values. The registered ones, and others of eight arms."""
    registered = {
        name: (entry.make(), of_sizes(entry, "environment"), of_sizes(entry, "horizon"), entry.values)
        for name, entry in registry.LEARNERS.items()
    }
    means = np.linspace(0.2, 0.8, ARMS)
    bernoulli, gaussian = bandits.bernoulli_bandit(means), bandits.gaussian_bandit(means)
    utilities = np.linspace(1.0, -2.0, ARMS)
    logistic, probit = dueling.utility_duels(utilities), dueling.utility_duels(utilities, link="probit")
    first, second = (preferences.lower_bound_matrix(ARMS, challenger) for challenger in (0, 2))
    condorcet = {name: dueling.matrix_duels(first, regret=name) for name in ("strong", "weak", "borda")}
    cyclic = dueling.matrix_duels(preferences.cyclic_matrix(ARMS), regret="borda")
    switching = dueling.switching_duels([first, second], [0, HORIZON // 2])
    adaptive, stochastic = experts.adaptive_losses(means, penalty=0.1), experts.stochastic_losses(means)
    sequence = experts.loss_sequence(np.random.default_rng(0).uniform(size=(HORIZON, ARMS)))
    etc = partial(bandits.explore_then_commit, num_arms=ARMS, explore_rounds=800)
    weights = partial(experts.exponential_weights, num_experts=ARMS, horizon=HORIZON)
    elimination = partial(dueling.ebs_elimination, num_arms=ARMS, horizon=HORIZON)
    local = partial(dueling.ebs_local, num_arms=ARMS, horizon=HORIZON)
    sparring = partial(dueling.versatile_sparring, num_arms=ARMS)
    phased = dueling.ebs_phased(num_arms=ARMS)
    pure, approximate, bounded = (
        {"epsilon": 1.0},
        {"epsilon": 1.0, "delta": 1e-3},
        {"reward_low": -1.0, "reward_high": 2.0},
    )
    daring = {"failure_prob": 0.1, "confidence_multiplier": 0.4}  # such that arms are dropped late
    large = {
        "explore_then_commit": (etc(), bernoulli, pure),
        "explore_then_commit, bounded": (etc(rewards="bounded"), gaussian, pure | bounded),
        "exponential_weights": (weights(), adaptive, pure),
        "exponential_weights, sequence": (weights(), sequence, pure | {"learning_rate": 0.1}),
        "exponential_weights, gaussian": (weights(noise="gaussian"), stochastic, approximate),
        "ebs_phased": (phased, logistic, pure | {"confidence_multiplier": 0.003}),
        "ebs_phased, probit": (phased, probit, pure | {"confidence_multiplier": 0.003}),
        "ebs_phased, weak": (phased, condorcet["weak"], pure | {"confidence_multiplier": 0.003}),
        "ebs_phased, borda": (phased, condorcet["borda"], pure | {"confidence_multiplier": 0.003}),
        "ebs_phased, switching": (phased, switching, pure | {"confidence_multiplier": 0.003}),
        "ebs_elimination": (elimination(), logistic, pure | daring),
        "ebs_elimination, paper": (elimination(constants="paper"), logistic, pure | {"confidence_multiplier": 0.001}),
        "ebs_elimination, gaussian": (elimination(noise="gaussian", arity=4), logistic, approximate | daring),
        "ebs_local": (local(), condorcet["strong"], pure | daring),
        "ebs_local, paper": (local(constants="paper"), logistic, pure | daring),
        "rucb": (dueling.rucb(num_arms=ARMS), condorcet["strong"], pure),
        "versatile_sparring": (sparring(), cyclic, pure),
        "versatile_sparring, gaussian": (
            sparring(report="gaussian", losses="reduced_variance", horizon=HORIZON),
            switching,
            approximate,
        ),
        "double_thompson": (dueling.double_thompson(num_arms=ARMS), condorcet["strong"], pure),
    }
    return {f"learner {name}": play for name, play in registered.items()} | {
        f"{ARMS} arms, {name}": (learner, environment, HORIZON, values)
        for name, (learner, environment, values) in large.items()
    }


def cases() -> Cases:
    """Returns every case by name. Everything that a registry names is one, so that their names are compared, too."""
    for name, (learner, environment, horizon, values) in plays().items():
        simulator = partial(jaxdp.simulator, learner, environment, horizon)
        yield f"{name}, claim", partial(run_claimed, simulator(), values)
        if horizon < HORIZON:
            yield f"{name}, first rounds", partial(first_rounds, simulator(), values)
        for engine in ENGINES:
            yield f"{name}, {engine}", partial(played, simulator, learner, horizon, engine, values)
    for name, entry in registry.LEARNERS.items():
        yield f"learner {name}, users", partial(users, entry)
    for name, entry in registry.MECHANISMS.items():
        made = mechanism(entry)
        yield f"mechanism {name}, claim", partial(claimed, made.params, made.guarantee, entry.values)
        yield f"mechanism {name}", partial(released, entry)
    for name, entry in registry.ESTIMATORS.items():
        estimator = entry.make()
        yield f"estimator {name}, claim", partial(claimed, estimator.params, estimator.guarantee, entry.values)
        yield f"estimator {name}", partial(fitted, entry)
    for kind in ("comparisons", "choices", "ballots"):
        yield f"estimation_run, {kind}", partial(estimated, kind)


def played(simulator, learner, horizon: int, engine: str, values: Mapping[str, Any]) -> Outputs | None:
    """Returns every output, and everything public, at several checkpoints."""
    looks = [look for look in CHECKPOINTS if look < horizon]
    params = simulator().params(**values)["learner"]
    public = jax.eval_shape(learner.init, jax.random.key(0), params).public

    def leaf(index: int, *seen: Any) -> Any:
        return jax.tree.leaves(seen[0].public if len(seen) == 1 else seen[0])[
            index
        ]  # a Snapshot's, or (public, action)

    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(public)]
    record = {f"public{path}": partial(leaf, index) for index, path in enumerate(paths)}
    try:
        run = simulator(checkpoints=[*looks, horizon], engine=engine, record=record)
    except ValueError as error:
        if "engine must be one that both sides have" in str(error):
            return None
        raise
    return lanes(run, points(run.params, values))


def first_rounds(run, values: Mapping[str, Any]) -> Outputs:
    """Returns the first rounds: actions, reports and everything public."""
    num_rounds = min(FIRST_ROUNDS, run.coords["round"][-1])
    return lanes(lambda key, params: run.by_round(key, params, num_rounds), points(run.params, values))


def run_claimed(run, values: Mapping[str, Any]) -> Outputs:
    return claimed(run.params, lambda **values: run.guarantee(**values)["learner"], values)


def claimed(params, guarantee, values: Mapping[str, Any]) -> Outputs:
    """Returns the claims and the parameters at the values, and without privacy if there is an epsilon."""
    made = [flat(point) for point in points(params, values)]
    claims = [guarantee(**point) for point in budgets(values)][: len(made)]
    return {
        **{name: np.asarray([getattr(claim, name) for claim in claims]) for name in CLAIMED},
        **{f"params{name}": np.stack([point[name] for point in made]) for name in made[0]},
    }


def users(entry) -> Outputs:
    """Returns the registered neighbours, and drawn users."""
    drawn = [of_sizes(entry, "draw_user", jax.random.key(seed)) for seed in range(SEEDS)]
    return flat({"neighbours": of_sizes(entry, "neighbours"), "drawn": drawn})


def released(entry) -> Outputs:
    """Returns the outputs of a mechanism's entry on both of its neighbours."""
    neighbours, made = of_sizes(entry, "neighbours"), mechanism(entry)
    release = lambda key, params: [made.release(key, params, jnp.asarray(data)) for data in neighbours]  # noqa: E731
    return lanes(release, points(made.params, entry.values)) | flat({"neighbours": neighbours})


def mechanism(entry) -> Any:
    """Returns its functions `params`, `guarantee` and `release`, at the entry's sizes.

    An older entry has them itself.
    """
    return entry.make() if hasattr(entry, "make") else entry


def fitted(entry) -> Outputs:
    """Reports and estimates for the registered data."""
    estimator = entry.make()

    def release(key, params):
        key_data, key_privatize, key_fit = jax.random.split(key, 3)
        features, labels = of_sizes(entry, "data", key_data)
        report = estimator.privatize(key_privatize, params, features, labels)
        return {"data": (features, labels), "report": report, "fit": estimator.fit(key_fit, params, features, report)}

    neighbours = flat({"neighbours": of_sizes(entry, "neighbours")})
    return lanes(release, points(estimator.params, entry.values)) | neighbours


def estimated(kind: str) -> Outputs:
    """Runs all registered estimators for this kind of data at once."""
    entries = {name: entry for name, entry in registry.ESTIMATORS.items() if kind_of_data(entry) == kind}
    if kind == "comparisons":
        problem = estimation.gaussian_rewards(num_samples=50, dim=3)
    elif kind == "choices":
        problem = estimation.plackett_luce_rewards(num_samples=50, num_actions=4, dim=3)
    else:
        orders = (((0,), (1,), (2,), (3,)), ((2,), (0, 1)), ((3,), (2,)))
        problem = estimation.ballot_election(preferences.Ballots(("a", "b", "c", "d"), orders, (5, 4, 3)))
    run = jaxdp.estimation_run({name: entry.make() for name, entry in entries.items()}, problem)
    values = {name: value for entry in entries.values() for name, value in entry.values.items()}
    return lanes(run, points(run.params, values))


def kind_of_data(entry) -> str:
    features, labels = of_sizes(entry, "data", jax.random.key(0))
    return "choices" if features.ndim == 3 else "ballots" if labels.ndim == 2 else "comparisons"


def of_sizes(entry, field: str, *arguments: Any) -> Any:
    """Returns the part of an entry at its sizes: by its method that makes it, or as the field of an older one."""
    made = getattr(entry, MAKERS.get(field, f"make_{field}"), None) or getattr(entry, field)
    return made(*arguments) if callable(made) else made


def budgets(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the values, and those without privacy if they have an epsilon."""
    return [dict(values), {**values, "epsilon": math.inf}] if "epsilon" in values else [dict(values)]


def points(params, values: Mapping[str, Any]) -> list[Any]:
    """Returns parameters at the values and without privacy, unless epsilon has to be finite."""
    first, *others = budgets(values)
    made = [params(**first)]
    for point in others:
        try:
            made.append(params(**point))
        except ValueError as error:
            if "epsilon" not in str(error):
                raise
    return made


def lanes(function, params: Sequence[Any]) -> Outputs:
    """Returns outputs for every point and seed, in one program, with keys as in a sweep."""

    def is_fixed(*leaves: Any) -> bool:  # as in a sweep: an object that is the same at all points is stored once
        return np.ndim(leaves[0]) > 0 and all(leaf is leaves[0] for leaf in leaves)

    axes = jax.tree.map(lambda *leaves: None if is_fixed(*leaves) else 0, *params)
    stacked = jax.tree.map(
        lambda *leaves: leaves[0] if is_fixed(*leaves) else np.repeat(np.stack(leaves), SEEDS, 0), *params
    )
    seeds = np.tile(np.arange(SEEDS, dtype=np.uint32), len(params))
    lane = jax.vmap(lambda key, seed, mine: function(jax.random.fold_in(key, seed), mine), in_axes=(None, 0, axes))
    return flat(jax.jit(lane)(jaxdp.random.fast_key(jax.random.key(0)), seeds, stacked))


def flat(tree: Any) -> Outputs:
    """Returns the leaves of a pytree as arrays, by their path."""
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def main(checkout: Path, output: Path, pattern: str) -> None:
    assert Path(jaxdp.__file__).is_relative_to(checkout), f"{jaxdp.__file__} is not in {checkout}"
    warnings.simplefilter("ignore", UserWarning)  # of horizons that are too short
    results: dict[str, Outputs] = {}
    for name, case in cases():
        if not re.search(pattern, name):
            continue
        start = time.monotonic()
        try:
            found = case()
        except Exception as error:
            found = {"error": np.asarray(f"{type(error).__name__}: {error}")}
        if found is not None:
            results[name] = found
            print(f"{time.monotonic() - start:6.1f} s  {name}", flush=True)
    output.write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
