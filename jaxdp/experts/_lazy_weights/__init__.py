"""Lazy weights: exponential weights that resample their sequence of experts only rarely."""

from jaxdp.experts._lazy_weights._lazy_weights import lazy_weights as lazy_weights
