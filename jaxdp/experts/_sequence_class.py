"""Types for classes of sequences of experts: their weights, and the functions that learners call."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax

from jaxdp.experts._scaled import Scaled
from jaxdp.numerics import compensated


class Label(NamedTuple):
    """The current state of a drawn sequence.

    Attributes:
        expert: [] int32, the current expert.
        row: [] int32, the other part of the state. For `switching`, the number of switches so far; for `markov` without
            a switch rate, the index of the sequence's rate; for other classes, 0.
    """

    expert: jax.Array
    row: jax.Array


class Weights(NamedTuple):
    """For each state, the total weight of all sequences in this state.

    Attributes:
        sums: [num_rows, num_experts] numbers, each stored as a float times a power of two. For `switching`, row c
            contains the sequences with c switches so far; the prior weight of the rounds to come is left out, and
            `odds`, `marginal` and `draw` add it. For `markov` without a switch rate, each row is determined only up to
            a factor. For `static()`, ().
        removed: [] int32, the exponent of the power of two by which all sums have been divided.
        evidence: compensated sums of logarithms, because products that are rounded in every step would drift. For
            `markov` without a switch rate, [num_rows]: log2 of the total weight of the sequences with each rate, up to
            a common constant. For `static()`, [num_experts]: log2 of the weight of each expert. For other classes, ().
    """

    sums: Scaled | tuple[()]
    removed: jax.Array
    evidence: compensated.Sum | tuple[()]


class SequenceClass(NamedTuple):
    """A class of sequences of experts, with its prior; all functions except the first process one lane.

    A learner may start a class at any round r: its first call of `forward` has this `round`, and the class contains
    sequences of the horizon - r rounds that remain.

    Attributes:
        log_inverse_prior: (num_switches, num_rounds=horizon) -> ln(1 / pi(E)), on the host, where pi is the prior and E
            a sequence with these numbers of rounds and switches; infinity if the class has no such sequence. Raises a
            ValueError unless num_switches < num_rounds.
        init: () -> weights before any loss.
        forward: (weights, round, scaled_losses) -> weights. Applies `scaled_losses` and takes the step to the next
            round. `scaled_losses`, [num_experts] float of any sign, are learning_rate * losses of `round`; rounds are
            numbered from 0. Weights are accurate in float32 for magnitudes < 10^5. Classes with switches limit
            magnitudes to 2^27.
        odds: (weights, round) -> [num_rows, num_experts] float, proportional to the distribution of the state at
            `round`, if a sequence is drawn with probability proportional to its weight.
        marginal: (weights, round) -> [num_experts] float with sum 1, the distribution of the expert played at `round`.
        draw: (key, weights, round) -> Label. Draws a sequence with probability proportional to its weight, and returns
            the sequence's state at `round`.
        roll: (key, label, round) -> Label. Draws the state at `round + 1` from the prior, given the state at `round`.
        name: name of the class.
        num_experts: N.
        horizon: T.
        num_switches: default number of switches for which learners are tuned; None if the class has no default.
    """

    log_inverse_prior: Callable[..., float]
    init: Callable[[], Weights]
    forward: Callable[[Weights, jax.Array, jax.Array], Weights]
    odds: Callable[[Weights, jax.Array], jax.Array]
    marginal: Callable[[Weights, jax.Array], jax.Array]
    draw: Callable[[jax.Array, Weights, jax.Array], Label]
    roll: Callable[[jax.Array, Label, jax.Array], Label]
    name: str
    num_experts: int
    horizon: int
    num_switches: int | None = None


class Sequences(Protocol):
    """A class of sequences for any number of experts and any horizon; it is an argument of learners."""

    def __call__(self, *, num_experts: int, horizon: int) -> SequenceClass:
        """Returns the class for `num_experts` >= 2 experts and `horizon` >= 1 rounds."""
        ...
