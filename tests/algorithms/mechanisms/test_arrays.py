"""Values and scalars that are no numbers are refused by name, and so are masked entries."""

import jax
import numpy as np
import pytest

from jaxdp.mechanisms import (
    gaussian,
    k_norm,
    laplace,
    noisy_max,
    randomize_scalar,
    randomized_response,
    scalar_randomizer,
    vector_randomizer,
)

KEY = jax.random.key(0)
MASKED = np.ma.masked_array([1.0, 0.0], [True, False])
RELEASES = {
    "laplace": ("values", lambda values, scalar: laplace(KEY, values, scalar, l1_sensitivity=scalar)),
    "gaussian": ("values", lambda values, scalar: gaussian(KEY, values, scalar)),
    "k_norm": ("value", lambda values, scalar: k_norm(KEY, values, scalar, sensitivity=scalar)),
    "noisy_max": ("scores", lambda values, scalar: noisy_max(KEY, values, scalar)),
    "randomize_scalar": ("values", lambda values, scalar: randomize_scalar(KEY, values, scalar, bound=1.0)),
    "randomized_response": ("labels", lambda values, scalar: randomized_response(KEY, values, scalar)),
}


@pytest.mark.parametrize("name", RELEASES)
def test_what_is_no_number_is_refused_by_name(name):
    argument, release = RELEASES[name]
    for wrong, got in ((None, "NoneType"), ("x", "str")):
        with pytest.raises(ValueError, match=f"{argument} must be an array of numbers, got {got}"):
            release(wrong, 1.0)
    with pytest.raises(ValueError, match=f"{argument} must have no masked entries, got 1 of them"):
        release(MASKED, 1.0)
    values = np.zeros(2, np.int32 if argument == "labels" else np.float32)
    for wrong in (None, "x", True):
        with pytest.raises(ValueError, match=f" must be a number, got {wrong!r}"):
            release(values, wrong)


def test_randomizers_refuse_masked_entries():
    for randomizer in (scalar_randomizer(), vector_randomizer((2,), "l1")):
        with pytest.raises(ValueError, match="value must have no masked entries, got 1 of them"):
            randomizer.report(KEY, randomizer.params(epsilon=1.0), MASKED)
