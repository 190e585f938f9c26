"""Studies: what `python -m jaxdp run NAME` runs. A study is an annotated function, its figure and its report."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxdp.studies.declared import Study

# The first sentence of each study's module, which a test compares: help is printed without loading the studies.
STUDIES = {
    "advise": "Which private algorithm to use: registered candidates, simulated and ranked.",
    "reward-estimation": "What label privacy costs in reward estimation (Chowdhury et al., 2023: DP-Reward, Figure 1).",
    "private-ranking": "Rank items from comparisons or ballots that are private.",
    "private-policy": "What label privacy costs a policy (Chowdhury, Zhou & Natarajan, 2023: DP-Reward, eq. (9)).",
    "dueling-regret": "What privacy costs in dueling bandits (Saha & Asi, 2024: DP-Dueling, Theorems 1 and 2).",
    "dueling-ballots": "The winner of an election by private duels, and from how many voters on.",
    "dueling-linear": "What privacy costs in duels of arms with features (Saha & Asi, 2024: DP-Dueling, Theorem 3).",
    "ldp-bandits": "What local privacy costs in bandits (Zheng et al., 2020: LDP-Bandits, Table 1).",
    "ldp-linear": "What privacy costs in contextual linear bandits (Zheng et al., 2020: LDP-Bandits, Algorithm 5).",
    "ldp-best-arm": "What local privacy costs in rounds until the best arm is found (Zheng et al., 2020: LDP-Bandits).",
    "tracking-regret": "What privacy costs in tracking the best of several experts (Tracking, Table 1).",
    "tracking-your-losses": "Which private learner tracks best on losses of yours, and at which epsilon.",
    "tracking-separation": "Which learners survive an adversary who reacts to plays (Tracking, Theorem 5.1).",
    "trust-models": "What trust costs in bandits: a curator, nobody, no privacy.",
    "dueling-trust": "What trust costs in dueling bandits: a curator, a shuffler, nobody.",
}


def check_study(name: str) -> None:
    """Checks that there is a study of that name, without loading it.

    Raises:
        ValueError: if there is none.
    """
    if name not in STUDIES:
        from jaxdp.validation import check_choice  # brings JAX, which help does not need

        check_choice("study", name, tuple(STUDIES))


def study(name: str) -> "Study":
    """A study, `STUDY` of the module of its name, which is loaded for it.

    Args:
        name: as in `python -m jaxdp run NAME`.

    Raises:
        ValueError: if there is no study of that name.
    """
    check_study(name)
    return importlib.import_module(f"jaxdp.studies.{name.replace('-', '_')}").STUDY
