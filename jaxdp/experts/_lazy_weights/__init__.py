"""Lazy weights: an expert is kept as long as its distribution permits."""

from jaxdp.experts._lazy_weights._lazy_weights import lazy_weights as lazy_weights
