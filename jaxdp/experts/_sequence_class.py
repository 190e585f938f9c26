"""Types for classes of sequences of experts: weights, and the functions that learners use."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax

from jaxdp.experts._scaled import Scaled
from jaxdp.numerics import compensated


class Label(NamedTuple):
    """The current state of a drawn sequence.

    Attributes:
        expert: [] int32, the current expert.
        row: [] int32, the other part of the state: the number of switches so far in `switching`, the index of the
            sequence's rate in `markov()`, 0 in other classes.
    """

    expert: jax.Array
    row: jax.Array


class Weights(NamedTuple):
    """For each state, the sum of the weights of all sequences in this state.

    Attributes:
        sums: [num_rows, num_experts] numbers, each with a separate power of two. For `switching`, row c is for
            sequences with c switches so far, and sums do not include the prior of later switches. For `markov()`, each
            row is known only up to a factor. For `static()`, ().
        removed: [] int32, the power of two that has been divided out of all sums.
        evidence: compensated sums, because products that are rounded in every step would drift. For `markov()`,
            [num_rows]: log2 of the total weight of a rate's sequences, up to a summand that all rates share. For
            `static()`, [num_experts]: log2 of the weight of an expert. For other classes, ().
    """

    sums: Scaled | tuple[()]
    removed: jax.Array
    evidence: compensated.Sum | tuple[()]


class SequenceClass(NamedTuple):
    """A class of sequences of experts, and its prior. All functions except the first are for one lane.

    A class may start late: if its first step is at `round` r, it is the class of sequences of horizon - r rounds.

    Attributes:
        log_inverse_prior: (num_switches, num_rounds=horizon) -> ln(1 / pi(E)) in nats, on the host, for a sequence E of
            this many rounds and switches; infinity if the class has no such sequence.
        init: () -> weights before any loss.
        forward: (weights, round, scaled_losses) -> weights. Applies `scaled_losses`, [num_experts] float =
            learning_rate * losses of `round` (0-based), of any sign, and takes the step to the next round.
        odds: (weights, round) -> [num_rows, num_experts] float, proportional to the distribution of the state at
            `round` of a sequence drawn with probability proportional to its weight.
        marginal: (weights, round) -> [num_experts] float, of sum 1: the distribution of the expert played at `round`.
        draw: (key, weights, round) -> Label. Draws a sequence with probability proportional to its weight; the label is
            the sequence's state at `round`.
        roll: (key, label, round) -> Label. Draws the step from `round` to `round + 1` from the prior.
        name: name of the class.
        num_experts: N.
        horizon: T.
        num_switches: default number of switches for tuning learners; None if the class has no default.
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
    """A class of sequences for any number of experts and any horizon, as an argument of learners."""

    def __call__(self, *, num_experts: int, horizon: int) -> SequenceClass:
        """Returns the class for `num_experts` >= 2 experts and `horizon` >= 1 rounds."""
        ...
