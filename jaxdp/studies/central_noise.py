"""Which noise a central estimator adds: Gaussian or K-norm, by the error that is predicted from public values alone.

A study runs both, as two estimators with claims of their own, and shows at each epsilon the one that is predicted to
err less: never the one that happened to. Which it is says the coordinate `noise` of the results.
"""

import textwrap

import numpy as np
import xarray as xr

from jaxdp.estimation import quieter_noise

SUFFIX = "_k_norm"  # of the name of an estimator with K-norm noise, behind that of the one with Gaussian noise
NONE = "none"


def with_noise(results: xr.Dataset, dim: int) -> xr.Dataset:
    """Results with the noise that is shown at each epsilon.

    Args:
        results: of both noises, with the dimension epsilon and the scalar coordinate delta.
        dim: number of coordinates in which there is noise.

    Returns:
        The results with the coordinate `noise` along epsilon: "gaussian", "k_norm", or "none" without privacy.
    """
    delta, budgets = float(results.delta), results.epsilon.values.tolist()
    noises = [
        quieter_noise(epsilon=epsilon, delta=delta, dim=dim) if np.isfinite(epsilon) else NONE for epsilon in budgets
    ]
    return results.assign_coords(noise=("epsilon", noises))


def shown(results: xr.Dataset) -> xr.Dataset:
    """Results with one estimator in place of the two that differ in their noise.

    Args:
        results: of `with_noise`, or of this function.

    Returns:
        The results without the estimators of K-norm noise: the ones with the names that are left have at each epsilon
        the values of the noise that `noise` names.
    """
    names = results.estimator.values.tolist()
    left = [name for name in names if name.removesuffix(SUFFIX) == name]
    if left == names:
        return results

    def place(name: str, noise: str) -> int:
        other = name + SUFFIX
        return names.index(other if noise == "k_norm" and other in names else name)

    places = [[place(name, noise) for noise in results.noise.values.tolist()] for name in left]
    chosen = results.drop_vars("estimator").isel(
        estimator=xr.DataArray(places, dims=("estimator", "epsilon")),
        epsilon=xr.DataArray(np.arange(results.sizes["epsilon"]), dims="epsilon"),
    )
    return chosen.assign_coords(estimator=left).transpose(*results.dims)


def which_noise(results: xr.Dataset) -> str:
    """A sentence on which noise the central estimator adds at each epsilon; empty where none adds any.

    Args:
        results: of `with_noise`, or of `shown`.
    """
    claims = {"gaussian": f"Gaussian, δ = {float(results.delta):g},", "k_norm": "K-norm, pure ε-DP,"}
    told = []
    for noise, claim in claims.items():
        budgets = np.sort(results.epsilon.values[results.noise.values == noise])
        if budgets.size:
            told.append(f"{claim} at ε = {', '.join(f'{epsilon:g}' for epsilon in budgets)}")
    return f"Central noise, by the smaller predicted error: {'; '.join(told)}." if told else ""


def noise_lines(results: xr.Dataset) -> list[str]:
    """The same as lines of text."""
    return textwrap.wrap(which_noise(results), 118)
