"""Refusals that all learners and environments of duels share: errors name the argument, the rule and the value."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import dueling
from jaxdp.dueling import matrix_duels, switching_duels, utility_duels

NOT_NUMBERS: tuple[Any, ...] = (True, "1", None, [1.0], 1j)
FACTORIES: dict[str, Any] = {
    "ebs_elimination": lambda **options: dueling.ebs_elimination(**{"num_arms": 2, "horizon": 9, **options}),
    "ebs_local": lambda **options: dueling.ebs_local(**{"num_arms": 2, "horizon": 9, **options}),
    "ebs_phased": lambda **options: dueling.ebs_phased(**{"num_arms": 2, **options}),
    "ebs_shuffle": lambda **options: dueling.ebs_shuffle(**{"num_arms": 2, **options}),
    "rucb": lambda **options: dueling.rucb(**{"num_arms": 2, **options}),
    "double_thompson": lambda **options: dueling.double_thompson(**{"num_arms": 2, **options}),
    "versatile_sparring": lambda **options: dueling.versatile_sparring(**{"num_arms": 2, **options}),
    "sparring_gaussian": lambda **options: dueling.versatile_sparring(
        **{"num_arms": 2, "horizon": 9, "report": "gaussian", **options}
    ),
}
VALUES = {  # beside epsilon
    "ebs_elimination": ("failure_prob", "confidence_multiplier"),
    "ebs_local": ("failure_prob", "confidence_multiplier"),
    "ebs_phased": ("failure_prob", "confidence_multiplier"),
    "ebs_shuffle": ("delta", "failure_prob", "confidence_multiplier"),
    "rucb": ("exploration_rate",),
    "double_thompson": ("exploration_rate",),
    "versatile_sparring": (),
    "sparring_gaussian": ("delta", "failure_prob"),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_sizes(name):
    for bad in (1, 0, -2, 2.5, math.nan, math.inf, True, "2", None, [2]):
        with pytest.raises(ValueError, match=r"num_arms must be an integer >= 2, got "):
            FACTORIES[name](num_arms=bad)
    with pytest.raises(ValueError, match=r"num_arms must have at most [0-9]* pairs, got 10{9}"):
        FACTORIES[name](num_arms=10**9 if jnp.iinfo(jnp.result_type(int)).bits == 32 else 10**10)
    if name in ("ebs_elimination", "ebs_local", "sparring_gaussian"):
        for bad in (0, -1, 2.5, math.nan, math.inf, True, "9", [9]):
            with pytest.raises(ValueError, match=r"horizon must be an integer >= 1, got "):
                FACTORIES[name](horizon=bad)


@pytest.mark.parametrize("name", FACTORIES)
def test_values(name):
    learner = FACTORIES[name]()
    good = {"epsilon": 1.0, **({"delta": 1e-3} if "delta" in VALUES[name] else {})}
    for function in (learner.params, learner.guarantee):
        for bad in (0.0, -1.0, math.nan, -math.inf):
            with pytest.raises(ValueError, match=rf"epsilon must be > 0, got {bad}"):
                function(**{**good, "epsilon": bad})
        with pytest.raises(ValueError, match=r"epsilon must be within the range of float64, got a larger int of 1329"):
            function(**{**good, "epsilon": 10**400})
        for value in VALUES[name]:
            for bad in (0.0, -1.0, math.nan, math.inf):
                with pytest.raises(ValueError, match=rf"{value} must be .*, got {bad}"):
                    function(**{**good, value: bad})
        for value in ("epsilon", *VALUES[name]):
            for bad in NOT_NUMBERS:
                with pytest.raises(ValueError, match=rf"{value} must be a number, got "):
                    function(**{**good, value: bad})


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.5]], r"must be a square matrix of at least two arms, got shape \(1, 2\)"),
        ([[0.5]], r"must be a square matrix of at least two arms, got shape \(1, 1\)"),
        ([[0.5, 0.6], [0.5, 0.5]], r"must have P\[i, j\] \+ P\[j, i\] = 1, got 0.6 at row 0, column 1"),
        ([[0.4, 0.5], [0.5, 0.6]], r"must be 0.5 on the diagonal, got 0.4 at row 0"),
        ([[0.5, math.nan], [0.5, 0.5]], r"must be finite, got nan at index \(0, 1\)"),
        ([[0.5, 1.2], [-0.2, 0.5]], r"must be in \[0, 1\], got 1.2 at index \(0, 1\)"),
        ([["0.5", "0.5"], ["0.5", "0.5"]], r"must be numbers, got dtype <U3"),
        ([[0.5, None], [0.5, 0.5]], r"must be numbers, got dtype object"),
        ([[True, False], [True, True]], r"must be numbers, got dtype bool"),
        ([[0.5, 0.5], [0.5]], r"must be an array of numbers, got"),
        (np.ma.masked_greater([[0.5, 0.7], [0.3, 0.5]], 0.6), r"must have no masked entries, got 1 of them"),
    ],
)
def test_matrices(matrix, message):
    with pytest.raises(ValueError, match=r"^preference_matrix " + message):
        matrix_duels(matrix)
    with pytest.raises(ValueError, match=r"^preference_matrices\[1\] " + message):
        switching_duels([[[0.5, 0.7], [0.3, 0.5]], matrix], [0, 3])


@pytest.mark.parametrize(
    ("utilities", "message"),
    [
        ([1.0], r"utilities must be a vector of at least two arms, got shape \(1,\)"),
        ([0.0, math.nan], r"utilities must be finite, got nan at index \(1,\)"),
        ([0.0, -math.inf], r"utilities must be finite, got -inf at index \(1,\)"),
        (["a", "b"], r"utilities must be numbers, got dtype <U1"),
        ([True, False], r"utilities must be numbers, got dtype bool"),
        ([[0.0, 1.0], [1.0, 0.0]], r"utilities must be a vector of at least two arms, got shape \(2, 2\)"),
        ([1e308, -1e308], r"utilities must have finite differences, got"),
        (np.ma.masked_greater([0.0, 1.0], 0.5), r"utilities must have no masked entries, got 1 of them"),
    ],
)
def test_utilities(utilities, message):
    with pytest.raises(ValueError, match=message):
        utility_duels(utilities)


@pytest.mark.parametrize("bad", [["strong"], None, 1, ""])
def test_names(bad):
    with pytest.raises(ValueError, match=r"regret must be one of strong, weak, borda, got "):
        matrix_duels([[0.5, 0.7], [0.3, 0.5]], regret=bad)
    with pytest.raises(ValueError, match=r"link must be "):
        utility_duels([0.0, 1.0], link=bad)


@pytest.mark.parametrize("start", [math.nan, 1.5, "1", True, None, 2**70])
def test_starts(start):
    stages = [[[0.5, 0.7], [0.3, 0.5]]] * 2
    with pytest.raises(ValueError, match=r"starts(\[1\])? must be "):
        switching_duels(stages, [0, start])
