"""How much of a claim attacks reach on right code, as a share, with 10^6 trials: far less is a sign of a mistake."""

from dataclasses import replace
from typing import Any

MOST = 0.85  # of what is not listed
REACHED = {
    "classical_gaussian": 0.4,  # true: 0.554
    "plackett_luce_objective_perturbation": 0.8,
    "ebs_elimination": 0.7,  # an outcome counts twice in one run of seven: the opponent is drawn, drops are noisy
    "ebs_elimination_gaussian": 0.4,  # an outcome counts twice in longer runs only
    "tsallis_inf_gaussian": 0.8,  # of Gaussian noise at a small delta
    "lazy_weights": 0.8,  # true: 0.895; of one loss and later ones, at most two move resamples by as much as they may
    "lazy_weights_markov": 0.5,  # true: 0.590; a loss before a switch says little of what comes after it
    "svt_restarts": 0.5,  # true: 0.576, and at most 7/8 at any sizes: see its docstring
    "svt_lazy": 0.8,  # true: 0.971; what tells most is one outcome in thousands
    "svt_lazy_zcdp": 0.4,  # true: 0.503; few rounds say little of the threshold's noise
    "counter_weights": 0.5,  # of Gaussian noise a bound on rho finds as much of one release; the grey box finds all
    "counter_weights_switching": 0.45,  # likewise
    "mirror_descent": 0.6,  # true: 0.751; draws of two experts that differ by much cost less than their range says
    "mirror_descent_intervals": 0.45,  # a loss is forgotten at the end of each interval
    "moment_channel_paper": 0.2,  # two releases, which no two users move as far as may be at once, and loose constants
    "shuffled_randomized_response": 0.7,  # what delta leaves is in the far tail of a count
    "objective_perturbation_full": 0.08,  # the theorem counts a shift twice as long, and its tails twice
}
BUDGETS = (0.1, 4.0)  # values of epsilon at which learners and estimators are attacked besides their own


def told_auditors(entries: dict[str, Any]) -> dict[str, Any]:
    """The library's entries with the share that attacks reach, and other budgets, where they claim something.

    Budgets that an entry's own `grid` names, and those that its `values` lack, are left alone.
    """
    told = {}
    for name, entry in entries.items():
        share = None if entry.proof == "none" else REACHED.get(name, MOST)
        grid = dict(entry.grid)
        if share is not None and "epsilon" in entry.values and "epsilon" not in grid:
            grid["epsilon"] = tuple(x for x in BUDGETS if x != entry.values["epsilon"])
        told[name] = replace(entry, reached=share, grid=grid)
    return told
