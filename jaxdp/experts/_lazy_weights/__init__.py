"""Lazy weights: exponential weights that rarely resample their sequence of experts."""

from jaxdp.experts._lazy_weights._lazy_weights import lazy_weights as lazy_weights
