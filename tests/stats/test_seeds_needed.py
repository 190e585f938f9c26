"""How many seeds a share takes, and the report where there are fewer."""

import warnings

import pytest
import xarray as xr

from jaxdp.audit.intervals import clopper_pearson, lower_limit
from jaxdp.stats import seeds_needed, smallest_epsilon


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 1 - 0.05 / 9])
def test_one_seed_less_shows_nothing(share, confidence):
    one, two = (seeds_needed(share, confidence=confidence, sides=sides) for sides in (1, 2))
    assert lower_limit(one, one, 1 - confidence) >= share * (1 - 1e-12)
    assert clopper_pearson(two, two, confidence=confidence)[0] >= share * (1 - 1e-12)
    assert one == 1 or lower_limit(one - 1, one - 1, 1 - confidence) < share
    assert two == 1 or clopper_pearson(two - 1, two - 1, confidence=confidence)[0] < share


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"at_least": 1.0}, r"at_least must be in \(0, 1\), got 1\.0"),
        ({"at_least": 0.9, "confidence": float("nan")}, r"confidence must be in \(0, 1\), got nan"),
        ({"at_least": 0.9, "sides": 3}, "sides must be 1 or 2, got 3"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        seeds_needed(**arguments)


def hits(num_seeds):
    return xr.DataArray([[1.0] * num_seeds] * 2, {"epsilon": [1.0, 2.0]}, ("epsilon", "seed"))


TOO_FEW = [
    (hits(58), {"at_least": 0.95}, "58, to show a mean of at least 0.95 with 0.95 confidence: at least 59 are needed"),
    (1 - hits(58), {"at_most": 0.05}, "at most 0.05 with 0.95 confidence: at least 59 are needed"),
    (hits(1000), {"at_least": 1.0}, "at least 1 with 0.95 confidence: no number of repetitions can show it"),
    (0.5 * hits(1), {"at_least": 0.3}, "at least 0.3 with 0.95 confidence: at least 2 are needed"),
]


@pytest.mark.parametrize("case", range(len(TOO_FEW)))
def test_too_few_seeds_for_the_smallest_epsilon_are_told(case):
    metric, limit, message = TOO_FEW[case]
    with pytest.warns(RuntimeWarning, match=message) as told:
        assert smallest_epsilon(metric, **limit).isnull()
    assert told[0].filename == __file__


def test_enough_seeds_are_enough():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(smallest_epsilon(hits(59), at_least=0.95)) == 1.0
        assert float(smallest_epsilon(1 - hits(59), at_most=0.05)) == 1.0
        assert float(smallest_epsilon(hits(1), at_least=0.0)) == 1.0
