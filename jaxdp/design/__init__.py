"""Optimal designs: which points of a finite set to ask about, and how often; and nets of balls and boxes."""

from jaxdp.design._g_optimal import Design, PairDesign, g_optimal, g_optimal_differences
from jaxdp.design._masked import MaskedDesign, masked_difference_design

__all__ = [
    "Design",
    "MaskedDesign",
    "PairDesign",
    "g_optimal",
    "g_optimal_differences",
    "masked_difference_design",
]
