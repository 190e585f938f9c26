"""RUCB, from local reports or from noisy totals of blocks."""

from jaxdp.dueling._rucb._rucb import rucb as rucb
