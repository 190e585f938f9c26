"""Entries of the library with one mistake each, in what their second audited point reaches."""

import dataclasses
from collections.abc import Callable

import numpy as np

from jaxdp.core import default_float
from jaxdp.mechanisms import _shuffled_bits as bits
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS, Entry
from jaxdp.registry.mechanisms.shuffle import VALUES
from tests.privacy.planter import planted


def a_run_after_the_cap() -> Entry:
    """Watches losses once more after all selections are made, and selects an expert again."""
    wrong = planted(
        "jaxdp.experts._svt_lazy",
        (
            "(public.switches < jnp.asarray(params.max_switches))",
            "(public.switches <= jnp.asarray(params.max_switches))",
        ),
    )
    return dataclasses.replace(LEARNERS["svt_lazy"], factory=wrong.svt_lazy)


def a_budget_of_all_decisions() -> Entry:
    """Draws sequences again as often as there are batches."""
    wrong = planted(
        "jaxdp.experts._lazy_weights._lazy_weights",
        ("budget=integer.type(tuned.budget)", "budget=integer.type(horizon)"),
    )
    return dataclasses.replace(LEARNERS["lazy_weights"], factory=wrong.lazy_weights)


def a_cut_chosen_with_the_labels() -> Entry:
    """Chooses the cut of least predicted error for the samples with label 1."""
    wrong = planted(
        "jaxdp.estimation._objective_perturbation._objective_perturbation",
        ("lambda: _rows(rows)", "lambda: _rows(terms)"),
    )
    return dataclasses.replace(ESTIMATORS["objective_perturbation_cut"], factory=wrong.objective_perturbation)


def ones_counted_wrongly() -> Entry:
    """Counts the claim for a batch in which half of the others hold a 1, as the first neighbours do."""

    def budget(*, epsilon: float, delta: float, num_users: int) -> np.ndarray:
        measure = bits.delta_measure

        def holds(local: float) -> bool:
            return measure(epsilon, local)(bits.count_distribution(num_users // 2, local, num_users)) <= delta

        return np.asarray(bits.largest_true(holds, epsilon, 20.0), default_float())

    def guarantee(*, epsilon: float, delta: float, num_users: int):
        right = MECHANISMS["shuffled_randomized_response"].guarantee
        return right(epsilon=epsilon, delta=delta, num_users=num_users)

    def half_of_others(num_users: int) -> tuple[np.ndarray, np.ndarray]:
        zero = np.zeros(num_users, np.int32)
        zero[1 : 1 + num_users // 2] = 1
        one = zero.copy()
        one[0] = 1
        return zero, one

    assert MECHANISMS["shuffled_randomized_response"].values == VALUES
    return dataclasses.replace(
        MECHANISMS["shuffled_randomized_response"],
        params=budget,
        guarantee=guarantee,
        neighbours=half_of_others,
        factory=None,
        others={},
        distribution=None,
    )


SECONDS: dict[str, tuple[str, Callable[[], Entry]]] = {
    "a run after the cap": ("svt_lazy", a_run_after_the_cap),
    "a budget of all decisions": ("lazy_weights", a_budget_of_all_decisions),
    "a cut chosen with the labels": ("objective_perturbation_cut", a_cut_chosen_with_the_labels),
    "ones counted wrongly": ("shuffled_randomized_response", ones_counted_wrongly),
}
