"""Programs as they are where there are other devices than CPUs; no GPU is needed to trace and lower them."""

import contextlib
from collections.abc import Iterator

import jax

from jaxdp.numerics.platforms import trace_for


@contextlib.contextmanager
def any_device() -> Iterator[None]:
    """Traces the forms of all devices; earlier traces of JAX have a CPU's alone."""
    with trace_for("gpu"):
        jax.clear_caches()
        yield
    jax.clear_caches()
