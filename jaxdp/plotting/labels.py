"""Labels of dimensions and their values, and checks of the options that choose among dimensions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxdp.validation import did_you_mean

TITLES = {
    "round": "rounds T",
    "pseudo_regret": "cumulative regret",
    "epsilon": "ε",
    "delta": "δ",
    "num_samples": "samples n",
    "num_features": "features d",
    "num_arms": "arms K",
    "num_experts": "experts N",
}
CLAIMS_ARE = "Claims are for"
SHORT = {"epsilon": "ε", "delta": "δ", "num_samples": "n", "num_features": "d", "num_arms": "K", "num_experts": "N"}
Labels = Mapping[Any, str]


def epsilon_label(epsilon: float) -> str:
    """Returns the label of a privacy budget.

    Examples:
        >>> epsilon_label(0.5), epsilon_label(float("inf"))
        ('ε = 0.5', 'ε = ∞ (no privacy)')
    """
    return "ε = ∞ (no privacy)" if np.isinf(epsilon) else f"ε = {epsilon:g}"


def prefix_labels(groups: xr.DataArray) -> dict[str, str]:
    """Returns the label "GROUP: NAME" for every name, for legends with names from several groups.

    Args:
        groups: a coordinate along one dimension of names, such as `results.trust_model` along `learner`.

    Returns:
        Labels keyed by name, for the argument `labels` of `curves`.

    Examples:
        >>> prefix_labels(xr.DataArray(["central", "local"], {"learner": ["ucb_central", "ucb"]}, ("learner",)))
        {'ucb_central': 'central: ucb_central', 'ucb': 'local: ucb'}
    """
    names = groups[groups.dims[0]].values
    return {str(name): f"{group}: {name}" for name, group in zip(names, groups.values, strict=True)}


def title_of(values: xr.DataArray, name: Any = None) -> str:
    """Returns the axis label for the dimension `name` of the values, or for the values themselves if `name` is None."""
    subject = values if name is None else values[name]
    attributes, name = subject.attrs, subject.name
    text = attributes.get("long_name") or TITLES.get(str(name)) or ("" if name is None else str(name).replace("_", " "))
    return plain(text) + (f" ({plain(attributes['units'])})" if attributes.get("units") else "")


def label_of(name: str, value: Any, labels: Labels | None = None) -> str:
    """Returns the label of one value of the dimension `name`; if `labels` has none, derives it from value and name."""
    for key in (value, str(value)):
        if labels is not None and key in labels:
            return labels[key]
    if name == "epsilon" and isinstance(value, int | float | np.number):
        return epsilon_label(float(value))
    if isinstance(value, str):
        return f"per {value}" if name == "unit" else plain(value)
    value_text = number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    return f"{SHORT.get(name, plain(name.replace('_', ' ')))} = {value_text}"


def labels_of(name: str, values: Sequence[Any], labels: Labels | None = None) -> list[str]:
    """Returns the labels of values of the dimension `name`. Numbers with the same six digits get all their digits."""
    texts = [label_of(name, value, labels) for value in values]
    counts = Counter(texts)
    for index, value in enumerate(values):
        short = number(value) if isinstance(value, float) else ""
        if short and counts[texts[index]] > 1 and texts[index].endswith(f"= {short}"):
            texts[index] = texts[index].removesuffix(short) + repr(value)
    return texts


def unit_sentence(values: xr.DataArray | xr.Dataset, labels: Labels | None = None) -> str:
    """Returns a sentence on the privacy units of the claims, for a caption; "" if no claim has a privacy unit.

    Examples:
        >>> units = ("learner", ["one person", "one round's reward"])
        >>> values = xr.Dataset(coords={"learner": ["person_means", "ucb"], "privacy_unit": units})
        >>> print(unit_sentence(values.isel(learner=0)), unit_sentence(values))
        Claims are for one person. Claims are for one person (person_means) and one round's reward (ucb).
    """
    if "privacy_unit" not in values.coords:
        return ""
    units = values.coords["privacy_unit"]
    names: dict[str, list[str]] = {unit: [] for unit in units.values.ravel().tolist() if unit}
    if len(names) > 1 and units.ndim == 1:
        dim = str(units.dims[0])
        for text, unit in zip(labels_of(dim, values_of(units[dim]), labels), units.values.tolist(), strict=True):
            names.get(unit, []).append(text)
    texts = [unit + (f" ({', '.join(members)})" if members else "") for unit, members in names.items()]
    return f"{CLAIMS_ARE} {' and '.join(texts)}." if texts else ""


def number(value: Any) -> str:
    """Formats a number for an axis."""
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return f"{value:g}".replace("inf", "∞")


def plain(text: str) -> str:
    """Replaces dollar signs, which would start a formula, by escaped dollar signs."""
    return text.replace("$", r"\$")


def values_of(coordinate: xr.DataArray) -> list[Any]:
    """Returns the values of a coordinate as Python objects."""
    return [value.item() if isinstance(value, np.generic) else value for value in coordinate.values]


def check_values(values: Any, over: str = "seed") -> xr.DataArray:
    """Returns the values; raises ValueError unless they are an array of real numbers with the dimension of seeds."""
    if isinstance(values, xr.Dataset):
        names = ", ".join(f"results.{name}" for name in list(values.data_vars)[:4])
        raise ValueError(f"values must be one variable of the results, such as {names}, got a Dataset")
    if not isinstance(values, xr.DataArray):
        raise ValueError(f"values must be an xarray DataArray, got {type(values).__name__}")
    if over not in values.dims:
        raise ValueError(
            f"values must have the dimension {over}, so that bands can be computed (do not take means first), got "
            f"{_dims(values)}"
        )
    if values.dtype.kind not in "biuf":
        raise ValueError(f"values must be real numbers, got {values.dtype}")
    return values


def keep_dimensions(values: xr.DataArray, *chosen: tuple[str, Any], over: str = "seed", otherwise: str) -> xr.DataArray:
    """Returns the values with only the chosen dimensions and seeds.

    Args:
        values: as `check_values` returns them.
        *chosen: (option, dimension), such as ("hue", "epsilon"); a dimension of None is ignored.
        over: the dimension of seeds.
        otherwise: advice at the end of the error message if a dimension that was not chosen has several values; "{0}"
            is replaced by the dimension's name.

    Returns:
        The values. The coordinates of dimensions that were not chosen, which have size one, become scalars. Chosen
        dimensions without a coordinate get their indices as coordinate.

    Raises:
        ValueError: if a chosen dimension does not exist, is empty or is chosen twice, or if other dimensions have
            several values.
    """
    free = [str(name) for name in values.dims if name != over]
    options_of: dict[Any, str] = {}
    for option, name in chosen:
        if name is None:
            continue
        if name not in free:
            choices = ", ".join(free) or "no dimension"
            raise ValueError(f"{option} must be one of {choices}, got {name!r}{did_you_mean(name, free)}")
        if name in options_of:
            raise ValueError(f"{option} must be another dimension than {options_of[name]}, got {name!r}")
        options_of[name] = option
    several = [name for name in free if name not in options_of and values.sizes[name] > 1]
    if several:
        raise ValueError(
            f"values must have one value along {', '.join(several)}, got {_dims(values)}: choose one, such as "
            f"values.isel({several[0]}=-1), or {otherwise.format(repr(several[0]))}"
        )
    values = values.squeeze([name for name in free if name not in options_of])
    for name in options_of:
        if name not in values.coords:
            values = values.assign_coords({name: np.arange(values.sizes[name])})
        if not values.sizes[name]:
            raise ValueError(f"{name} must have at least one value, got none")
    return values


def default_x(values: xr.DataArray, *taken: Any, over: str = "seed") -> str:
    """Returns the default dimension of the horizontal axis.

    The default is `round` if there are several rounds, or else the only dimension with several values. If no dimension
    has several values, the default is the only dimension. Seeds and `taken` dimensions are not considered.

    Raises:
        ValueError: if there is no such dimension, or more than one.
    """
    free = [str(name) for name in values.dims if name not in (over, *taken)]
    if values.sizes.get("round", 1) > 1 and "round" in free:
        return "round"
    several = [name for name in free if values.sizes[name] > 1] or free
    if len(several) != 1:
        raise ValueError(f"x must be given: one of {', '.join(several) or 'no dimension'}, got none")
    return several[0]


def _dims(values: xr.DataArray) -> str:
    return "(" + ", ".join(f"{name}: {size}" for name, size in values.sizes.items()) + ")"
