"""Lazy weights: an expert is kept as long as its law permits."""

from jaxdp.experts._lazy_weights._lazy_weights import lazy_weights as lazy_weights
