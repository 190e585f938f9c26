"""Interfaces under their former name; `jaxdp.core` is where they are."""

from jaxdp.core import *  # noqa: F403
