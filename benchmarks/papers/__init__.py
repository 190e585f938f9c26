"""Papers reproduced: `python benchmarks/papers/run.py PAPER`. A paper is a table of rows, statements with measures."""

import importlib
from typing import TYPE_CHECKING, NamedTuple

from jaxdp.validation import check_choice

if TYPE_CHECKING:
    from benchmarks.papers.rows import Row


class Paper(NamedTuple):
    """A source paper.

    Attributes:
        citation: authors, year and title.
        minutes: of processors that the default takes where everything is compiled. Measured: dp-dueling 65 s (24 s with
            its programs in the cache), tracking 122 s (54 s), on x86-64. Estimated by these ratios: dp-reward (64 s
            with its programs in the cache) and ldp-bandits (94 s).
    """

    citation: str
    minutes: int


PAPERS = {
    "dp-reward": Paper(
        "Chowdhury, Zhou & Natarajan (2023), Differentially Private Reward Estimation with Preference Feedback", 5
    ),
    "dp-dueling": Paper(
        "Saha & Asi (2024), DP-Dueling: Learning from Preference Feedback without Compromising User Privacy", 2
    ),
    "tracking": Paper("Asi, Raman & Saha (2025), Tracking the Best Expert Privately", 3),
    "ldp-bandits": Paper(
        "Zheng, Cai, Huang, Li & Wang (2020), Locally Differentially Private (Contextual) Bandits Learning", 5
    ),
}


def check_paper(name: str) -> str:
    """Checks that there is such a paper, and returns its name; nothing is loaded.

    Raises:
        ValueError: if there is none.
    """
    return check_choice("paper", name, tuple(PAPERS))


def rows_of(name: str) -> "tuple[Row, ...]":
    """Returns the rows of a paper, `ROWS` of the module of its name, which is loaded for it.

    Raises:
        ValueError: if there is no paper of that name.
    """
    return importlib.import_module(f"benchmarks.papers.{check_paper(name).replace('-', '_')}").ROWS
