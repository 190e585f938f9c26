"""Returns and runs the checks of an algorithm of any kind, or of a registered algorithm by name."""

from collections.abc import Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.core import Environment, Estimator, Learner
from jaxdp.simulation.run.values import parameters
from jaxdp.testing.checks import STRUCTURE, Check, run_checks
from jaxdp.testing.estimators import EstimatorPrograms
from jaxdp.testing.learners import NUM_LANES, LearnerPrograms
from jaxdp.testing.mechanisms import MechanismPrograms
from jaxdp.validation import did_you_mean


def checks_of(
    algorithm: Any,
    environment: Environment | None = None,
    values: Mapping[str, float] | None = None,
    *,
    key: jax.Array | None = None,
    num_lanes: int = NUM_LANES,
    **options: Any,
) -> list[Check]:
    """Returns the checks of an algorithm's contract; you can call each check separately.

    The checks share their computations; a check that you call separately computes only the values that it needs. The
    how-to page `docs/howto/own_learner.md` shows the checks in pytest.

    Args:
        algorithm: a name from `python -m jaxdp list`, or an entry of `jaxdp.registry`, which is checked on its tiny
            problem; or a `Learner`, for which you must give environment, values and horizon; or an `Estimator`, for
            which you must give values, features and labels.
        environment: the environment that a `Learner` plays.
        values: a grid point of a `Learner` and its environment, or of an `Estimator`.
        key: key of the checks; by default the key of seed 0.
        num_lanes: for a learner, the number of lanes for each engine and each epsilon in comparisons of distributions.
        **options: for a `Learner`, `horizon` and other arguments of `check_learner`; for an `Estimator`, `features`,
            `labels` and other arguments of `check_estimator`; but not `skip` and `only`. For a name or an entry, no
            options.

    Returns:
        The checks. Each has a `name` and a `kind` ("structure" or "distribution"). Calling a check runs it, and raises
        an AssertionError if the algorithm fails.

    Raises:
        ValueError: if a name is not registered, or algorithm has another type; if an argument that the algorithm needs
            is missing, or does not fit (see `check_learner`); if an argument is given that only another kind of
            algorithm takes; or if an option is unknown.

    Examples:
        >>> [check.name for check in checks_of("laplace")][:3]
        ['neighbours', 'refusals', 'claim depends on epsilon']
        >>> checks_of("laplace")[0]()
    """
    _check_options(options)
    key = jax.random.key(0) if key is None else key
    if isinstance(algorithm, Learner | Estimator):
        return _checks_of_made(algorithm, environment, values, key, num_lanes, options)
    given = {"environment": environment, "values": values, **options}
    extra = [name for name, value in given.items() if value is not None or name in options]
    if extra:
        raise ValueError(f"{extra[0]} must be given only with a Learner or an Estimator, got it with {algorithm!r}")
    return _checks_of_entry(_entry(algorithm), key, num_lanes)


def check_registered(
    name: str, *, seed: int = 0, num_lanes: int = NUM_LANES, skip: Collection[str] = (), only: Collection[str] = ()
) -> None:
    """Runs the checks of a registered mechanism, learner or estimator on its tiny problem.

    These are the checks of `check_mechanism` (on both neighbours), `check_learner` or `check_estimator`. In addition,
    an attack on the claim must be possible: neighbours must have equal shapes and dtypes, and users that a learner's
    entry draws must have the form of users in the neighbours. `python -m jaxdp audit` tests whether the noise is large
    enough.

    Your own algorithm must be registered before this call, or by an entry point of the group `jaxdp.register`.

    Args:
        name: a name from `python -m jaxdp list`.
        seed: seed of the checks' keys, in [0, 2**32).
        num_lanes: for a learner, the number of lanes for each engine and each epsilon in comparisons of distributions.
        skip: names of checks to skip; `checks_of` lists all names.
        only: names of the checks to run; empty to run all.

    Raises:
        AssertionError: if checks fail. The message lists each failed check with the reason.
        ValueError: if the name is not registered; if skip or only is a string, or has a name that no check has; or if
            num_lanes is not an integer >= 1 for a learner.

    Examples:
        >>> check_registered("laplace")
    """
    run_checks(checks_of(name, key=jax.random.key(seed), num_lanes=num_lanes), skip=skip, only=only)


def _checks_of_made(
    algorithm: Learner | Estimator,
    environment: Environment | None,
    values: Mapping[str, float] | None,
    key: jax.Array,
    num_lanes: int,
    options: Mapping[str, Any],
) -> list[Check]:
    is_learner = isinstance(algorithm, Learner)
    given = {"environment": environment, "values": values, **options}
    programs = LearnerPrograms if is_learner else EstimatorPrograms
    for name, value in given.items():
        if (value is not None or name in options) and name not in parameters(programs):
            other, this = ("an Estimator", "a Learner") if is_learner else ("a Learner", "an Estimator")
            raise ValueError(f"{name} must be given only with {other}, got it with {this}")
    for name in ("environment", "values", "horizon") if is_learner else ("values", "features", "labels"):
        if given.get(name) is None:
            raise ValueError(f"{name} must be given with {'a Learner' if is_learner else 'an Estimator'}, got None")
    if isinstance(algorithm, Learner):
        return LearnerPrograms(algorithm, key=key, num_lanes=num_lanes, **given).checks()
    del given["environment"]
    return EstimatorPrograms(algorithm, key=key, **given).checks()


def _check_options(options: Collection[str]) -> None:
    """Raises a ValueError for a name that is an option neither of a `Learner` nor of an `Estimator`."""
    names = {name for programs in (LearnerPrograms, EstimatorPrograms) for name in parameters(programs)}
    names -= {*parameters(checks_of), "learner", "estimator"}
    for name in options:
        if name not in names:
            raise ValueError(f"options must be among {', '.join(sorted(names))}, got {name}{did_you_mean(name, names)}")


def _entry(algorithm: Any) -> Any:
    # Imported here, since `jaxdp.testing` may be used without the registry.
    from jaxdp.registry import EstimatorEntry, LearnerEntry, MechanismEntry
    from jaxdp.registry.plugins import load_plugins
    from jaxdp.registry.registered import entry_of

    if isinstance(algorithm, LearnerEntry | EstimatorEntry | MechanismEntry):
        return algorithm
    if not isinstance(algorithm, str):
        raise ValueError(
            "algorithm must be a registered name, an entry of jaxdp.registry, a Learner or an Estimator, got an "
            f"instance of {type(algorithm).__name__}"
        )
    load_plugins()
    return entry_of(algorithm)


def _checks_of_entry(entry: Any, key: jax.Array, num_lanes: int) -> list[Check]:
    from jaxdp.registry import EstimatorEntry, LearnerEntry

    algorithm = entry.make()
    if isinstance(entry, LearnerEntry):
        programs = LearnerPrograms(
            algorithm,
            entry.make_environment(),
            entry.values,
            horizon=entry.horizon,
            key=jax.random.fold_in(key, 3),
            num_lanes=num_lanes,
            draws_in_update=entry.draws_in_update,
            may_claim_less=entry.may_claim_less,
            multiple=entry.sizes[entry.multiple] if entry.multiple else 1.0,
        )
    elif isinstance(entry, EstimatorEntry):
        features, labels = entry.make_data(jax.random.fold_in(key, 1))
        programs = EstimatorPrograms(algorithm, entry.values, features, labels, key=jax.random.fold_in(key, 2))
    else:
        data = [jax.tree.map(jnp.asarray, inputs) for inputs in entry.make_neighbours()]
        exact = algorithm.exact if "epsilon" in entry.values else None
        programs = MechanismPrograms(
            algorithm.params, algorithm.guarantee, algorithm.release, entry.values, data, exact=exact, key=key
        )
    return [Check("neighbours", STRUCTURE, lambda: _check_neighbours(entry, key)), *programs.checks()]


def _check_neighbours(entry: Any, key: jax.Array) -> None:
    """Checks that attacks on the claim of an entry are possible."""
    from jaxdp.registry import LearnerEntry
    from jaxdp.registry.claims import paths

    first, second = (jax.tree.map(jnp.asarray, data) for data in entry.make_neighbours())
    forms = _forms(first), _forms(second)
    assert forms[0] == forms[1], f"neighbours must have equal shapes and dtypes, got {forms[0]} and {forms[1]}"
    if isinstance(entry, LearnerEntry) and entry.draw_user is not None:
        form = _forms(jax.tree.map(lambda leaf: leaf[0], first))
        # For an adaptive entry, `play` makes this comparison.
        drawn_form = form if entry.is_adaptive else _forms(jax.eval_shape(entry.make_user, key))
        assert drawn_form == form, f"draw_user must draw a user as neighbours have them, {form}, got {drawn_form}"
    for make in paths(entry).values():
        attack = make()
        jax.eval_shape(attack.release, key, attack.params, first)


def _forms(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), tree)
