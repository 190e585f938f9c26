"""Elimination by effective Borda scores (DP-EBS): the algorithm, its counters and radii, and its forms by blocks."""

from jaxdp.dueling._elimination._ebs_elimination import ebs_elimination

__all__ = ["ebs_elimination"]
