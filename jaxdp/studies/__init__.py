"""Studies: the commands of `python -m jaxdp run NAME`. A study is an annotated function, its figure and its report."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxdp.studies.declared import Study

# The first sentence of each study's module; a test compares them. Therefore help does not import a study's module.
STUDIES = {
    "advise": "Simulate and rank the registered private algorithms on your problem.",
    "reward-estimation": "Cost of label privacy in reward estimation (Chowdhury et al., 2023: DP-Reward, Figure 1).",
    "preference-pairs": "Show what privacy costs a reward head that is learned from your preference pairs.",
    "private-ranking": "Rank items from private comparisons or ballots.",
    "private-policy": "Cost of label privacy to a policy (Chowdhury, Zhou & Natarajan, 2023: DP-Reward, eq. (9)).",
    "dueling-regret": "Cost of privacy in dueling bandits (Saha & Asi, 2024: DP-Dueling, Theorems 1 and 2).",
    "dueling-ballots": "Find the winner of an election by private duels, and the number of voters needed.",
    "dueling-linear": "Cost of privacy in duels of arms with features (Saha & Asi, 2024: DP-Dueling, Theorem 3).",
    "ldp-bandits": "Cost of local privacy in bandits (Zheng et al., 2020: LDP-Bandits, Table 1).",
    "ldp-linear": "Cost of privacy in contextual linear bandits (Zheng et al., 2020: LDP-Bandits, Algorithm 5).",
    "ldp-best-arm": "Cost of local privacy in rounds until the best arm is found (Zheng et al., 2020: LDP-Bandits).",
    "tracking-regret": "Cost of privacy in tracking the best of several experts (Asi et al., 2025: Tracking, Table 1).",
    "tracking-your-losses": "Compare private learners in tracking the best expert on your own losses.",
    "tracking-separation": "Compare learners against adaptive adversaries (Asi et al., 2025: Tracking, Theorem 5.1).",
    "trust-models": "Compare bandits with a trusted curator, with local privacy and without privacy.",
    "dueling-trust": "Compare dueling bandits that trust a curator, a shuffler or nobody.",
}


def check_study(name: str) -> None:
    """Raises ValueError unless a study has this name; does not load the study."""
    if name not in STUDIES:
        from jaxdp.validation import check_choice  # imports JAX, which help does not need

        check_choice("study", name, tuple(STUDIES))


def study(name: str) -> "Study":
    """Loads the module of a study and returns its `STUDY`.

    Args:
        name: as in `python -m jaxdp run NAME`.

    Raises:
        ValueError: if no study has this name.
    """
    check_study(name)
    return importlib.import_module(f"jaxdp.studies.{name.replace('-', '_')}").STUDY
