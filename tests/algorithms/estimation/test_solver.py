"""The solver returns the iterate for which it reports convergence."""

import jax.numpy as jnp

from jaxdp.estimation.objectives import Evaluation
from jaxdp.estimation.solver import minimize


def test_a_converged_iterate_replaces_one_with_a_smaller_certificate():
    """Starts where the gradient is small, but the curvature is so small that the minimum is far away."""

    def objective(theta):
        near = jnp.abs(theta[0]) < 1e-3
        return Evaluation(
            value=jnp.where(near, 0.0, -1.0),
            magnitude=jnp.ones(()),
            gradient=jnp.where(near, -1e-6, 5e-6)[None],
            hessian=jnp.where(near, 1e-9, 1.0)[None, None],
            ridge=jnp.asarray(1e-13),
        )

    result = minimize(objective, dim=1, radius=jnp.asarray(jnp.inf), tolerance=jnp.asarray(1e-5), max_steps=20)
    assert bool(result.converged)
    assert abs(float(result.theta[0])) > 1
    assert float(result.certificate) > 4e-6
