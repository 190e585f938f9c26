"""The script on real comparisons writes the trips that were chosen, in units of its features."""

import numpy as np
import pandas as pd

from benchmarks import real_pairs
from jaxdp.preferences import read_pairs


def test_chosen_trips_and_persons_are_read_back(tmp_path):
    trips = {"price1": [2400, 4000], "time1": [150, 130], "change1": [0, 1], "comfort1": [1, 2]}
    others = {"price2": [4000, 3200], "time2": [120, 150], "change2": [2, 0], "comfort2": [0, 1]}
    choices = pd.DataFrame({"id": [7, 9], "choice": ["choice1", "choice2"]} | trips | others)
    options = real_pairs.write_pairs(choices, tmp_path)
    chosen, rejected = (np.load(tmp_path / f"{name}.npy") for name in ("chosen", "rejected"))
    np.testing.assert_allclose(chosen, [[2.4, 2.5, 0, 1], [3.2, 2.5, 0, 1]], rtol=1e-6)
    np.testing.assert_allclose(rejected, [[4, 2, 2, 0], [4, 130 / 60, 1, 2]], rtol=1e-6)
    names = dict(zip(options[::2], options[1::2], strict=True))
    pairs = read_pairs(
        names["--table"], chosen=names["--chosen"], rejected=names["--rejected"], person=names["--person"]
    )
    assert pairs.persons is not None
    assert pairs.persons[np.argsort(pairs.rows)].tolist() == [7, 9]
