"""Types of classes of sequences: their weights, and the functions that learners use."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax

from jaxdp.experts._scaled import Scaled
from jaxdp.numerics import compensated


class Label(NamedTuple):
    """The current state of a drawn sequence.

    Attributes:
        expert: [] int32, the current expert.
        row: [] int32, the rest of the state on which the future of the sequence depends: switches so far in
            `switching`, the index of its rate in `markov()`, 0 in other classes.
    """

    expert: jax.Array
    row: jax.Array


class Weights(NamedTuple):
    """The weights of all sequences, added up by their current state.

    Attributes:
        sums: [num_rows, num_experts] numbers with a power of two each. For `switching`, F(c, j) of the source: the
            future of the prior is not included. For `markov()`, each row up to a factor of its own; for `static()`, ().
        removed: [] int32, the power of two that has been divided out of all sums.
        evidence: compensated sums, because products that are rounded in every step would drift. For `markov()`,
            [num_rows]: log2 of the weight of all sequences of a rate, up to the same summand for all rates. For
            `static()`, [num_experts]: log2 of the weight of an expert. For other classes, ().
    """

    sums: Scaled | tuple[()]
    removed: jax.Array
    evidence: compensated.Sum | tuple[()]


class SequenceClass(NamedTuple):
    """A class of sequences of experts, and its prior. All functions except the first are for one lane.

    A class may start late: from `round` r on, it is the class of sequences of horizon - r rounds.

    Attributes:
        log_inverse_prior: (num_switches, num_rounds=horizon) -> ln(1 / pi(E)) in nats, on the host, for a sequence E of
            this many rounds and switches; infinity if the class has none.
        init: () -> weights before any loss.
        forward: (weights, round, scaled_losses) -> weights. Absorbs `scaled_losses`, [num_experts] float =
            learning_rate * losses of `round` (0-based), of any sign, and takes the step to the next round.
        distribution: (weights, round) -> [num_rows, num_experts] float, of sum 1: by weight, the distribution of a
            sequence's state at `round`.
        marginal: (weights, round) -> [num_experts] float, of sum 1: the distribution of the expert played at `round`.
        draw: (key, weights, round) -> Label. A sequence drawn by weight, in its state at `round`.
        roll: (key, label, round) -> Label. The step from `round` to `round + 1`, drawn from the prior.
        name: name of the class.
        num_experts: N.
        horizon: T.
        num_switches: default number of switches for tuning learners; None if the class has no default.
    """

    log_inverse_prior: Callable[..., float]
    init: Callable[[], Weights]
    forward: Callable[[Weights, jax.Array, jax.Array], Weights]
    distribution: Callable[[Weights, jax.Array], jax.Array]
    marginal: Callable[[Weights, jax.Array], jax.Array]
    draw: Callable[[jax.Array, Weights, jax.Array], Label]
    roll: Callable[[jax.Array, Label, jax.Array], Label]
    name: str
    num_experts: int
    horizon: int
    num_switches: int | None = None


class Sequences(Protocol):
    """A class of sequences for experts and a horizon yet to be given: the argument of learners."""

    def __call__(self, *, num_experts: int, horizon: int) -> SequenceClass:
        """Returns the class for this many experts (>= 2) and rounds (>= 1)."""
        ...
