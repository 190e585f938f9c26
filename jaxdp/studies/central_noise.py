"""The choice between Gaussian and K-norm noise of a central estimator, by an error predicted from public values.

A study runs two estimators with separate claims, one for each kind of noise. At each epsilon, the study shows the
estimator with the smaller predicted error, even if the observed error of this estimator is larger. The coordinate
`noise` of the results records the choice.
"""

import textwrap

import numpy as np
import xarray as xr

from jaxdp.estimation import quieter_noise

SUFFIX = "_k_norm"  # ends the names of estimators with K-norm noise
NONE = "none"


def with_noise(results: xr.Dataset, dim: int) -> xr.Dataset:
    """Adds a coordinate that names the noise to show at each epsilon.

    Args:
        results: results for both kinds of noise, with the dimension epsilon and the scalar coordinate delta.
        dim: number of coordinates to which noise is added.

    Returns:
        The results with the coordinate `noise` along epsilon: "gaussian", "k_norm", or "none" if epsilon is infinite.
    """
    delta, budgets = float(results.delta), results.epsilon.values.tolist()
    noises = [
        quieter_noise(epsilon=epsilon, delta=delta, dim=dim) if np.isfinite(epsilon) else NONE for epsilon in budgets
    ]
    return results.assign_coords(noise=("epsilon", noises))


def merge_noises(results: xr.Dataset) -> xr.Dataset:
    """Merges each pair of estimators that differ only in their noise.

    Args:
        results: results of `with_noise`, or of this function.

    Returns:
        The results without separate K-norm estimators. At each epsilon, a merged estimator has the values for the noise
        that the coordinate `noise` names; for "none", the values of the estimator without `SUFFIX`.
    """
    names = results.estimator.values.tolist()
    merged_names = [name for name in names if not name.endswith(SUFFIX)]
    if merged_names == names:
        return results

    def position(name: str, noise: str) -> int:
        k_norm_name = name + SUFFIX
        return names.index(k_norm_name if noise == "k_norm" and k_norm_name in names else name)

    positions = [[position(name, noise) for noise in results.noise.values.tolist()] for name in merged_names]
    merged = results.drop_vars("estimator").isel(
        estimator=xr.DataArray(positions, dims=("estimator", "epsilon")),
        epsilon=xr.DataArray(np.arange(results.sizes["epsilon"]), dims="epsilon"),
    )
    return merged.assign_coords(estimator=merged_names).transpose(*results.dims)


def describe_noise(results: xr.Dataset) -> str:
    """Returns a sentence that names the central estimator's noise at each epsilon; "" if no epsilon has noise.

    Args:
        results: results of `with_noise` or of `merge_noises`.
    """
    claims = {"gaussian": f"Gaussian (δ = {float(results.delta):g})", "k_norm": "K-norm (pure ε-DP)"}
    parts = []
    for noise, claim in claims.items():
        budgets = np.sort(results.epsilon.values[results.noise.values == noise])
        if budgets.size:
            parts.append(f"{claim} at ε = {', '.join(f'{epsilon:g}' for epsilon in budgets)}")
    return f"Central noise, chosen by smaller predicted error: {'; '.join(parts)}." if parts else ""


def noise_lines(results: xr.Dataset) -> list[str]:
    """Returns the lines of the sentence by `describe_noise`, wrapped to 118 characters."""
    return textwrap.wrap(describe_noise(results), 118)
