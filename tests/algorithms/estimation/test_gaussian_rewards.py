"""The synthetic problems: the norm of the reward parameter as a value of a sweep."""

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

from jaxdp.estimation import gaussian_rewards, mle, plackett_luce_mle, plackett_luce_rewards
from jaxdp.simulation import estimation_run, sweep

MAKERS: dict[str, Any] = {
    "gaussian_rewards": (mle, lambda **norm: gaussian_rewards(num_samples=30, dim=2, **norm)),
    "plackett_luce_rewards": (
        plackett_luce_mle,
        lambda **norm: plackett_luce_rewards(num_samples=30, num_actions=3, dim=2, **norm),
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_norms_of_a_sweep_are_those_of_separate_problems(name):
    estimator, make = MAKERS[name]
    asked: dict[str, Any] = {"num_seeds": 3, "key": jax.random.key(0), "progress": False, "tile_size": 16}
    swept = sweep(
        lambda: estimation_run({"a": estimator()}, make()), axes={"parameter_norm": [0.5, np.inf]}, **asked
    ).l2_error
    assert (swept.sel(parameter_norm=0.5) != swept.sel(parameter_norm=np.inf)).any()
    for norm in (0.5, None):
        run = estimation_run({"a": estimator()}, make(parameter_norm=norm))
        alone = sweep(partial(lambda run: run, run), axes={"ridge": [0.0]}, **asked).l2_error
        np.testing.assert_array_equal(swept.sel(parameter_norm=norm or np.inf), alone[0])


@pytest.mark.parametrize("norm", [0.0, np.nan, -1.0])
def test_a_norm_that_is_not_positive_is_refused(norm):
    with pytest.raises(ValueError, match="parameter_norm must be > 0"):
        gaussian_rewards(num_samples=30, dim=2).params(parameter_norm=norm)
