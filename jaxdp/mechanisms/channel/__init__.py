"""Local randomizers: the message that a user's device sends in the local model, and the server's estimate from it."""

from jaxdp.mechanisms.channel.label import LabelParams, label_channel
from jaxdp.mechanisms.channel.moment import MomentParams, Moments, exact_moments, moment_channel
from jaxdp.mechanisms.channel.scalar import ScalarParams, scalar_channel
from jaxdp.mechanisms.channel.vector import VectorParams, vector_channel

__all__ = [
    "LabelParams",
    "MomentParams",
    "Moments",
    "ScalarParams",
    "VectorParams",
    "exact_moments",
    "label_channel",
    "moment_channel",
    "scalar_channel",
    "vector_channel",
]
