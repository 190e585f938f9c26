"""Unstable parts of JAX are imported in one place, can be turned off, and fit the installed JAX."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.numerics.kernels import lanes_last
from tests.numerics import plain_sample

UNSTABLE = re.compile(
    r"^\s*(from|import) jax\.(_src|custom_batching|experimental(\.| import .*)(layout|xla_metadata))", re.MULTILINE
)


def test_unstable_modules_are_imported_in_one_place():
    folder = Path(jaxdp.__file__).parent
    users = {path.name for path in folder.rglob("*.py") if UNSTABLE.search(path.read_text(encoding="utf-8"))}
    assert users == {"private_jax.py"}


@pytest.mark.parametrize(
    "line",
    [
        "from jax.experimental import enable_x64, layout",
        "from jax.experimental.xla_metadata import set_xla_metadata",
        "    import jax.custom_batching",
        "import jax._src.core",
    ],
)
def test_an_import_elsewhere_is_seen(line):
    assert UNSTABLE.search(f"import jax\n{line}\n")
    assert not UNSTABLE.search("import jax.experimental.compilation_cache")


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_index_of_a_conditional_maximum_has_lanes_as_the_fast_axis(rank):
    """Compiles a program at which XLA of JAX 0.12 stops if nothing keeps its order of axes from the index."""
    scores = np.random.default_rng(0).normal(size=(*(2, 3, 4)[:rank], 5)).astype(np.float32)

    def commit(scores, round_):
        best = jax.lax.cond(round_ == 3, lambda: jax.lax.argmax(scores, 0, jnp.int32), lambda: jnp.int32(0))
        return lanes_last(best)

    mapped = commit
    for _ in range(rank):
        mapped = jax.vmap(mapped, in_axes=(0, None))
    np.testing.assert_array_equal(jax.jit(mapped)(scores, 3), scores.argmax(-1))


@pytest.mark.parametrize("part", plain_sample.PARTS)
def test_results_are_the_same_without_unstable_modules(part):
    environment = os.environ | {"JAXDP_PLAIN": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    script = subprocess.run(
        [sys.executable, plain_sample.__file__, part], env=environment, capture_output=True, text=True, check=True
    )
    plain = json.loads(script.stdout)
    assert plain["plain"]
    for name, values in plain_sample.sample(part).items():
        rounding = 0 if name in ("rounds", "blocks") else 1e-5  # counts of plays are exact
        np.testing.assert_allclose(plain["sample"][name], values, rtol=rounding, err_msg=name)
