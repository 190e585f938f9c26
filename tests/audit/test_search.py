"""Domains keep to neighbours, searches find revealing pairs, and bounds are counted on separate outputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import Guarantee
from jaxdp.audit import (
    Attack,
    SearchEffort,
    Space,
    Target,
    UserData,
    perturb_entries,
    replace_one_row,
    scoreboard,
    search,
)
from jaxdp.audit import _scoreboard as board
from jaxdp.audit._search import separation
from jaxdp.audit.as_code import expression
from jaxdp.audit.sampling import Outputs
from jaxdp.audit.targets import AttackPoint
from jaxdp.core import default_float
from jaxdp.mechanisms import laplace, randomized_response

CLAIM = Guarantee.pure(1.0, trust_model="central", privacy_unit="one number", argument="for tests")
ONE = np.float32(1)
SMALL = SearchEffort(16, 3, 256)


def pairs(domain, count=300):
    """Returns pairs of new and mutated genomes."""

    def drawn():
        genomes = jax.vmap(domain.start)(jax.random.split(jax.random.key(0), count))
        for step in range(3):
            others = jax.tree.map(lambda x: jnp.roll(x, 1, axis=0), genomes)
            genomes = jax.vmap(domain.alter)(jax.random.split(jax.random.key(step + 1), count), genomes, others)
        return jax.vmap(domain.pair)(genomes)

    return jax.tree.map(np.asarray, jax.jit(drawn)())


@pytest.mark.parametrize(
    ("norm", "by", "dtype"), [("l1", 3.0, np.float32), ("max", 1, np.int32), ("l2", 0.3, np.float32)]
)
def test_numbers_move_by_no_more_than_they_may(norm, by, dtype):
    domain = perturb_entries((4,), norm=norm, by=by, dtype=dtype)
    first, second, _ = pairs(domain)
    moved = np.abs(second.astype(np.float64) - first.astype(np.float64))
    size = {"l1": moved.sum(axis=1), "l2": np.sqrt(np.square(moved).sum(axis=1)), "max": moved.max(axis=1)}[norm]
    assert (size <= by * (1 + 2e-6)).all()
    assert (size > 0.99 * by).mean() > 0.2
    assert np.abs(first).max() >= 2**30
    again = domain.pair(domain.genome(first[0], second[0]))
    assert [np.asarray(x).tolist() for x in again[:2]] == [first[0].tolist(), second[0].tolist()]


def test_a_domain_of_rows_refuses_inputs_that_are_no_neighbours():
    users = UserData(np.arange(3, dtype=np.float32), np.arange(3, dtype=np.float32))
    domain = replace_one_row(
        lambda key: UserData(jnp.float32(0), jnp.float32(0)),
        count=3,
        unit=lambda row, other_row: row._replace(answers=other_row.answers),
    )
    one, two = (users._replace(answers=np.asarray(answers, np.float32)) for answers in ([0, 7, 2], [0, 7, 9]))
    assert domain.genome(users, one).changed == 1
    with pytest.raises(ValueError, match=r"must differ in at most one row, got changes of rows \[1, 2\]"):
        domain.genome(users, two)
    with pytest.raises(ValueError, match="must differ in one privacy unit, got a larger change of row 1"):
        domain.genome(users, one._replace(contexts=np.asarray([0, 8, 2], np.float32)))


def test_a_domain_of_arrays_refuses_inputs_that_are_no_neighbours():
    moved = perturb_entries((2,), norm="l1", by=1.0)
    with pytest.raises(ValueError, match=r"must be at most 1 apart in the l1 norm, got \[0\. 0\.\] and \[1\. 1\.\]"):
        moved.genome(np.zeros(2, np.float32), np.ones(2, np.float32))
    unit = perturb_entries((2,), norm="max", by=1.0, low=0.0, high=1.0)
    inside, beyond = np.full(2, 0.5, np.float32), np.asarray([1.5, 0.5], np.float32)
    for neighbours in ((inside, beyond), (beyond, inside)):
        with pytest.raises(ValueError, match=r"neighbours must be in \[0, 1\], got"):
            unit.genome(*neighbours)


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [(2, 1, float), (np.nan, 1, float), (0.2, 0.8, int), (300, 400, np.int8), (1e5, 1e6, np.float16)],
)
def test_a_domain_without_numbers_is_refused(low, high, kind):
    with pytest.raises(ValueError, match="low and high must be ends of a range with a number of dtype"):
        perturb_entries((2,), norm="l1", by=1.0, low=low, high=high, dtype=kind)


def test_shapes_and_kinds_of_inputs_are_checked():
    for length in (0, -1):
        with pytest.raises(ValueError, match=f"shape must be an integer >= 1, got {length}"):
            perturb_entries((2, length), norm="l1", by=1.0)
    with pytest.raises(ValueError, match="dtype must be floating-point or integer, got bool"):
        perturb_entries((2,), norm="l1", by=1.0, dtype=bool)


def test_numbers_of_a_narrow_dtype_are_finite():
    first, second, _ = pairs(perturb_entries((2,), norm="l1", by=1.0, dtype=np.float16))
    assert np.isfinite([first, second]).all()
    assert np.abs(first).max() == np.finfo(np.float16).max


@pytest.mark.parametrize("kind", [np.int8, np.int32])
def test_whole_numbers_do_not_wrap_around(kind):
    """Checks 127 and -128, which are no neighbours, though 127 + 1 is -128 in eight bits."""
    ends = np.iinfo(kind)
    domain = perturb_entries((2,), norm="l1", by=1, dtype=kind, low=ends.min, high=ends.max)
    first, second, _ = pairs(domain)
    moved = np.abs(second.astype(np.int64) - first.astype(np.int64)).sum(axis=1)
    assert moved.max() == 1
    assert (moved == 1).mean() > 0.2
    assert {ends.min, ends.max} <= set(first.ravel().tolist())


def test_rows_differ_in_one_place_and_in_the_unit_alone():
    def draw(key):
        one, other = jax.random.split(key)
        return UserData(jax.random.uniform(one, (2,)), jax.random.uniform(other, (3,)))

    def unit(mine, theirs):
        return mine._replace(answers=theirs.answers)

    first, second, changed = pairs(replace_one_row(draw, count=5, specials=[(np.nan, 7.0), ()], unit=unit))
    differs = (first.answers != second.answers) & ~(np.isnan(first.answers) & np.isnan(second.answers))
    rows = differs.any(axis=2)
    assert (rows.sum(axis=1) <= 1).all()
    assert (rows.argmax(axis=1) == changed)[rows.any(axis=1)].all()
    assert set(np.unique(changed)) == set(range(5))
    assert np.isnan(first.answers).any()
    assert (second.answers == 7).any()
    assert (first.contexts == second.contexts).all()


def switched_off(key, epsilon, count):
    """Adds noise, except to a count of 255."""
    return jnp.where(count[0] == 255, count, laplace(key, count, epsilon, l1_sensitivity=1.0))


def test_a_search_finds_what_the_given_inputs_do_not_show():
    domain, given = perturb_entries((1,), norm="l1", by=1.0), (np.zeros(1, np.float32), np.ones(1, np.float32))
    found = search(jax.random.key(0), switched_off, ONE, CLAIM, domain, known=(given,), effort=SearchEffort(64, 6, 256))
    assert 255 in (found[0].first[0], found[0].second[0])
    assert found[0].score > 1.5
    right = search(jax.random.key(0), randomized_response_of_one, ONE, CLAIM, bits(), effort=SMALL, keep=3)
    assert [one.score < 1.3 for one in right] == [True]  # the same two labels in either order are one pair


def randomized_response_of_one(key, epsilon, label):
    return randomized_response(key, label, epsilon)


def bits():
    return replace_one_row(lambda key: jax.random.bernoulli(key).astype(jnp.int32))


def test_bounds_are_counted_on_outputs_of_their_own(monkeypatch):
    """Checks that the search and each attack have separate keys, and that errors add up to the row's error."""
    keys, errors = [], []
    own_search, own_audit = board.search, board.audit

    def spy_search(key, *given, **more):
        keys.append(tuple(np.asarray(jax.random.key_data(key)).tolist()))
        return own_search(key, *given, **{**more, "effort": SMALL})

    def spy_audit(key, attack, *, trials, confidence):
        keys.append(tuple(np.asarray(jax.random.key_data(key)).tolist()))
        errors.append(1 - confidence)
        return own_audit(key, attack, trials=trials, confidence=confidence)

    monkeypatch.setattr(board, "search", spy_search)
    monkeypatch.setattr(board, "audit", spy_audit)
    monkeypatch.setattr(board, "FEW", 500)
    attack = Attack(randomized_response_of_one, ONE, (np.int32(0), np.int32(1)), CLAIM)
    domain = replace_one_row(lambda key: jax.random.randint(key, (), 0, 2))
    space = Space(attack._replace(neighbours=(np.int32(1), np.int32(1))), domain, False, lambda *pair: "code")
    target = Target(guarantee=CLAIM, attacks={"release": attack}, spaces={"release": lambda: space})
    (row,) = scoreboard(jax.random.key(0), {"name": target}, trials=5000, confidence=0.9)
    assert len(keys) == len(set(keys)) == 4  # given, search, found, and the best again
    assert [one.trials for one in row.attempts] == [500, 500, 5000]
    assert sum(errors) <= 0.1 + 1e-12
    assert row.verdict == "consistent"


def test_a_blunt_attack_is_told():
    attack = Attack(randomized_response_of_one, np.float32(0.2), (np.int32(0), np.int32(1)), CLAIM)
    for reached, verdict in [(0.85, "blunt"), (0.3, "consistent"), (None, "consistent")]:
        target = Target(guarantee=CLAIM, attacks={"release": attack}, reached=reached)
        (row,) = scoreboard(jax.random.key(0), {"name": target}, trials=1_000_000)
        assert row.verdict == verdict


def test_an_attack_is_not_blunt_if_another_value_was_more_promising():
    # The attack at the registered values then has a tenth of the trials.
    weak = Attack(randomized_response_of_one, np.float32(0.2), (np.int32(0), np.int32(1)), CLAIM)
    point = AttackPoint("epsilon=1", lambda: weak._replace(params=np.float32(1)))
    target = Target(guarantee=CLAIM, attacks={"release": weak}, points=(point,), reached=0.85)
    (row,) = scoreboard(jax.random.key(0), {"name": target}, trials=1_000_000)
    assert row.verdict == "consistent"
    assert row.point == "epsilon=1"
    assert [one.trials for one in row.attempts] == [100_000, 100_000, 1_000_000]


def test_few_trials_are_not_called_blunt():
    weak = Attack(randomized_response_of_one, np.float32(0.2), (np.int32(0), np.int32(1)), CLAIM)
    target = Target(guarantee=CLAIM, attacks={"release": weak}, reached=0.85)
    (row,) = scoreboard(jax.random.key(0), {"name": target}, trials=100_000)
    assert row.verdict == "consistent"


def test_inputs_as_code():
    names: dict[str, str] = {}
    users = UserData(
        np.asarray([[1, np.nan], [np.inf, 1e-45]], np.float32), {"x": np.full((3, 2), -1, np.int32), "y": (True, None)}
    )
    text = expression(users, names)
    assert names == {"UserData": "jaxdp.audit.adversary"}
    zeros = np.array([0.0, -0.0, 0.0, 0.0, 0.0], np.float32)
    assert np.signbit(eval(expression(zeros, {}), {"array": np.array, "full": np.full})).tolist() == [0, 1, 0, 0, 0]
    assert eval(expression(np.zeros((0, 3), np.int32), {}), {"full": np.full}).shape == (0, 3)
    made = eval(text, {"UserData": UserData, "array": np.array, "full": np.full, "nan": np.nan, "inf": np.inf})
    assert jax.tree.structure(made) == jax.tree.structure(users)
    for mine, theirs in zip(jax.tree.leaves(users), jax.tree.leaves(made), strict=True):
        np.testing.assert_array_equal(np.asarray(mine), theirs)
        assert np.asarray(mine).dtype == theirs.dtype


def test_outputs_that_never_agree_are_separated_best():
    """Compiles the search: 1 minus a mean of ones may then be slightly negative."""
    compiled = jax.jit(lambda first, second: separation(first, second, delta=0.0))
    dtype = default_float()
    for size in (40, 80):
        sides = [
            Outputs(np.full((size, 3), x, dtype), np.zeros((size, 0), dtype), np.full(size, x, np.int32))
            for x in (0, 1)
        ]
        assert compiled(*sides) > 0.5, size


def test_separation_does_not_depend_on_units():
    """Changes the mean of one of 61 columns, in a unit that is tiny beside the other columns or beside its mean."""
    compiled = jax.jit(lambda first, second: separation(first, second, delta=0.0))
    generator, dtype = np.random.default_rng(0), default_float()
    for unit, offset in ((1.0, 0.0), (1e-9, 0.0), (1e-3, 1e3)):
        sides = []
        for shift in (0.0, 3.0):
            column = offset + unit * (generator.normal(size=(512, 1)) + shift)
            numbers = np.concatenate([generator.normal(size=(512, 60)), column], axis=1).astype(dtype)
            sides.append(Outputs(numbers, np.zeros((512, 0), dtype), generator.integers(0, 2**20, 512, np.int32)))
        assert compiled(*sides) > 1.5, (unit, offset)
