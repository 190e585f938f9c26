"""Tiny data sets for trying estimators, and pairs of data sets for attacking them."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import default_float
from jaxdp.preferences import gaussian_choices, gaussian_comparisons, pair_features

Data = tuple[np.ndarray, np.ndarray]


def tiny_data(key: jax.Array, *, num_samples: int = 60, dim: int = 3) -> tuple[jax.Array, jax.Array]:
    """Draws comparisons of pairs: features [num_samples, dim] float, labels [num_samples] int32 in {0, 1}."""
    data = gaussian_comparisons(key, num_samples=num_samples, dim=dim)
    return data.features, data.labels


def tiny_choices(
    key: jax.Array, *, num_samples: int = 60, num_actions: int = 4, dim: int = 3
) -> tuple[jax.Array, jax.Array]:
    """Draws choices among actions: features [num_samples, num_actions, dim] float, labels [num_samples] int32.

    A label is the index of the preferred action.
    """
    data = gaussian_choices(key, num_samples=num_samples, num_actions=num_actions, dim=dim)
    return data.features, data.labels


def tiny_election(key: jax.Array, *, num_voters: int = 40, num_items: int = 4) -> tuple[jax.Array, jax.Array]:
    """Draws ballots on all pairs: features [num_pairs, num_items] float, labels [num_voters, num_pairs] int8.

    A label is 2 if the pair's first item is preferred, 0 if the second is, and 1 if neither is.
    """
    features = jnp.asarray(pair_features(num_items), default_float())
    return features, jax.random.randint(key, (num_voters, len(features)), 0, 3, jnp.int32).astype(jnp.int8)


def _relabel(features: list, first: list[int], second: list[int]) -> tuple[Data, Data]:
    one, other = (np.asarray(labels, np.int32) for labels in (first, second))
    return (np.asarray(features), one), (np.asarray(features), other)


# Two records. The label of the record with the larger feature norm changes. Noise is scaled to this norm, and nothing
# else hides the change.
COMPARISONS = _relabel([[1.0, 0.0], [0.3, 0.4]], [0, 1], [1, 1])
CHOICES = _relabel([[[1.0, 0.0], [0.2, 0.3], [0.0, 0.0]], [[0.3, 0.4], [0.0, 0.0], [0.1, 0.1]]], [0, 1], [2, 1])
# Four records. The label of the record with the largest norm changes. The records with small norms determine the cut
# (the norm above which features are weighted down); a wrong estimator would choose the cut by labels.
_FOUR = np.asarray([[1.0, 0.0], [0.22, 0.6], [0.15, 0.07], [-0.07, 0.07]])
MOVES_A_CUT = _relabel(_FOUR.tolist(), [0, 1, 1, 1], [1, 1, 1, 1])
CHOICES_MOVE_A_CUT = _relabel(np.stack([_FOUR, 0 * _FOUR], axis=1).tolist(), [1, 0, 0, 0], [0, 0, 0, 0])
# One record of maximal norm; its features turn by a right angle. There are no other records to hide the change.
_TURNED = np.zeros(1, np.int32)
ONE_RECORD = ((np.asarray([[2.0, 0.0]], np.float32), _TURNED), (np.asarray([[0.0, 2.0]], np.float32), _TURNED))
# One ballot of three items, which is reversed; in the central model there is a second ballot.
_PAIRS, _WINS, _LOSES = pair_features(3), np.full((1, 3), 2, np.int8), np.full((1, 3), 0, np.int8)
_OTHER = np.asarray([[1, 0, 2]], np.int8)
ONE_BALLOT = ((_PAIRS, _WINS), (_PAIRS, _LOSES))
BALLOTS = ((_PAIRS, np.concatenate([_WINS, _OTHER])), (_PAIRS, np.concatenate([_LOSES, _OTHER])))
