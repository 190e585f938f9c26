"""RUCB, round by round and by blocks."""

from jaxdp.dueling._rucb._rucb import rucb as rucb
