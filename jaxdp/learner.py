"""The vocabulary under its former name; `jaxdp.core` is where it is."""

from jaxdp.core import *  # noqa: F403
