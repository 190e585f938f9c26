"""Data of the study of preference pairs: a reader, synthetic data, and the split by persons and prompts."""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from jaxdp.preferences import Pairs, pairs_from_chosen_rejected, read_pairs
from jaxdp.preferences.pair_files import read_ids

HELD_OUT = 0.25  # about this fraction of persons, and of prompts
DEMO = "made-up data: 4,000 pairs, 64 features, 150 persons"


class Part(NamedTuple):
    """Comparisons with public features and private labels.

    Attributes:
        features: [num_samples, dim] float, public.
        labels: [num_samples] in {0, 1/2, 1}, private; 1 if the first response is preferred, 1/2 for a tie.
        persons: [num_samples] public ids.
        offset: [num_samples] float, the known part of each margin, public; None means 0.
    """

    features: np.ndarray
    labels: np.ndarray
    persons: np.ndarray
    offset: np.ndarray | None = None


class Data(NamedTuple):
    """Comparisons with ids, and a text that names the source of the comparisons.

    Attributes:
        pairs: the comparisons; `pairs.persons` is None if ids of persons are not known.
        prompts: [num_samples] public ids of prompts; None if these ids are not known.
        source: the text that names the source.
        offset: as in `Part`.
    """

    pairs: Pairs
    prompts: np.ndarray | None
    source: str
    offset: np.ndarray | None = None


class Split(NamedTuple):
    """Training comparisons, and held-out comparisons by other persons on other prompts, as far as ids are known.

    Attributes:
        train: the training comparisons.
        held_out: the comparisons on which heads are scored.
        has_persons: whether ids of persons are known.
        text: sentences with the source and the numbers of comparisons and persons.
    """

    train: Part
    held_out: Part
    has_persons: bool
    text: str


def demo() -> Data:
    """Draws synthetic comparisons by 150 persons with a common linear reward and individual deviations.

    Coordinate j of an embedding is normal with variance 1/j. Margins of the common reward have a standard deviation of
    about 1.9. Each person's weights are the common weights plus a normal vector, which adds margins with a standard
    deviation of about 0.5. A few persons give many labels.
    """
    random = np.random.default_rng(2024)
    count, dim = 4000, 64
    scale = np.arange(1, dim + 1) ** -0.5
    persons = np.sort(random.choice(150, count, p=(weights := np.arange(1, 151) ** -0.7) / weights.sum()))
    persons[:150] = np.arange(150)
    responses = random.normal(size=(2, count, dim)) * scale
    unit = np.linalg.norm(scale) * np.sqrt(2)
    theta, deviations = 1.5 / unit * random.normal(size=dim), 0.5 / unit * random.normal(size=(150, dim))
    margins = np.einsum("nd,nd->n", responses[0] - responses[1], theta + deviations[persons])
    first_wins = (random.random(count) < 1 / (1 + np.exp(-margins)))[:, None]
    pairs = pairs_from_chosen_rejected(*(np.where(first_wins == won, *responses) for won in (True, False)))
    return Data(pairs._replace(persons=persons[pairs.rows]), None, DEMO)


def load(table: str | None, prompt: str | None = None, public_score: int | None = None, **columns: Any) -> Data:
    """Reads the user's comparisons; without arguments, returns the comparisons of `demo`.

    Args:
        table: the file, as in `read_pairs`.
        prompt: the column, or the .npy file, with ids of prompts; None if these ids are not known.
        public_score: index of the embeddings' entry that is a public score. Differences of scores become `offset`, and
            the entry is removed from the features. None if there is no public score.
        **columns: further arguments of `read_pairs`. If any argument is given, `chosen` and `rejected` are required.

    Raises:
        ValueError: if `chosen` or `rejected` is missing, files have invalid contents, or `public_score` is not one of
            two or more entries of the embeddings.
        OSError: if a file cannot be read.
    """
    columns = {name: value for name, value in columns.items() if value is not None}
    if table is None and prompt is None and public_score is None and not columns:
        return demo()
    if None in (columns.get("chosen"), columns.get("rejected")):
        sides = {name: columns.get(name) for name in ("chosen", "rejected")}
        raise ValueError(f"chosen and rejected must both be given with other columns or a table, got {sides}")
    pairs = read_pairs(table, **columns)
    prompts = None if prompt is None else read_ids(table, prompt, str(columns["chosen"]))[pairs.rows]
    data = Data(pairs, prompts, str(table or "your files"))
    if public_score is None:
        return data
    dim = pairs.features.shape[1]
    if not 0 <= public_score < dim or dim == 1:
        raise ValueError(
            f"public_score must be one of several entries of embeddings, from 0 to {dim - 1}, got {public_score}"
        )
    features = np.delete(pairs.features, public_score, axis=1)
    return data._replace(pairs=pairs._replace(features=features), offset=pairs.features[:, public_score])


def with_score(theta: np.ndarray, public_score: int | None) -> np.ndarray:
    """Returns theta for embeddings as they were read: inserts the weight 1 for the public score, if there is one."""
    return theta if public_score is None else np.insert(theta, public_score, 1)


def split(data: Data) -> Split:
    """Holds out persons and prompts by a hash of their ids. Labels are not read.

    Without ids of persons, rows with the same features are held out together. A row belongs to neither part if only its
    person or only its prompt is held out.

    Raises:
        ValueError: if a part is empty.
    """
    pairs = data.pairs
    has_persons = pairs.persons is not None
    persons = np.arange(len(pairs.labels)) if pairs.persons is None else pairs.persons
    keys = persons if has_persons else [row.tobytes() for row in pairs.features]
    other_person = _held_out(keys)
    other_prompt = other_person if data.prompts is None else _held_out(data.prompts)
    sides = (~other_person & ~other_prompt, other_person & other_prompt)
    train, held_out = (
        Part(
            pairs.features[side], pairs.labels[side], persons[side], None if data.offset is None else data.offset[side]
        )
        for side in sides
    )
    if not len(train.labels) or not len(held_out.labels):
        raise ValueError(
            f"person and prompt must have enough ids that about {HELD_OUT:.0%} can be held out, got "
            f"{len(train.labels)} rows to learn from and {len(held_out.labels)} held out"
        )
    left = len(pairs.labels) - len(train.labels) - len(held_out.labels)
    who = "persons" if has_persons else "rows (no ids of persons are known, so nothing is claimed for a person)"
    text = (
        f"{data.source}. Learned from {len(train.labels):,} comparisons of {len(set(train.persons.tolist())):,} {who}; "
        f"scored on {len(held_out.labels):,} of {len(set(held_out.persons.tolist())):,} others"
    )
    return Split(train, held_out, has_persons, text + (f"; {left:,} are in neither part." if left else "."))


def _held_out(ids: Iterable[Any]) -> np.ndarray:
    """Returns whether each id is held out, [num_samples] bool; hashes select a fraction of about `HELD_OUT` of ids."""
    hashes = {}
    for row_id in ids:
        if row_id not in hashes:
            content = row_id if isinstance(row_id, bytes) else str(row_id).encode()
            hashes[row_id] = int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big") / 2**64 < HELD_OUT
    return np.array([hashes[row_id] for row_id in ids])
