"""The six variants of the sparse vector technique in Lyu, Su & Li (2017), Figure 1; sensitivity 1, threshold 0.

They are (1) Lyu, Su & Li's own, (2) Dwork & Roth 2014, (3) Roth's lecture notes of 2011, (4) Lee & Clifton 2014,
(5) Stoddard et al. 2014 and (6) Chen et al. 2015.

| variant | 1 | 2 | 3 | 4 | 5 | 6 |
|---|---|---|---|---|---|---|
| e1 (e2 is the rest) | e/2 | e/2 | e/2 | e/4 | e/2 | e/2 |
| threshold noise | 1/e1 | c/e1 | 1/e1 | 1/e1 | 1/e1 | 1/e1 |
| drawn again after each above | no | yes | no | no | no | no |
| query noise | 2c/e2 | 2c/e1 | c/e2 | 1/e2 | none | 1/e2 |
| releases the noisy answer | no | no | yes | no | no | no |
| stops after c above | yes | yes | yes | yes | no | no |
| privacy | e | e | none | (1 + 6c)/4 e | none | none |
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Attack
from tests.privacy.case import Case, claim

BELOW, ABOVE, STOPPED = 0, 1, 2
EPSILON = 1.0


class Variant(NamedTuple):
    """One column of the table, in numbers: one program serves all that release decisions only."""

    threshold_scale: np.float32
    query_scale: np.float32
    cutoff: np.int32
    redrawn: np.bool_


def variant(number: int, cutoff: int) -> Variant:
    first = EPSILON / (4 if number == 4 else 2)
    second = EPSILON - first
    never = np.iinfo(np.int32).max
    threshold_scale, query_scale, cutoff = {
        1: (1 / first, 2 * cutoff / second, cutoff),
        2: (cutoff / first, 2 * cutoff / first, cutoff),
        3: (1 / first, cutoff / second, cutoff),
        4: (1 / first, 1 / second, cutoff),
        5: (1 / first, 0.0, never),
        6: (1 / first, 1 / second, never),
    }[number]
    return Variant(np.float32(threshold_scale), np.float32(query_scale), np.int32(cutoff), np.bool_(number == 2))


def decisions_and_answers(key, variant: Variant, queries):
    """Returns below, above or stopped for each query, [K] int32, and the noisy answers that were above, else 0, [K]
    float.
    """
    key_threshold, key_queries = jax.random.split(key)
    laplace = jax.random.laplace(key_threshold, (len(queries) + 1,), queries.dtype)
    noisy = queries + variant.query_scale * jax.random.laplace(key_queries, queries.shape, queries.dtype)

    def ask(carry, query):
        threshold, count = carry
        answer, redrawn = query
        stopped = count >= variant.cutoff
        above = (answer >= threshold) & ~stopped
        threshold = jnp.where(above & variant.redrawn, redrawn, threshold)
        decision = jnp.where(stopped, STOPPED, jnp.where(above, ABOVE, BELOW)).astype(jnp.int32)
        return (threshold, count + above.astype(jnp.int32)), (decision, jnp.where(above, answer, 0))

    thresholds = variant.threshold_scale * laplace
    return jax.lax.scan(ask, (thresholds[0], jnp.int32(0)), (noisy, thresholds[1:]))[1]


def decisions(key, variant: Variant, queries):
    return decisions_and_answers(key, variant, queries)[0]


def queries(below: tuple[float, float], above: tuple[float, float], counts: tuple[int, int]):
    """Makes queries: the first move from below[0] to below[1], the last from above[0] to above[1]."""
    return tuple(np.repeat(np.asarray(pair, np.float32), counts) for pair in zip(below, above, strict=True))


AGAINST = queries((0, 1), (1, 0), (3, 3))  # the paper's counterexample to variant 5, longer


def _case(number: int, cutoff: int, neighbours, trials: int, release=decisions) -> Case:
    wrong = Attack(release, variant(number, cutoff), neighbours, claim(EPSILON))
    right = tuple(wrong._replace(release=decisions, params=variant(n, cutoff)) for n in (1, 2))
    return Case(wrong, right, trials)


def variant_3() -> Case:
    """Releases the answer above; a small one betrays a small threshold, over which queries below are evidence."""
    return _case(3, 1, queries((0, 1), (1, 0), (5, 1)), 300_000, decisions_and_answers)


def variant_4() -> Case:
    return _case(4, 3, AGAINST, 40_000)


def variant_5() -> Case:
    return _case(5, 1, AGAINST, 4_000)


def variant_6() -> Case:
    return _case(6, 1, queries((0, 1), (0, -1), (3, 3)), 40_000)


CASES = {
    "sparse vector, variant 3": variant_3,
    "sparse vector, variant 4": variant_4,
    "sparse vector, variant 5": variant_5,
    "sparse vector, variant 6": variant_6,
}
