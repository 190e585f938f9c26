"""Optimal designs and nets.

An optimal design says how often to query each point of a finite set. A net is a finite subset of a ball or a box such
that every point of the ball or box is close to a point of the net.
"""

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
