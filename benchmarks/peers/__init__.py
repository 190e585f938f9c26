"""Peers that benchmarks compare with."""
