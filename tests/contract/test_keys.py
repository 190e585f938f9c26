"""A key that is used twice is found wherever it is used; right uses of keys are not."""

import functools

import jax
import jax.numpy as jnp
import pytest

from jaxdp.random.key_bits import own_word, uniform_from_key
from jaxdp.random.threefry import fast_key, two_uniforms
from jaxdp.registry import LEARNERS
from jaxdp.testing import checks_of
from jaxdp.testing.keys import check_keys_of


def normal(key):
    return jax.random.normal(key)


def pair(key):
    return tuple(jax.random.split(key))


def repeat(body):
    """Returns a loop of three turns over numbers."""
    return lambda key: jax.lax.fori_loop(0, 3, lambda i, total: total + body(key, i), 0.0)


def branch(first, second):
    return lambda key: jax.lax.cond(jnp.asarray(True), first, second, key)


def carried(key):
    """Keeps a key in the state that each turn uses."""
    return jax.lax.scan(lambda key, _: (key, normal(key)), key, length=3)


def handed_on(key):
    def step(key, _):
        key, own = pair(key)
        return key, normal(own)

    return jax.lax.scan(step, key, length=3)


def over_keys(key):
    return jax.lax.scan(lambda total, each: (total + normal(each), None), 0.0, jax.random.split(key, 3))


def while_unlucky(key):
    def again(state):
        return state[1] < 0

    return jax.lax.while_loop(again, lambda state: (state[0], normal(state[0])), (key, -jnp.ones(())))


def words_in_a_loop(key):
    word = own_word(key)
    return jax.lax.fori_loop(0, 3, lambda i, other: other ^ word, jnp.uint32(0))


def words_in_a_loop_to_a_limit(key):
    """Keeps a limit in the state. A turn does not change it, so the check walks through the loop twice."""
    words = jax.random.key_data(key)

    def turn(state):
        count, limit, total = state
        return count + 1, limit, total + words[0]

    return jax.lax.while_loop(lambda state: state[0] < state[1], turn, (0, 3, jnp.uint32(0)))


def some_element(key):
    return jax.random.split(key, 3)[jnp.int32(normal(child(9)(key)) > 0)]


def child(number):
    return lambda key: jax.random.fold_in(key, number)


def children_of(keys):
    return [jax.lax.map(lambda each, i=i: normal(child(i)(each)), keys) for i in range(2)]


def either(key):
    return jnp.where(normal(jax.random.fold_in(key, 9)) > 0, *pair(jax.random.fold_in(key, 8)))


MADE = jax.random.key(0)
RIGHT = {
    "two halves": lambda key: [normal(each) for each in pair(key)],
    "one draw in each branch": branch(normal, lambda key: normal(key) + 1),
    "a key a turn": repeat(lambda key, i: normal(jax.random.fold_in(key, i))),
    "a key handed on": handed_on,
    "a key an element": over_keys,
    "vmap": lambda key: jax.vmap(normal)(jax.random.split(key, 3)),
    "one draw for many": lambda key: jax.vmap(lambda x: x + normal(key))(jnp.arange(3.0)),
    "children": lambda key: [normal(jax.random.fold_in(key, i)) for i in range(2)],
    "children of elements": lambda key: children_of(jax.random.split(key, 3)),
    "a child beside its parent": lambda key: normal(key) + normal(jax.random.fold_in(key, 1)),
    "another implementation": lambda key: normal(key) + uniform_from_key(jax.random.fold_in(fast_key(key), 1)),
    "words in a loop": words_in_a_loop,
    "a half and a child that is no half": lambda key: [normal(pair(key)[0]), normal(child(2)(key))],
    "the children of a half and of a child": lambda key: [
        normal(child(0)(pair(key)[0])),
        normal(child(0)(child(7)(key))),
    ],
    "a child beside elements with other indices": lambda key: [
        normal(child(0)(key)),
        jax.vmap(normal)(jax.random.split(key, 3)[1:]),
    ],
    "a child that is no element": lambda key: [normal(child(3)(key)), normal(some_element(key))],
    "words in one branch and afterwards": lambda key: (
        (words := jax.random.key_data(key)),
        branch(lambda _: words[0], lambda _: jnp.uint32(0))(0),
        words[1],
    ),
    "one draw from either": lambda key: normal(either(key)),
    "a seed that was drawn": lambda key: normal(jax.random.key(jax.random.bits(key))),
}
WRONG = {
    "two draws": lambda key: normal(key) + jax.random.uniform(key),
    "a draw and a split": lambda key: [normal(key), *pair(key)],
    "a half twice": lambda key: [normal(pair(key)[0]), jax.random.bits(pair(key)[0])],
    "one child twice": lambda key: [draw(jax.random.fold_in(key, 3)) for draw in (normal, jax.random.bits)],
    "words twice": lambda key: [own_word(key), uniform_from_key(key)],
    "words and a draw": lambda key: [uniform_from_key(key), normal(key)],
    "a pair of words and its child": lambda key: [two_uniforms(key), normal(jax.random.fold_in(key, 0))],
    "a half and the child that equals it": lambda key: [normal(pair(key)[1]), normal(child(1)(key))],
    "a child and the half that equals it": lambda key: [normal(child(0)(key)), normal(pair(key)[0])],
    "the children of a half and of the child that equals it": lambda key: [
        normal(child(5)(pair(key)[0])),
        normal(child(5)(child(0)(key))),
    ],
    "an element of a table and a child": lambda key: [
        normal(jax.random.split(key, (2, 3))[1, 0]),
        normal(child(3)(key)),
    ],
    "a child and all": lambda key: [normal(child(2)(key)), jax.vmap(normal)(jax.random.split(key, 3))],
    "all and a child": lambda key: [over_keys(key), normal(child(2)(key))],
    "a child and a loop over all": lambda key: [normal(child(2)(key)), over_keys(key)],
    "halves and a child a turn": lambda key: [normal(pair(key)[0]), repeat(lambda key, i: normal(child(i)(key)))(key)],
    "a child a turn and halves": lambda key: [repeat(lambda key, i: normal(child(i)(key)))(key), normal(pair(key)[0])],
    "an element and a loop over all": lambda key: [
        (keys := jax.random.split(key, 3)),
        normal(keys[1]),
        jax.lax.map(normal, keys),
    ],
    "after a branch": lambda key: [branch(normal, lambda key: 0.0)(key), normal(key)],
    "in a branch twice": branch(lambda key: normal(key) + jax.random.uniform(key), normal),
    "in every turn": repeat(lambda key, i: normal(key)),
    "one child in every turn": repeat(lambda key, i: normal(jax.random.fold_in(key, 1))),
    "words in every turn": repeat(lambda key, i: uniform_from_key(key)),
    "a key that is kept": carried,
    "until it is lucky": while_unlucky,
    "over the same keys": lambda key: [over_keys(key), over_keys(key)],
    "an element and all": lambda key: [(keys := jax.random.split(key, 3)), normal(keys[1]), over_keys(key)],
    "copies": lambda key: jax.vmap(normal)(jnp.stack([key, key])),
    "elements of copies": lambda key: [(keys := jnp.broadcast_to(key, (3,))), normal(keys[0]), normal(keys[1])],
    "copies of copies": lambda key: [
        (keys := jnp.broadcast_to(key, (2, 3))[0]),
        normal(keys[0]),
        uniform_from_key(keys[2]),
    ],
    "an element of copies and the key": lambda key: [normal(jnp.broadcast_to(key, (3,))[2]), normal(key)],
    "over tiles": lambda key: jax.vmap(normal)(jnp.tile(key[None], 3)),
    "over copies": lambda key: jax.lax.map(normal, jnp.broadcast_to(key, (3,))),
    "a choice and one of it": lambda key: [normal(either(key)), normal(pair(jax.random.fold_in(key, 8))[1])],
    "one of a choice and it": lambda key: [normal(pair(jax.random.fold_in(key, 8))[0]), normal(either(key))],
    "a choice in a branch": lambda key: [
        normal(branch(child(0), child(1))(key)),
        uniform_from_key(jax.random.fold_in(key, 0)),
    ],
    "a key handed on and kept": lambda key: [handed_on(key), normal(key)],
    "an element with a drawn index, and a child": lambda key: [normal(some_element(key)), normal(child(0)(key))],
    "a child, and an element with a drawn index": lambda key: [normal(child(0)(key)), normal(some_element(key))],
    "a child and some elements": lambda key: [normal(child(1)(key)), jax.vmap(normal)(jax.random.split(key, 3)[1:])],
    "words in a loop with a constant, and a draw": lambda key: [words_in_a_loop_to_a_limit(key), normal(key)],
    "words in a branch, words and a draw in the other one": lambda key: (
        (words := jax.random.key_data(key)),
        branch(lambda key: words[0] + jax.random.bits(key, dtype=jnp.uint32), lambda _: words[0])(key),
    ),
    "words, and a draw with the key that has them": lambda key: (
        (words := jax.random.key_data(key)),
        words[0],
        normal(jax.random.wrap_key_data(words)),
    ),
    "inside jit": lambda key: [jax.jit(normal)(key), jax.jit(jax.random.uniform)(key)],
}


SAME_IN_EVERY_RUN = {
    "a constant": lambda key: normal(jax.random.key(0)),
    "a child of a constant": lambda key: normal(jax.random.fold_in(jax.random.key(0), 1)),
    "a constant in every turn": repeat(lambda key, i: normal(jax.random.key(0))),
    "the number of the turn": repeat(lambda key, i: normal(jax.random.key(i))),
    "words of the number of the turn": repeat(
        lambda key, i: normal(jax.random.wrap_key_data(jnp.stack([i, i]).astype(jnp.uint32)))
    ),
    "made outside": lambda key: normal(MADE),
    "an element made outside": lambda key: jax.lax.map(normal, jax.random.split(MADE)),
}


@pytest.mark.parametrize("use", RIGHT)
def test_right_uses(use):
    check_keys_of(jax.make_jaxpr(RIGHT[use])(jax.random.key(0)))


@pytest.mark.parametrize("implementation", [None, "jaxdp"])
def test_elements_of_a_split_key_equal_children(implementation):
    """Checks the equality because of which the check must count both as one key."""
    key = jax.random.key(3) if implementation is None else fast_key(jax.random.key(3))
    for shape in (5, (2, 3)):
        keys = jax.random.split(key, shape).ravel()
        children = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(len(keys)))
        assert (keys == children).all()


@pytest.mark.parametrize("use", WRONG)
def test_wrong_uses(use):
    with pytest.raises(AssertionError, match="a key is used twice: "):
        check_keys_of(jax.make_jaxpr(WRONG[use])(jax.random.key(0)))


@pytest.mark.parametrize("use", SAME_IN_EVERY_RUN)
def test_keys_that_are_the_same_in_every_run(use):
    with pytest.raises(AssertionError, match="a key is the same in every run: "):
        check_keys_of(jax.make_jaxpr(SAME_IN_EVERY_RUN[use])(jax.random.key(0)))


def test_a_state_that_keeps_a_key_is_found_where_it_is_repeated():
    closed = jax.make_jaxpr(lambda scale, key: (key, scale * normal(key)))(jnp.ones(()), jax.random.key(0))
    check_keys_of(closed)
    with pytest.raises(AssertionError, match="a key is used twice: in every iteration of a loop"):
        check_keys_of(closed, num_carried=1)


def test_a_key_of_somebody_else_may_be_used_at_will():
    closed = jax.make_jaxpr(lambda mine, other: (normal(mine), normal(other), uniform_from_key(pair(other)[0])))(
        *pair(jax.random.key(0))
    )
    check_keys_of(closed, free=[1])
    with pytest.raises(AssertionError, match="a key is used twice"):
        check_keys_of(closed, free=[0])


def test_the_place_is_named():
    with pytest.raises(AssertionError, match=r"in normal, line \d+ of test_keys.py"):
        check_keys_of(jax.make_jaxpr(WRONG["two draws"])(jax.random.key(0)))


def draws_again(function):
    """Returns the function, which draws once more with the key that it used."""

    @functools.wraps(function)
    def drawing(key, *arguments):
        output = function(key, *arguments)
        bits = jax.random.bits(key)
        return jax.tree.map(lambda leaf: jnp.where(bits >= 0, leaf, leaf), output)

    return drawing


@pytest.mark.parametrize(
    ("name", "function"),
    [
        *(("rucb", "privatize"), ("ucb", "privatize"), ("ucb", "init"), ("linear_ucb", "act")),
        *(("linear_ucb", "privatize"), ("thompson", "act"), ("explore_then_commit", "update")),
        *(("tsallis_inf", "act"), ("fkm", "act"), ("limited_updates", "update"), ("svt_restarts", "init")),
        *(("ebs_phased", "update"), ("double_thompson", "act"), ("exponential_weights", "privatize")),
    ],
)
def test_a_registered_learner_that_draws_twice_with_a_key_fails(name, function):
    entry = LEARNERS[name]
    learner = entry.make()
    wrong = learner._replace(**{function: draws_again(getattr(learner, function))})
    checks = checks_of(wrong, entry.make_environment(), entry.values, horizon=entry.horizon)
    (check,) = (check for check in checks if check.name == "no key used twice")
    with pytest.raises(AssertionError, match="a key is used twice"):
        check()
