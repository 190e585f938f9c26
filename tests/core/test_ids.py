"""Equal ids of persons are found as equal: ids of several types, and missing ids, are refused."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from jaxdp.core.ids import check_ids
from jaxdp.estimation import claims_for_persons, debiased_rr


@pytest.mark.parametrize(
    "ids",
    [
        ["b", "a", "b"],
        [7, np.int8(3), 7],
        [2**64, 1, 2**64],
        [2**63 + 1, -1, 2**63 + 1],
        [b"b", b"a", b"b"],
        np.asarray([7, 3, 7], object),
        np.asarray(["b", "a", "b"], np.dtypes.StringDType()),
        jnp.asarray([7, 3, 7]),
        *(pd.Series(["b", "a", "b"], dtype=dtype) for dtype in (None, "string", object, "category")),
        *(pd.Series([7, 3, 7], dtype=dtype) for dtype in ("Int64", "category")),
    ],
)
def test_equal_ids_are_found(ids):
    assert np.unique(check_ids("persons", ids), return_inverse=True)[1].tolist() == [1, 0, 1]


def test_large_integers_are_not_merged():
    assert len(np.unique(check_ids("persons", [2**63, 2**63 + 1, -1]))) == 3


@pytest.mark.parametrize(
    ("ids", "got"),
    [
        ([7, "a"], "integer, text"),  # NumPy makes text of these
        ([7, 7.0, "a"], "float, integer, text"),
        (["a", None], "NoneType, text"),
        ([True, 7], "bool, integer"),
        ([["a"], ["b"]], r"at least one id, got shape \(2, 1\)"),
        ([["a"], ["b", "c"]], "rows of different lengths"),
        ([], r"at least one id, got shape \(0,\)"),
        (None, "at least one id, got None"),
        (np.asarray([7.0, 3.0]), "float64"),
        (pd.Series([7, None]), "float64"),
        (pd.Series([7, None], dtype="Int64"), "float"),
        (pd.Series(["a", None]), "text"),
        (np.ma.array([7, 3], mask=[True, False]), "1 of them"),
    ],
)
def test_ids_that_may_not_compare_as_equal_are_refused(ids, got):
    with pytest.raises(ValueError, match=f"^persons must .*{got}"):
        check_ids("persons", ids)


def test_a_claim_for_persons_refuses_missing_ids():
    """Checks ids with NaN, which breaks the order of a sort, so that NumPy would find several persons with one id."""
    ids = np.asarray([7, np.nan, 3, np.nan, 7, 3, np.nan, 7, np.nan, 3, 7], object)
    with pytest.raises(ValueError, match="persons must be ids that are all text or all integers, got float, integer"):
        claims_for_persons(debiased_rr(), ids, epsilon=1.0)
