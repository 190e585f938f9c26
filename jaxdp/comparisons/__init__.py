"""Comparisons of learners or estimators on one problem, with a table, a figure, the claims and a verdict.

`jaxdp.compare` runs all learners or estimators with the same seeds on the same worlds. Learners that are simulated by
counts are an exception: they meet different worlds.

>>> import jax, jaxdp
>>> result = jaxdp.compare(
...     {"UCB": jaxdp.bandits.ucb, "Exp3": jaxdp.bandits.exp3},
...     jaxdp.bandits.bernoulli_bandit([0.2, 0.8]),
...     epsilon=[1.0, float("inf")],
...     horizon=300,
...     num_seeds=20,
...     key=jax.random.key(0),
... )
>>> result.not_worse().sel(learner="UCB").values.tolist()
[True, True]
"""

from jaxdp.comparisons._compare import compare
from jaxdp.comparisons._comparison import Comparison

__all__ = ["Comparison", "compare"]
