"""The vocabulary of classes of sequences: what weights over one are kept as, and what a learner asks of it."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax

from jaxdp.experts._scaled import Scaled
from jaxdp.numerics import compensated


class Label(NamedTuple):
    """One sequence of a class, as far as it has been drawn.

    Attributes:
        expert: [] int32, the one that it plays now.
        row: [] int32, what else decides how it goes on: switches so far in `switching`, the index of its rate in
            `markov()`, 0 in other classes.
    """

    expert: jax.Array
    row: jax.Array


class Weights(NamedTuple):
    """The weights of all sequences, added up by the state that they are in.

    Attributes:
        sums: [num_rows, num_experts] numbers with a power of two each. Of `switching` F(c, j) of the source: the future
            of the prior is not in them. Of `markov()` each row up to a factor of its own; of `static()` none.
        removed: [] int32, the power of two that has been divided out of all.
        evidence: compensated sums, which products that are rounded in every step would drift away from. Of `markov()`
            [num_rows]: log2 of the weight of all sequences of a rate, up to a summand that all rates have. Of
            `static()` [num_experts]: log2 of the weight of an expert. Of other classes none.
    """

    sums: Scaled | tuple[()]
    removed: jax.Array
    evidence: compensated.Sum | tuple[()]


class SequenceClass(NamedTuple):
    """A class of sequences of experts, and its prior. All functions but the first are for one lane.

    A class may be begun late: from `round` r on it is the class of sequences of horizon - r rounds.

    Attributes:
        log_inverse_prior: (num_switches, num_rounds=horizon) -> ln(1 / pi(E)) in nats, on the host, for a sequence E of
            so many rounds and switches; infinity if the class has none.
        init: () -> weights before any loss.
        forward: (weights, round, scaled_losses) -> weights. Absorbs `scaled_losses`, [num_experts] float =
            learning_rate * losses of `round` (0-based), of any sign, and takes the step to the next round.
        law: (weights, round) -> [num_rows, num_experts] float, whose sum is 1: the law of a sequence's state at
            `round`, by weight.
        marginal: (weights, round) -> [num_experts] float, whose sum is 1: the law of the expert played at `round`.
        draw: (key, weights, round) -> Label. A sequence drawn by weight, in its state at `round`.
        roll: (key, label, round) -> Label. From `round` to `round + 1` by the prior.
        name: of the class.
        num_experts: N.
        horizon: T.
        num_switches: that learners are tuned for if nothing else is asked; None if the class suits all alike.
    """

    log_inverse_prior: Callable[..., float]
    init: Callable[[], Weights]
    forward: Callable[[Weights, jax.Array, jax.Array], Weights]
    law: Callable[[Weights, jax.Array], jax.Array]
    marginal: Callable[[Weights, jax.Array], jax.Array]
    draw: Callable[[jax.Array, Weights, jax.Array], Label]
    roll: Callable[[jax.Array, Label, jax.Array], Label]
    name: str
    num_experts: int
    horizon: int
    num_switches: int | None = None


class Sequences(Protocol):
    """A class of which experts and horizon are still open: what a learner takes."""

    def __call__(self, *, num_experts: int, horizon: int) -> SequenceClass:
        """The class for so many experts (>= 2) and rounds (>= 1)."""
        ...
