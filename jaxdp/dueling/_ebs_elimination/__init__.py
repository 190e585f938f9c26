"""Elimination by effective Borda scores (DP-EBS; Saha & Asi, 2024): the algorithm, its counters, and its blocks."""

from jaxdp.dueling._ebs_elimination._ebs_elimination import ebs_elimination

__all__ = ["ebs_elimination"]
