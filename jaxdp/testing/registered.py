"""The contract checks of what is registered, by its name."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.testing.contracts import check_estimator, check_learner, check_mechanism


def check_registered(name: str, *, seed: int = 0, num_lanes: int = 10_000) -> None:
    """Checks the contract of a registered mechanism, learner or estimator, on its tiny problem.

    As `check_mechanism` (on both neighbours), `check_learner` or `check_estimator`; and that the attack on its claim
    can be made: neighbours have equal shapes and dtypes, and a learner's differ in one round and are such users as it
    draws. Whether noise is enough, `python -m jaxdp audit` tells.

    Your own are found if they are registered: by the module that calls this, or by an entry point of the group
    `jaxdp.register`.

    Args:
        name: as `python -m jaxdp list` has it.
        seed: of the checks' keys, in [0, 2**32).
        num_lanes: of a learner, by how many lanes of each engine the laws are compared, as in `check_learner`.

    Raises:
        AssertionError: if a check fails.
        ValueError: if the name is not registered, or its neighbours do not fit.

    Examples:
        >>> check_registered("laplace")
    """
    # Here, since `jaxdp.testing` is imported for less, too.
    from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS, attacks
    from jaxdp.registry.claims import paths
    from jaxdp.registry.registered import entry_of

    attacks([name])  # refuses what is not registered
    first, second = (jax.tree.map(jnp.asarray, data) for data in entry_of(name).make_neighbours())
    forms = _forms(first), _forms(second)
    assert forms[0] == forms[1], f"neighbours must have equal shapes and dtypes, got {forms[0]} and {forms[1]}"
    root = jax.random.key(seed)
    for make in paths(entry_of(name)).values():
        attack = make()
        for data in (first, second):
            jax.eval_shape(attack.release, root, attack.params, data)
    if name in LEARNERS:
        entry = LEARNERS[name]
        if entry.draw_user is not None:
            one = _forms(jax.tree.map(lambda x: x[0], first))
            drawn = one if entry.is_adaptive else _forms(jax.eval_shape(entry.make_user, root))  # `play` compares them
            assert drawn == one, f"draw_user must draw a user as neighbours have them, {one}, got {drawn}"
        check_learner(
            entry.make(),
            entry.make_environment(),
            entry.values,
            horizon=entry.horizon,
            key=jax.random.fold_in(root, 3),
            num_lanes=num_lanes,
            draws_in_update=entry.draws_in_update,
            may_claim_less=entry.may_claim_less,
            multiple=entry.sizes[entry.multiple] if entry.multiple else 1.0,
        )
    elif name in ESTIMATORS:
        entry = ESTIMATORS[name]
        features, labels = entry.make_data(jax.random.fold_in(root, 1))
        check_estimator(entry.make(), entry.values, features, labels, key=jax.random.fold_in(root, 2))
    else:
        entry = MECHANISMS[name]
        made = entry.make()
        for data in (first, second):
            check_mechanism(made.params, made.guarantee, made.release, entry.values, data, exact=made.exact, key=root)


def _forms(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), tree)
