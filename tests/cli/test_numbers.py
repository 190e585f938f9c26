"""Numbers of the command line, and names that are nearly right."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import typer

from jaxdp.__main__ import main
from jaxdp.studies.numbers import number, whole_number
from jaxdp.validation import (
    INT64_MAX,
    check_above,
    check_choice,
    check_count,
    check_finite,
    check_number,
    check_within,
    did_you_mean,
    largest_integer,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("-3", -3), ("1e4", 10_000), ("1.5E3", 1500), ("2e+0", 2), (" 7 ", 7), (10**6, 10**6), ("1.50e1", 15)],
)
def test_whole_numbers(text, value):
    assert whole_number(text) == value


@pytest.mark.parametrize("text", ["1.0", "1.5", "1.25e1", "1e-4", "inf", "nan", "", "1e999", "x", "1,2", "1" * 41])
def test_what_is_no_whole_number(text):
    with pytest.raises(typer.BadParameter, match=r"integer"):
        whole_number(text)


def test_numbers():
    assert (number("0.5"), number("1e4"), number("inf"), number(3.0)) == (0.5, 1e4, float("inf"), 3.0)
    with pytest.raises(typer.BadParameter, match=r"'0.1,0.3' is not a number.*repeat the option for each"):
        number("0.1,0.3")
    with pytest.raises(typer.BadParameter, match=r"'x' is not a number, such as 0.5, 1e4 or inf$"):
        number("x")
    for text in ("1e400", "-1e400"):  # Python makes infinity of it, which is another budget
        with pytest.raises(typer.BadParameter, match=rf"must be within the range of float64, or inf, got {text}$"):
            number(text)


def printed(monkeypatch, capsys, *arguments):
    """Runs the command line, and returns its output before it ends with 2."""
    monkeypatch.setattr(sys, "argv", ["jaxdp", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    told = capsys.readouterr()
    return " ".join((told.out + told.err).replace("│", " ").split())


HUGE = "9" * 20
REFUSED = {
    "several values": (("run", "dueling-regret", "--epsilon", "0.1", "0.3"), "--epsilon 0.1 --epsilon 0.3"),
    "a list": (("run", "dueling-regret", "--epsilon", "0.1,0.3"), "repeat the option for each"),
    "a seed that is no integer": (("run", "private-ranking", "--seed", "1.0"), "'1.0' is not an integer"),
    "a radius without end": (("run", "private-ranking", "--radius", "inf"), "radius must be finite, got inf"),
    "huge seeds": (("run", "ldp-best-arm", "--seeds", HUGE), "--seeds must be <= "),
    "a huge horizon": (("run", "dueling-regret", "--horizon", HUGE), "horizon must be <= "),
    "a huge horizon of arms": (("run", "trust-models", "--horizon", HUGE), "horizon must be <= "),
    "huge trials": (("audit", "laplace", "--trials", "1e22"), "trials must be <= 4503599627370496, got 1"),
    "a mechanism": (("audit", "laplas"), "got 'laplas'. Did you mean laplace?"),
    "a study": (("run", "dueling-regert"), "got 'dueling-regert'. Did you mean dueling-regret"),
    "a reading without ballots": (
        ("run", "private-ranking", "--unranked", "last"),
        "unranked must be left out without",
    ),
    "a learner": (("run", "dueling-trust", "--learner", "rucb_block"), "got 'rucb_block'. Did you mean rucb_blocks?"),
    "a kind": (("list", "--kind", "learners"), "got 'learners'. Did you mean learner?"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_command_line_refuses(case, monkeypatch, capsys):
    arguments, message = REFUSED[case]
    assert message in printed(monkeypatch, capsys, *arguments)


@pytest.mark.parametrize(
    "study", ["dueling-regret", "ldp-best-arm", "trust-models", "dueling-trust", "dueling-ballots"]
)
@pytest.mark.parametrize("delta", ["0", "1", "-0.1", "nan"])
def test_delta(study, delta, monkeypatch, capsys):
    text = printed(monkeypatch, capsys, "run", study, "--delta", delta)
    assert f"delta must be in (0, 1), got {float(delta)}" in text


def test_counts_have_an_end():
    limit = largest_integer()
    assert limit in (2**31 - 1, INT64_MAX)
    assert check_count("seeds", limit) == limit
    with pytest.raises(ValueError, match=f"seeds must be <= {limit}.*, got {limit + 1}"):
        check_count("seeds", limit + 1)
    assert check_count("users", 10**10, maximum=INT64_MAX) == 10**10
    with pytest.raises(ValueError, match=rf"users must be <= {INT64_MAX}, got 1e\+19$"):
        check_count("users", 1e19, maximum=INT64_MAX)
    with pytest.raises(ValueError, match=r"seeds must be <= .*, got an integer of 33220 bits"):
        check_count("seeds", 10**10_000)


def test_names_that_are_nearly_right():
    many = tuple(f"name_{index}" for index in range(30))
    assert did_you_mean("LAPLACE", ["laplace", "gaussian"]) == ". Did you mean laplace?"
    assert did_you_mean("xyz", ["laplace", "gaussian"]) == ""
    with pytest.raises(ValueError, match=r"what must be one of 30 names, got 'name_7x'\. Did you mean name_7 or"):
        check_choice("what", "name_7x", many)
    with pytest.raises(ValueError, match=r"what must be one of name_0, .*, name_29, got 'xyz'$"):
        check_choice("what", "xyz", many)


@pytest.mark.parametrize("check", [check_count, check_finite, check_number])
def test_keys_are_no_numbers(check):
    key = jax.random.key(0)
    for value in (key, [key, key]):
        with pytest.raises(ValueError, match=r"^n must be a"):
            check("n", value)


@pytest.mark.parametrize(
    ("check", "kind"),
    [
        (lambda value: check_count("n", value), "an integer that is"),
        (lambda value: check_above("n", value, 0.0), "a number that is"),
        (lambda value: check_finite("n", value), "numbers that are"),
        (lambda value: check_within("n", [1.0, value], 0.0, 9.0), "numbers that are"),
    ],
)
def test_a_traced_number_is_refused_by_name(check, kind):
    with pytest.raises(ValueError, match=f"^n must be {kind} known on the host, got .*traced"):
        jax.jit(check)(3)


@pytest.mark.parametrize("value", [np.complex128(1), np.array(True), jnp.asarray(True), np.array("1.0"), np.True_])
def test_arrays_of_other_types_are_no_numbers(value):
    with pytest.raises(ValueError, match="x must be a number, got"):
        check_number("x", value)


def test_a_masked_number_is_no_count():
    with pytest.raises(ValueError, match="x must have no masked entries, got 1"):
        check_count("x", np.ma.masked, 0)


class OtherScalar:
    """A number of another library, with a dtype that NumPy does not know."""

    dtype = "own.float32"

    def __float__(self):
        return 0.5


def test_numbers_of_other_libraries_are_numbers():
    assert check_number("x", OtherScalar()) == 0.5  # pyright: ignore[reportArgumentType]
