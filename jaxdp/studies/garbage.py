"""Sets how often a process of the command line collects garbage."""

import atexit
import gc


def collect_garbage_rarely() -> None:
    """Makes this process collect garbage rarely, and not when it ends.

    Traced programs consist of millions of small objects that live as long as the process.
    """
    gc.set_threshold(200_000, 20, 100)
    atexit.register(gc.freeze)
