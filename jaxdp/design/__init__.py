"""Optimal designs, which say how often to query the points of a finite set, and nets of balls and boxes."""

from jaxdp.design._g_optimal import Design, PairDesign, g_optimal, g_optimal_differences
from jaxdp.design._masked import MaskedDesign, masked_difference_design
from jaxdp.design.nets import ball_net, box_net

__all__ = [
    "Design",
    "MaskedDesign",
    "PairDesign",
    "ball_net",
    "box_net",
    "g_optimal",
    "g_optimal_differences",
    "masked_difference_design",
]
