"""Committed regrets of Thompson sampling with a curator and on local reports, and the page that shows them."""

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import thompson_trust

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "trust_models.md"


@pytest.fixture(scope="module")
def cells():
    return thompson_trust.read(thompson_trust.PATH)


def test_the_page_shows_the_committed_table(cells):
    assert "\n".join(thompson_trust.table(cells, thompson_trust.HORIZON)) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("best", thompson_trust.BEST)
def test_what_trust_buys(cells, best):
    """Checks that a curator saves 40% of the regret up to epsilon 1, and nothing from epsilon 3 on."""
    for epsilon in thompson_trust.EPSILONS:
        central, local = thompson_trust.regrets_of(cells, thompson_trust.HORIZON, best, epsilon)
        assert len(central) == len(local) == 100
        value, error = thompson_trust.ratio(central, local)
        if epsilon <= 2:
            assert value + 2 * error < (0.6 if epsilon <= 1 else 1)
        else:
            assert value < 1.1
            assert value + 4 * error > 0.95 or math.isinf(epsilon)


def test_the_ratio_of_paired_samples():
    generator = np.random.default_rng(0)
    shared = generator.gamma(4.0, size=(2000, 1000))
    pairs = zip(shared + generator.random(shared.shape), 2 * shared + generator.random(shared.shape), strict=True)
    values, errors = np.transpose([thompson_trust.ratio(*pair) for pair in pairs])
    assert values.mean() == pytest.approx(4.5 / 8.5, abs=1e-3)
    assert errors.mean() == pytest.approx(values.std(), rel=0.1)
    unpaired = values.mean() * math.sqrt(2) * 0.5 / math.sqrt(1000)  # planted: as if the samples were independent
    assert unpaired > 1.5 * values.std()
