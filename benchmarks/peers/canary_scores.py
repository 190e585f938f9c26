"""jax_privacy's auditor of canary scores, where it is installed.

It is `pip install jax-privacy --no-deps`, beside the extras `bench` and `accounting`: the one module that is used needs
dp_accounting, NumPy and SciPy, and is loaded alone, since the package as a whole needs more.
"""

import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SEED = 0  # of splits


class Peer(NamedTuple):
    """The peer.

    Attributes:
        version: of the package.
        module: `jax_privacy.auditing`.
    """

    version: str
    module: Any


def load() -> Peer | None:
    """Loads the peer; None if it is not installed."""
    spec = importlib.util.find_spec("jax_privacy")
    if spec is None or not spec.submodule_search_locations:
        return None
    file = Path(next(iter(spec.submodule_search_locations))) / "auditing.py"
    alone = importlib.util.spec_from_file_location("jax_privacy_auditing", file)
    assert alone is not None
    assert alone.loader is not None
    module = importlib.util.module_from_spec(alone)
    sys.modules[alone.name] = module  # its dataclasses look themselves up
    alone.loader.exec_module(module)
    return Peer(importlib.metadata.version("jax-privacy"), module)


def bounds(
    peer: Peer, first: np.ndarray, second: np.ndarray, *, delta: float, confidence: float, splits: int
) -> dict[str, float]:
    """Returns the peer's lower bounds on epsilon at delta, by strategy for its threshold, and both directions.

    Args:
        peer: as it was loaded.
        first: [n] float, scores under the first input, which are larger as a rule.
        second: [m] float, under the second.
        delta: of the claim.
        confidence: of each bound; the best of them is no bound of that confidence.
        splits: of its strategy of many splits, which takes as many times as long as one; 0 leaves that out.

    Returns:
        Bounds by strategy. `epsilon_raw_counts` is left out, for it bounds nothing.
    """
    module = peer.module
    strategies = {
        "all thresholds": module.Bonferroni(),
        "a half chooses": module.Split(seed=SEED),
        "a tenth chooses": module.Split(threshold_estimation_frac=0.1, seed=SEED),
    }
    if splits:
        strategies[f"{splits} splits"] = module.MultiSplit(num_samples=splits, seed=SEED)
    auditor = module.CanaryScoreAuditor(first, second)
    return {
        name: float(
            auditor.epsilon_clopper_pearson(1 - confidence, delta, one_sided=False, threshold_strategy=strategy)
        )
        for name, strategy in strategies.items()
    }
