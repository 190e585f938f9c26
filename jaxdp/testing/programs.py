"""Runs a function of (key, params) in several ways, and checks that the results agree."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Guarantee
from jaxdp.testing.checks import STRUCTURE, Check, Shared
from jaxdp.testing.devices import check_for_gpu
from jaxdp.testing.duties import check_arguments, check_claim, check_close, check_refusals, check_values, claim_at
from jaxdp.testing.keys import check_keys_of

NUM_SEEDS = 3
TOLERANCE = 1e-4  # allowed relative and absolute difference between programs that should compute the same values


class Programs:
    """An algorithm at a grid point and at other epsilons. The results of each way to run it are computed at first use.

    Attributes:
        params: (**values) -> params of `run`, on the host.
        guarantee: (**values) -> Guarantee, on the host.
        values: the grid point; if it has `epsilon`, other values of epsilon are used, too.
        key: key of the checks.
        tolerance: relative and absolute difference that is allowed between programs that should compute the same
            values.
        inputs: for each input, the arguments of `run` after key and params.
        traces: a list with one entry for each trace of `run` (for a learner, of a single round).
        algorithm: the learner or estimator; not set for a mechanism.
        arguments: names of the arguments of the algorithm's functions, by function.
        multiple: the guarantee's epsilon divided by the epsilon of the values.
        may_claim_less: whether the guarantee may have a smaller epsilon.
    """

    algorithm: Any
    arguments: Mapping[str, tuple[str, ...]] = {}
    multiple, may_claim_less = 1.0, False

    def __init__(
        self,
        params: Callable[..., Any],
        guarantee: Callable[..., Guarantee],
        values: Mapping[str, float],
        *,
        key: jax.Array,
        tolerance: float,
        inputs: Sequence[tuple[Any, ...]] = ((),),
    ) -> None:
        self.params, self.guarantee, self.values = params, guarantee, dict(values)
        self.key, self.tolerance, self.inputs = key, tolerance, inputs
        self.keys = jax.random.split(key, NUM_SEEDS)
        self.traces: list[Any] = []

    def run(self, key: jax.Array, params: Any, *inputs: Any) -> Any:
        """Returns the outputs of one lane."""
        raise NotImplementedError

    @Shared
    def claim(self) -> Guarantee:
        """The claim at the values."""
        return claim_at(self.guarantee, self.values)

    @Shared
    def first_point(self) -> Any:
        """The params at the values."""
        return self.params(**self.values)

    @Shared
    def points(self) -> list[Any]:
        """The params at epsilon, at epsilon / 2 and at infinity, which must have the same form."""
        if not self.has_epsilon:
            return [self.first_point]
        epsilons = self.values["epsilon"], self.values["epsilon"] / 2, np.inf
        points = [self.params(**{**self.values, "epsilon": epsilon}) for epsilon in epsilons]
        forms = [jax.eval_shape(lambda point: point, point) for point in points]
        for epsilon, form in zip(epsilons, forms, strict=True):
            assert form == forms[0], (
                f"one trace must serve every epsilon, got params of the form {form} at epsilon = {epsilon}, and "
                f"{forms[0]} at {epsilons[0]}"
            )
        return points

    @Shared
    def params_batch(self) -> Any:
        """The params at all points as one pytree, with a leading axis of points."""
        return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *self.points)

    @Shared
    def trace(self) -> Any:
        """The trace of `run` at the values; `traces` also counts traces at other points."""
        self.jitted = jax.jit(self._count)
        return self.jitted.trace(self.keys[0], self.first_point, *self.inputs[0])

    def _count(self, key: jax.Array, params: Any, *inputs: Any) -> Any:
        self.traces.append(key)
        with jax.default_matmul_precision("highest"):  # simulations are traced with this precision
            return self.run(key, params, *inputs)

    @Shared
    def lane_outputs(self) -> list[Any]:
        """Outputs of the compiled `run`, lane by lane: for each input, leaves of shape [points, seeds, ...]."""
        assert self.trace is not None

        def every_lane(inputs: tuple[Any, ...]) -> Any:
            return stack([stack([self.jitted(key, point, *inputs) for key in self.keys]) for point in self.points])

        return [every_lane(inputs) for inputs in self.inputs]

    @Shared
    def batch_outputs(self) -> list[Any]:
        """Outputs of `run` for all lanes in one batch, in the form of `lane_outputs`."""
        assert self.trace is not None
        run = compile_batch(self.run, len(self.inputs[0]))
        return [run(self.keys, self.params_batch, *inputs) for inputs in self.inputs]

    @Shared
    def eager_outputs(self) -> tuple[list[Any], jax.errors.KeyReuseError | None]:
        """Runs the first lane eagerly for each input. Also returns the error of a reused key, or None."""
        assert self.trace is not None
        key, point = self.keys[0], jax.tree.map(jnp.asarray, self.first_point)
        runs = [find_reuse(lambda: self.run(jax.random.clone(key), point, *inputs)) for inputs in self.inputs]  # noqa: B023
        return [outputs for outputs, _ in runs], next((error for _, error in reversed(runs) if error), None)

    def check_arguments(self) -> None:
        """Checks the names of the arguments of the algorithm's functions."""
        functions = {name: getattr(self.algorithm, name) for name in self.arguments}
        check_arguments({name: (function, self.arguments[name]) for name, function in functions.items() if function})

    def check_values(self) -> None:
        """Checks that params and guarantee take the same values and defaults, and that the claim is a `Guarantee`."""
        check_values(self.algorithm.params, self.algorithm.guarantee)
        assert self.claim is not None

    def check_claim(self) -> None:
        """Checks that a guarantee, if it claims anything, claims the values' epsilon (see `duties.check_claim`)."""
        if self.claim.is_private:
            check_claim(self.guarantee, self.values, self.multiple, or_less=self.may_claim_less)

    def check_trace(self) -> None:
        """Checks that the functions fit together and can be traced."""
        assert self.trace is not None

    def check_one_trace(self) -> None:
        """Checks that one compiled program serves every epsilon."""
        assert self.lane_outputs is not None
        assert len(self.traces) == 1, f"one trace must serve every epsilon, got {len(self.traces)}"

    def check_eager(self) -> None:
        """Checks that the compiled program has about the same floats as an eager run."""
        for eager, lanes in zip(self.eager_outputs[0], self.lane_outputs, strict=True):
            check_close(eager, jax.tree.map(lambda leaf: leaf[0, 0], lanes), self.tolerance)

    def check_vmap(self) -> None:
        """Checks that lanes have about the same floats in a batch as one by one."""
        for batch, lanes in zip(self.batch_outputs, self.lane_outputs, strict=True):
            check_close(batch, lanes, self.tolerance)

    def check_gpu(self) -> None:
        """Checks that the program lowers for a GPU, without operations that are slow, inexact or random there."""
        check_for_gpu(self.trace, allowed=("LayoutConstraint",))  # layouts are set only in implementations for CPUs

    def check_keys(self) -> None:
        """Checks that no key is used twice, in the trace and in a run."""
        assert self.trace is not None
        self.check_traced_keys()
        error = self.eager_outputs[1]
        if error is not None:
            raise error

    def check_traced_keys(self) -> None:
        """Checks that no key is used twice in the trace."""
        check_keys_of(self.trace.jaxpr)

    def duties(self) -> list[Check]:
        """Returns the checks of argument names and of values, and then the checks of `claims` and `ways`."""
        checks = [
            Check("argument names", STRUCTURE, self.check_arguments),
            Check("values of params and guarantee", STRUCTURE, self.check_values),
        ]
        return [*checks, *self.claims(), *self.ways()]

    def claims(self) -> list[Check]:
        """Returns the checks of rejected epsilons and of the claim; an empty list if the values have no epsilon."""
        if not self.has_epsilon:
            return []
        return [
            Check("refusals", STRUCTURE, lambda: check_refusals(self.params, self.values)),
            Check("claim depends on epsilon", STRUCTURE, self.check_claim),
        ]

    def ways(self) -> list[Check]:
        """Returns the checks of the program's structure.

        The checks test that the program can be traced, once for all epsilons; that compiled, batched and eager runs
        have about the same floats; that the program uses no key twice; and that it suits a GPU.
        """
        return [
            Check("shapes fit under jit", STRUCTURE, self.check_trace),
            *([Check("one trace for all epsilons", STRUCTURE, self.check_one_trace)] if self.has_epsilon else []),
            Check("jit equals eager", STRUCTURE, self.check_eager),
            Check("vmap equals loop", STRUCTURE, self.check_vmap),
            Check("no key used twice", STRUCTURE, self.check_keys),
            Check("runs on a GPU", STRUCTURE, self.check_gpu),
        ]

    @property
    def has_epsilon(self) -> bool:
        """Whether epsilon is among the values."""
        return "epsilon" in self.values


def find_reuse(run: Callable[[], Any]) -> tuple[Any, jax.errors.KeyReuseError | None]:
    """Runs a function; returns its result, and JAX's error if the function uses a key twice (otherwise None)."""
    try:
        with jax.debug_key_reuse(True):
            return run(), None
    except jax.errors.KeyReuseError as error:
        return run(), error


def stack(trees: Sequence[Any]) -> Any:
    """Stacks pytrees along a leading axis, as NumPy arrays, because JAX would compile the stacking."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *jax.device_get(list(trees)))


def compile_batch(run: Callable[..., Any], num_inputs: int = 0) -> Callable[..., Any]:
    """Compiles `run` with `jax.vmap` over seeds inside `jax.vmap` over stacked params, as users nest them."""
    unbatched = (None,) * num_inputs
    return jax.jit(jax.vmap(jax.vmap(run, (0, None, *unbatched)), (None, 0, *unbatched)))
