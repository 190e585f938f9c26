"""Names of algorithms for figures and tables, such as "EBS, phases" for `ebs_phased`."""

from collections.abc import Mapping
from typing import Any

from jaxdp.registry.registered import ESTIMATORS, LEARNERS, MECHANISMS

SPELLINGS = {
    "ebs": "EBS",
    "exp3": "EXP3",
    "fkm": "FKM",
    "gaussian": "Gaussian",
    "inf": "INF",
    "krr": "k-RR",
    "laplace": "Laplace",
    "lil": "lil'",
    "luce": "Luce",
    "markov": "Markov",
    "mle": "MLE",
    "plackett": "Plackett",
    "rr": "RR",
    "rucb": "RUCB",
    "sgd": "SGD",
    "svt": "SVT",
    "thompson": "Thompson",
    "thurstone": "Thurstone",
    "ucb": "UCB",
    "zcdp": "zCDP",
}
# In a registered name, the first of these words after the opening word starts the description of the variant.
VARIANTS = (
    *("ball", "binary", "blocks", "bounded", "box", "central", "clipped", "cut", "full", "gaussian", "heuristic"),
    *("intervals", "joint", "krr", "laplace", "lazy", "local", "markov", "noisy", "oblivious", "paper", "rr"),
    *("shuffle", "smooth", "static", "strongly", "switching", "tree", "zcdp"),
)


def display_name(name: str, *, without: str = "") -> str:
    """Returns an algorithm's name for figures and tables: the `title` of its entry, or a text made from the name.

    Args:
        name: name of an entry; names that are not registered are accepted, too.
        without: a word of the variant to leave out, such as "central", if the text around the name contains it. A
            `title` is not changed.

    Examples:
        >>> display_name("ebs_phased"), display_name("ucb_central_tree")
        ('EBS, phases', 'UCB, central tree')
        >>> display_name("ucb_central_tree", without="central")
        'UCB, tree'
    """
    tables: tuple[Mapping[str, Any], ...] = (LEARNERS, ESTIMATORS, MECHANISMS)
    for entries in tables:
        if name in entries and entries[name].title:
            return entries[name].title
    words = name.split("_")
    cut = next((index for index, word in enumerate(words) if index > 0 and word in VARIANTS), len(words))
    noun = " ".join(SPELLINGS.get(word, word) for word in words[:cut])
    variant = " ".join(SPELLINGS.get(word, word) for word in words[cut:] if word != without)
    noun = noun if words[0] in SPELLINGS else noun[:1].upper() + noun[1:]
    return f"{noun}, {variant}" if variant else noun
