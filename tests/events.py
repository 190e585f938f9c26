"""Events of JAX's compiler, while something runs."""

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def durations_of(name: str) -> Iterator[list[str]]:
    """Yields a list that grows by each event with `name` in its name, as "backend_compile_duration"."""
    events: list[str] = []

    def listen(event: str, duration_secs: float, **details: str | int) -> None:
        if name in event:
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield events
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)  # others, as jax_settings.py's, stay
