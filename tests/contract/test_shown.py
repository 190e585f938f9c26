"""Every registered object describes itself in one line, and in HTML its claims, exchanges and arguments."""

import html
import re
import warnings
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import Guarantee, registry
from jaxdp.audit import AuditResult, GreyBox, Leaks, ScoreboardRow
from jaxdp.core import MadeBy, Sample, State
from jaxdp.estimation import gaussian_rewards
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS

ADDRESS = re.compile("0x")
PROBLEM = gaussian_rewards(num_samples=20, dim=2)


def check_line(value):
    line = repr(value)
    assert 0 < len(line) < 200, line
    assert "\n" not in line
    assert not ADDRESS.search(line), line


def rows_of(value):
    """Names and texts of an object's table in HTML; an error where it is not well-formed."""
    text = value._repr_html_()
    assert not ADDRESS.search(text), text
    assert not re.search("color|#[0-9a-f]{3}|background", text)
    root = ElementTree.fromstring(text)
    assert next(each.text for each in root.iter("strong"))
    rows = [[cell.text or "" for cell in row] for row in root.iter("tr")]
    assert all(len(row) == 2 for row in rows)
    return dict(rows)


def check_shown(value, claim=None):
    check_line(value)
    rows = rows_of(value)
    if claim is not None:  # at other values than the entry's: trust model and unit do not depend on them
        assert f"{claim.trust_model}, {claim.privacy_unit}" in rows["claim"]
        assert html.escape(claim.privacy_unit) in value._repr_html_()
        assert rows["because"]
    return rows


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_its_environment_and_their_run(name):
    entry = LEARNERS[name]
    learner, environment = entry.make(), entry.make_environment()
    claim = learner.guarantee(**entry.values)
    rows = check_shown(learner, claim)
    assert {"action", "feedback", "values"} < set(rows)
    assert "epsilon" in rows["values"] or entry.proof == "none"
    assert "action" in check_shown(environment)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a short horizon
        run = jaxdp.simulator(learner, environment, entry.horizon)
    for part in (learner, environment):
        assert part.made_by is not None
        assert part.made_by.name in re.findall(r"\w+", repr(run))
    rows = check_shown(run)
    assert f"{claim.trust_model}, {claim.privacy_unit}" in rows["claim of the learner"]
    assert rows["horizon"] == str(entry.horizon)
    check_line(entry)
    params = learner.params(**entry.values)
    check_line(learner.init(jax.random.key(0), params))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_and_its_run(name):
    entry = ESTIMATORS[name]
    estimator = entry.make()
    check_shown(estimator, estimator.guarantee(**entry.values))
    rows = check_shown(jaxdp.estimation_run({"mine": estimator}, PROBLEM))
    assert estimator.made_by is not None
    assert estimator.made_by.name in rows["mine"]
    assert "l2_error" in rows["metrics of the problem"]
    check_line(entry)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism(name):
    entry = MECHANISMS[name]
    check_line(entry)
    check_line(entry.make())
    if entry.family == "local randomizers":
        assert entry.factory is not None
        randomizer = entry.factory(**{**entry.variant, **entry.sizes})
        assert isinstance(randomizer, jaxdp.core.LocalRandomizer)
        check_shown(randomizer, randomizer.guarantee(**entry.values))


def test_many_or_long_arguments_still_fit():
    utilities, losses = list(range(6)), np.zeros((10, 30))
    duels = jaxdp.dueling.matrix_duels(np.full((6, 6), 0.5), regret="borda")
    run = jaxdp.simulator(jaxdp.dueling.ebs_phased(num_arms=6), duels, horizon=10**8, engine="counts")
    assert repr(run) == (
        "simulator(ebs_phased(num_arms=6), matrix_duels(preference_matrix=<6 by 6 array>, regret='borda'), "
        "horizon=10**8, engine='counts')"
    )
    wordy = jaxdp.dueling.utility_duels([float(f"0.{n}23456789") for n in range(8)])
    run = jaxdp.simulator(jaxdp.dueling.ebs_phased(num_arms=8), wordy, horizon=10**8, engine="counts")
    assert (
        repr(run)
        == "simulator(ebs_phased(num_arms=8), utility_duels(utilities=<list>), horizon=10**8, engine='counts')"
    )
    check_line(MadeBy("f" * 300, {"a": 1}))
    check_line(MadeBy("f", {"functions": [lambda x: x, object()], "d": {"g": print, "h": object()}, "losses": losses}))
    check_line(MadeBy("f", {f"utilities_{n}": utilities for n in range(30)}))
    check_shown(jaxdp.estimation_run({f"number_{n}": jaxdp.estimation.debiased_rr() for n in range(30)}, PROBLEM))
    many = [*range(7), object()]
    check_line(MadeBy("f", {"objects": many}))


def test_a_hostile_name_is_escaped():
    about = {"trust_model": "local", "privacy_unit": "<script>alert('x')</script> & \"more\"", "argument": "<b>"}
    claim = Guarantee.pure(1.0, **about)
    learner = jaxdp.dueling.rucb(num_arms=2)._replace(guarantee=lambda *, epsilon: claim)
    for shown in (claim, learner):
        assert "<script>" not in shown._repr_html_()
        assert about["privacy_unit"] in rows_of(shown)["claim"]


def test_a_learner_that_needs_unknown_values_or_fails_is_shown_all_the_same():
    def broken(*, epsilon):
        raise RuntimeError(epsilon)

    learner = jaxdp.dueling.rucb(num_arms=2)
    assert rows_of(learner._replace(guarantee=broken))["claim"] == "needs epsilon"
    assert rows_of(learner._replace(guarantee=lambda *, zeta: 1))["claim"] == "needs zeta"
    own = jaxdp.Run(simulate=lambda key, params: {}, params=lambda *, gap=0.5: gap, guarantee=lambda **_: {}, dims={})
    assert repr(own).startswith("<run ")
    assert check_shown(own)["values"] == "gap=0.5"


def test_states_samples_and_claims():
    told = State(private={"income": np.float32(51234), "age": 44}, public=np.float32(0.5))
    assert repr(told) == "State(private={income: float32[], age: int}, public=0.5)"
    big = State(private={"wins": jnp.zeros((8, 8), int)}, public=(np.float32(0.5), jnp.ones(3)))
    assert (
        repr(big) == f"State(private={{wins: {jnp.zeros(0, int).dtype}[8, 8]}}, public=(0.5, {jnp.ones(3).dtype}[3]))"
    )
    seen = []
    jax.jit(lambda x: seen.append(repr(State(x, x))) or x)(jnp.ones((2, 3)))
    assert "[2, 3]" in seen[0]
    assert not ADDRESS.search(seen[0])
    check_line(Sample(jnp.zeros((100, 5)), jnp.zeros(100, int), None, {"radius": jnp.ones(())}))
    check_line(Guarantee.none(trust_model="local", privacy_unit="x" * 300, argument="y"))


def test_what_audits_find_is_told_in_a_line():
    claim = registry.attacks(["laplace"])["laplace"].guarantee
    number = {"currency": "epsilon", "claimed": 1.0, "delta": 0.0, "lower_bound": 1.25, "trials": 100}
    result = AuditResult(guarantee=claim, confidence=0.95, verdict="violated", event="e" * 500, seconds=1.0, **number)
    row = ScoreboardRow(
        name="laplace", ratio=1.25, exact=1.5, path="release", seconds=1.0, verdict="violated", event="", **number,
        faults=("f" * 300,), notes=("n\n" * 300,),
    )  # fmt: skip
    box = GreyBox(guarantee=claim, sites=(), spent=2.0, faults=("f" * 300,), notes=())
    for found in (result, row, box, Leaks(found=("x" * 400,)), registry.attacks(["laplace"])["laplace"]):
        check_line(found)
    for found in (result, row):
        assert "violated" in repr(found)
        assert "1.25" in repr(found)
    assert "1 faults" in repr(box)
    check_line(next(iter(registry.attacks(["laplace"])["laplace"].attacks.values())))
