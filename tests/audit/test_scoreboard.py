"""Rows of the scoreboard: all attacks on a target, the worst path, what could not be attacked."""

import dataclasses
import json
import math

import jax
import numpy as np
import pytest

from jaxdp import Guarantee
from jaxdp.audit import (
    Attack,
    GreyBox,
    ScoreboardRow,
    Target,
    audit,
    format_header,
    format_notes,
    format_row,
    scoreboard,
    to_json,
)
from jaxdp.audit._scoreboard import COLUMNS, Step
from jaxdp.mechanisms import randomized_response

ABOUT = {"trust_model": "central", "privacy_unit": "one label", "argument": "noise"}
LABELS = (np.int32(0), np.int32(1))
NUMBERS = (np.float32(0), np.float32(1))
ROW = ScoreboardRow(
    name="a_long_name",
    currency="rho",
    claimed=1.0,
    delta=0.0,
    lower_bound=0.5,
    ratio=0.5,
    exact=None,
    path="release",
    trials=1000,
    seconds=1.0,
    verdict="consistent",
    event="output > 0",
    faults=(),
    notes=(),
)


def keep(key, epsilon, label):
    return randomized_response(key, label, epsilon)


def shifted(key, params, data):
    return data * params + jax.random.normal(key, dtype=np.float32)


def broken(key, params, data):
    raise RuntimeError("two\nlines")


def target(spent, claimed=1.0, **more):
    """Builds randomized response by several paths; each spends its own epsilon."""
    claim = Guarantee.pure(claimed, **ABOUT)
    paths = {path: Attack(keep, np.float32(epsilon), LABELS, claim) for path, epsilon in spent.items()}
    return Target(guarantee=claim, attacks=paths, **more)


def response_distributions(epsilon):
    p = 1 / (1 + math.exp(-epsilon))
    return lambda: ({0: p, 1: 1 - p}, {0: 1 - p, 1: p})


def row_of(given, **options):
    (row,) = scoreboard(jax.random.key(0), {"name": given}, **{"trials": 3000, **options})
    json.loads(to_json([row]), parse_constant=lambda word: pytest.fail(word))
    return row


def test_the_first_column_is_as_wide_as_the_names():
    assert format_header([]).split() == " ".join(COLUMNS).split()
    assert format_row(ROW, []).startswith("a_long_name  ")
    assert format_header([ROW.name]).index("CURRENCY") == len(ROW.name) + 2
    assert len(format_header([ROW.name])) - len(COLUMNS[-1]) == len(format_row(ROW, [ROW.name])) - len(ROW.verdict)
    assert format_row(ROW, []).split()[1:5] == ["rho", "1", "0", "-"]
    of_a_round = dataclasses.replace(ROW, privacy_unit="one round's reward")
    assert format_row(of_a_round, []).split()[4] == "round"


def test_no_rows():
    assert to_json([]) == "[]"


@pytest.mark.parametrize(("shift", "ratio", "verdict"), [(0.0, 0.0, "nothing shown"), (9.0, 800.0, "violated")])
def test_a_claim_that_implies_an_epsilon_of_zero(shift, ratio, verdict):
    claim = Guarantee.gaussian(0.01, **ABOUT)
    row = row_of(Attack(shifted, np.float32(shift), NUMBERS, claim))
    assert (row.currency, row.claimed, row.delta, row.verdict) == ("mu", 0.01, 0.0, verdict)
    assert row.ratio == pytest.approx(ratio, rel=0.5)


@pytest.mark.parametrize("claimed", [1.0, 0.5])
def test_one_path_is_audited_as_by_itself(claimed):
    row, attack = row_of(target({"release": 1.0}, claimed)), target({"release": 1.0}, claimed).attacks["release"]
    assert row_of(attack).lower_bound == row.lower_bound
    assert row.verdict == ("violated" if claimed == 0.5 else "consistent")
    assert row.ratio == row.lower_bound / claimed


def test_the_worst_path_decides():
    row = row_of(target({"rounds": 1.0, "blocks": 2.0, "counts": 0.5}))
    assert (row.path, row.verdict) == ("blocks", "violated")
    assert 1 < row.lower_bound < 2
    assert row_of(target({"rounds": 1.0, "blocks": 0.2})).path == "rounds"
    assert row_of(target({"rounds": 1.0, "blocks": 0.9}), confidence=0.9).verdict == "consistent"


def test_the_confidence_is_of_the_row():
    """Audits each of two paths with half of the row's error."""
    alone = target({"rounds": 1.0}).attacks["rounds"]
    row = row_of(target({"rounds": 1.0, "blocks": 0.1}), confidence=0.9)
    assert row.lower_bound == row_of(alone, confidence=0.95).lower_bound
    assert row.lower_bound < row_of(alone, confidence=0.9).lower_bound


def test_exact_distributions():
    row = row_of(target({"release": 1.0}, distributions=response_distributions(1.0)))
    assert row.exact == pytest.approx(1.0, rel=1e-12)
    assert row.verdict == "consistent"
    assert format_row(row, []).split()[7] == "1"
    assert row_of(target({"release": 0.1}, distributions=response_distributions(1 + 1e-5))).verdict == "violated"
    assert row_of(target({}, distributions=response_distributions(1.0))).verdict == "consistent"
    row = row_of(target({"release": 0.1}, distributions=lambda: ({0: 1.0}, {1: 1.0})))
    assert (row.exact, row.verdict) == (math.inf, "violated")
    assert json.loads(to_json([row]))[0]["exact"] == "inf"
    assert row.notes == ()


def test_exact_distributions_of_something_else():
    row = row_of(target({"release": 1.0}, distributions=response_distributions(0.5)))
    assert row.lower_bound > 0.5
    assert row.verdict == "consistent"
    assert len(row.notes) == 1
    assert row.notes[0].startswith("exact distribution: its budget is below the lower bound: by chance, or")
    row = row_of(target({"release": 0.1}, distributions=lambda: ([0.5, 0.5], [0.5, 0.5])))  # pyright: ignore[reportArgumentType]
    assert row.notes == ("exact distribution: first must be a mapping from outcomes to probabilities, got list",)


@pytest.mark.parametrize(("faults", "verdict"), [((), "consistent"), (("noise used twice",), "violated")])
def test_the_grey_box(faults, verdict):
    claim = Guarantee.pure(1.0, **ABOUT)

    def box(key):
        return GreyBox(guarantee=claim, sites=(), spent=0.0, faults=faults, notes=("no release\nwas recorded",))

    row = row_of(target({"rounds": 1.0}, grey_box=box, notes=("no blocks",)))
    assert (row.verdict, row.faults, row.notes) == (verdict, faults, ("no blocks", "no release\nwas recorded"))
    assert format_notes(row) == [
        *[f"  fault: {fault}" for fault in faults],
        "  note: no blocks",
        "  note: no release was recorded",
    ]


def test_what_fails_is_a_note_and_the_rest_goes_on():
    claim = Guarantee.pure(1.0, **ABOUT)
    fails = Attack(broken, np.float32(1), LABELS, claim)
    right = target({"rounds": 2.0}).attacks

    def raises(*arguments):
        raise KeyError("absent")

    row = row_of(Target(guarantee=claim, attacks={"blocks": fails, **right}, distributions=raises, grey_box=raises))
    assert (row.verdict, row.path) == ("violated", "rounds")
    assert row.notes == (
        "blocks: RuntimeError: two lines",
        "exact distribution: KeyError: 'absent'",
        "grey box: KeyError: 'absent'",
    )
    row = row_of(Target(guarantee=claim, attacks={"blocks": fails}, notes=("why",)))
    assert (row.verdict, row.path, row.lower_bound, row.ratio) == ("inconclusive", "", 0.0, 0.0)
    assert row.notes == ("why", "blocks: RuntimeError: two lines")
    assert "  -  " in format_row(row, [])

    def stopped(key):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        row_of(Target(guarantee=claim, attacks={}, grey_box=stopped))


@pytest.mark.parametrize(("given", "named"), [({"trials": 3}, "trials"), ({"confidence": 1.0}, "confidence")])
def test_bad_input_is_no_note(given, named):
    with pytest.raises(ValueError, match=f"{named} must be"):
        row_of(target({"release": 1.0}), **given)
    with pytest.raises(ValueError, match="key must be one typed PRNG key"):
        next(scoreboard(0, {"name": target({"release": 1.0})}))  # pyright: ignore[reportArgumentType]


def test_no_claim():
    """Takes the path with the most evidence, though none violates anything."""
    claim = Guarantee.none(**ABOUT)
    paths = {path: Attack(shifted, np.float32(by), NUMBERS, claim) for path, by in [("rounds", 1), ("blocks", 5)]}
    row = row_of(Target(guarantee=claim, attacks=paths))
    assert (row.currency, row.claimed, row.ratio, row.path, row.verdict) == (
        "epsilon",
        math.inf,
        0,
        "blocks",
        "consistent",
    )
    assert json.loads(to_json([row]))[0]["claimed"] == "inf"


@pytest.mark.parametrize("kind", ["pure", "zcdp", "gaussian"])
@pytest.mark.parametrize("claimed", [5e-324, 1e-160, 1e300])
def test_claims_at_the_ends_of_the_floats(kind, claimed):
    claim = getattr(Guarantee, kind)(claimed, **ABOUT)
    row = row_of(Attack(shifted, np.float32(9), NUMBERS, claim), trials=1000)
    assert row.verdict == ("consistent" if claimed > 1 else "violated")
    told = lambda key, params, data: data  # noqa: E731
    assert row_of(Attack(told, None, NUMBERS, claim), trials=100).lower_bound < 50
    assert row_of(Attack(told, None, (NUMBERS[0], NUMBERS[0]), claim), trials=100).lower_bound == 0


def second_of(spent, **more):
    """Builds a target that is right at its first point, and spends so much at its second one."""
    return target({"rounds": 0.5}, second=target({"rounds": spent}, point="size=2", **more))


def test_a_second_point():
    row = row_of(second_of(0.5))
    assert [(each.point, each.path) for each in row.attempts] == [("", "rounds"), ("size=2", "rounds")]
    assert (row.verdict, row.notes) == ("consistent", ())
    row = row_of(second_of(2.0), searched=False)
    assert (row.verdict, row.point, row.path) == ("violated", "size=2", "rounds")
    assert row.exact is None
    assert format_notes(row) == ["  worst at size=2"]


def test_the_distribution_of_a_second_point():
    row = row_of(second_of(0.1, distributions=response_distributions(1.5)))
    assert (row.verdict, row.exact) == ("violated", None)
    assert row.notes == ("exact distribution at size=2: epsilon = 1.5, but 1 is claimed",)
    assert row_of(second_of(0.1, distributions=response_distributions(1.0))).verdict == "consistent"


@pytest.mark.parametrize("thorough", [False, True])
def test_a_second_point_is_where_a_grey_box_looks(thorough):
    """Attacks outputs where the grey box cannot decide."""
    claim, steps = Guarantee.pure(1.0, **ABOUT), []

    def box(faults=(), notes=()):
        return lambda key: GreyBox(guarantee=claim, sites=(), spent=0.0, faults=faults, notes=notes)

    for faults, notes, verdict in (((), (), "consistent"), (("a",), (), "violated"), ((), ("b",), "consistent")):
        second = target({"rounds": 0.5, "blocks": 0.5}, point="size=2", grey_box=box(faults, notes))
        steps.clear()
        row = row_of(
            target({"rounds": 0.5}, grey_box=box(), second=second),
            before=lambda step: steps.append(step.what),
            thorough=thorough,
        )
        assert (row.verdict, row.faults, row.notes) == (verdict, faults, notes)
        outputs = ["rounds at size=2", "blocks at size=2"][: 2 if thorough else bool(notes)]
        assert steps == ["rounds", *["grey box"] * thorough, "grey box at size=2", *outputs]


@pytest.mark.parametrize(("equal_paths", "thorough"), [(("blocks",), False), ((), False), (("blocks",), True)])
def test_blocks_with_the_runs_of_rounds_are_attacked_only_if_thorough(equal_paths, thorough):
    claim = Guarantee.pure(1.0, **ABOUT)
    box = GreyBox(guarantee=claim, sites=(), spent=0.0, faults=(), equal_paths=equal_paths)
    row = row_of(target({"rounds": 0.5, "blocks": 2.0}, grey_box=lambda key: box), thorough=thorough)
    assert row.verdict == ("consistent" if equal_paths and not thorough else "violated")


@pytest.mark.parametrize(("at_first", "at_second"), [((), ("blocks",)), (("blocks",), ())])
def test_a_look_at_the_second_point_does_not_decide_about_blocks_at_the_first(at_first, at_second):
    claim = Guarantee.pure(1.0, **ABOUT)
    boxes = [
        GreyBox(guarantee=claim, sites=(), spent=0.0, faults=(), equal_paths=paths) for paths in (at_first, at_second)
    ]
    second = target({"rounds": 0.5}, point="size=2", grey_box=lambda key: boxes[1])
    row = row_of(target({"rounds": 0.5, "blocks": 2.0}, grey_box=lambda key: boxes[0], second=second))
    assert row.verdict == "violated"  # the first point's box did not look


def test_what_is_done_next_is_told():
    steps: list[Step] = []
    row_of(target({"rounds": 1.0, "blocks": 1.0}, distributions=response_distributions(1.0)), before=steps.append)
    assert steps == [Step("name", "epsilon", what) for what in ("rounds", "exact distribution", "blocks")]


def test_currencies():
    for claim, currency in [
        (Guarantee.zcdp(0.5, **ABOUT), "rho"),
        (Guarantee.gaussian(1.0, **ABOUT), "mu"),
        (Guarantee.approximate(1.0, 0.1, **ABOUT), "epsilon"),
    ]:
        result = audit(jax.random.key(0), Attack(shifted, np.float32(1), NUMBERS, claim), trials=3000)
        assert (result.currency, result.delta) == (currency, claim.delta)
        assert result.claimed in (claim.rho, claim.mu, claim.epsilon)
