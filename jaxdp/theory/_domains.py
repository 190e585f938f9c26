"""Domains of convex losses, as the bounds use them."""

import numpy as np

from jaxdp.validation import check_choice


def reach_and_theta(domain: str, dim: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns D / R, the largest distance from the centre, and theta, the parameter of the barrier.

    Args:
        domain: "ball" or "box".
        dim: [...] float, of points.

    Returns:
        [...] float each: 1 and 1 for a ball, sqrt(dim) and dim for a box.

    Raises:
        ValueError: if domain is neither of the two.
    """
    one = np.ones_like(dim)
    return (one, one) if check_choice("domain", domain, ("ball", "box")) == "ball" else (np.sqrt(dim), dim)
