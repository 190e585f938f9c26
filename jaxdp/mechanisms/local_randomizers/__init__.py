"""Local randomizers: the message that a user's device sends in the local model, and the server's estimate from it."""

from jaxdp.mechanisms.local_randomizers.label import LabelParams, label_randomizer
from jaxdp.mechanisms.local_randomizers.moment import MomentParams, Moments, exact_moments, moment_randomizer
from jaxdp.mechanisms.local_randomizers.scalar import ScalarParams, scalar_randomizer
from jaxdp.mechanisms.local_randomizers.vector import VectorParams, vector_randomizer

__all__ = [
    "LabelParams",
    "MomentParams",
    "Moments",
    "ScalarParams",
    "VectorParams",
    "exact_moments",
    "label_randomizer",
    "moment_randomizer",
    "scalar_randomizer",
    "vector_randomizer",
]
