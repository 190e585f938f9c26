import json

import jax
import numpy as np
import pytest

from jaxdp import Guarantee
from jaxdp.audit import Attack, Row, heading, line, scoreboard, to_json
from jaxdp.audit.scoreboard import COLUMNS

ROW = Row(
    name="a_long_name",
    epsilon=1.0,
    delta=0.0,
    lower_bound=0.5,
    ratio=0.5,
    trials=1000,
    seconds=1.0,
    verdict="consistent",
    event="output > 0",
)


def test_the_first_column_is_as_wide_as_the_names():
    assert heading([]).split() == " ".join(COLUMNS).split()
    assert line(ROW, []).startswith("a_long_name  ")
    assert heading([ROW.name]).index("EPSILON") == len(ROW.name) + 2
    assert len(heading([ROW.name])) - len(COLUMNS[-1]) == len(line(ROW, [ROW.name])) - len(ROW.verdict)


def test_no_rows():
    assert to_json([]) == "[]"


@pytest.mark.parametrize(("shift", "ratio", "verdict"), [(0.0, 0.0, "consistent"), (9.0, np.inf, "violated")])
def test_a_claim_that_implies_an_epsilon_of_zero(shift, ratio, verdict):
    claim = Guarantee.gaussian(0.01, trust_model="central", privacy_unit="one label", argument="noise")

    def release(key, params, data):
        return data * params + jax.random.normal(key)

    attack = Attack(release, np.float32(shift), (np.float32(0), np.float32(1)), claim)
    (row,) = scoreboard(jax.random.key(0), {"tiny": attack}, trials=1000)
    assert (row.epsilon, row.ratio, row.verdict) == (0.0, ratio, verdict)
    assert json.loads(to_json([row]))[0]["verdict"] == verdict
