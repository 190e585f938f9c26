"""Defines the checks of a mechanism on one or several inputs of the same form."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import chex
import jax
import jax.numpy as jnp

from jaxdp.core import Guarantee
from jaxdp.testing.checks import STRUCTURE, Check
from jaxdp.testing.duties import check_claim
from jaxdp.testing.programs import Programs


class MechanismPrograms(Programs):
    """A mechanism that releases a function of its data.

    The class takes the arguments of `jaxdp.testing.check_mechanism`, except `skip` and `only`; `data` is a list of
    inputs.
    """

    def __init__(
        self,
        params: Callable[..., Any],
        guarantee: Callable[..., Guarantee],
        release: Callable[[jax.Array, Any, Any], Any],
        values: Mapping[str, float],
        data: Sequence[Any],
        *,
        exact: Callable[[Any], Any] | None,
        key: jax.Array,
    ) -> None:
        if exact is not None and "epsilon" not in values:
            raise ValueError(
                f"exact must be None if values have no epsilon, got a function with values of {', '.join(values)}"
            )
        inputs = [(one_input,) for one_input in data]
        super().__init__(params, guarantee, values, key=key, tolerance=1e-6, inputs=inputs)
        self.release, self.exact = release, exact

    def run(self, key: jax.Array, params: Any, *inputs: Any) -> Any:
        """Returns the release."""
        return self.release(key, params, *inputs)

    def check_values(self) -> None:
        """Checks that `guarantee` returns a `Guarantee` for the values."""
        assert self.claim is not None

    def check_claim(self) -> None:
        """Checks that the guarantee claims the epsilon of the values, at this epsilon and at infinity."""
        assert self.claim is not None
        check_claim(self.guarantee, self.values)

    def check_noiseless(self) -> None:
        """Checks that at epsilon = inf the release is the exact output."""
        assert self.exact is not None
        for (data,), lanes in zip(self.inputs, self.lane_outputs, strict=True):
            expected = jax.tree.map(jnp.asarray, self.exact(data))
            for seed in range(len(self.keys)):
                chex.assert_trees_all_equal(jax.tree.map(lambda leaf: leaf[-1, seed], lanes), expected)  # noqa: B023

    def checks(self) -> list[Check]:
        """Returns all checks that apply to the mechanism and its values."""
        if not self.has_epsilon:
            return [Check("values of params and guarantee", STRUCTURE, self.check_values), *self.ways()]
        checks = [*self.claims(), *self.ways()]
        if self.exact is not None:
            checks += [Check("no noise at epsilon inf", STRUCTURE, self.check_noiseless)]
        return checks
