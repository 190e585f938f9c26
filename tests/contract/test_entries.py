"""Entries of the registry are data: they say where they come from, and can be made at other sizes."""

import dataclasses
import warnings
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import registry
from jaxdp.audit import UserData
from jaxdp.core.interface import is_space
from jaxdp.registry import (
    ESTIMATORS,
    LEARNERS,
    MECHANISMS,
    EstimatorEntry,
    LearnerEntry,
    MechanismEntry,
    Second,
    plugins,
)
from jaxdp.registry.entries import Entry
from jaxdp.registry.registered import entry_of
from jaxdp.testing import check_registered

KEY = jax.random.key(11)
ENTRIES = {**MECHANISMS, **LEARNERS, **ESTIMATORS}
OTHER = {"num_arms": 4, "num_experts": 7, "explore_rounds": 8, "num_rounds": 8, "horizon": 9, "arity": 3} | {
    "num_samples": 20, "dim": 2, "num_actions": 3, "num_voters": 9, "num_items": 5,
    "num_counts": 3, "num_scores": 5, "num_queries": 4, "num_labels": 3, "num_users": 6,
}  # fmt: skip


def resized(entry):
    """Returns the entry at other values of all its sizes."""
    names = {*entry.sizes, *(["horizon"] if isinstance(entry, LearnerEntry) else [])}
    return entry.sized(**{name: OTHER[name] for name in names})


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_says_what_it_is(name):
    entry = ENTRIES[name]
    assert entry.source.strip()
    assert entry.factory is not None
    made = entry.make()
    assert (entry.proof == "none") == (not made.guarantee(**entry.values).is_private)
    told = [entry, *([made] if name not in MECHANISMS else [])]
    for each in (*told, *([entry.make_environment()] if name in LEARNERS else [])):
        assert len(repr(each)) < 200
    for each in told:
        assert entry.factory.__name__ in repr(each)


SECOND = [name for name, entry in ENTRIES.items() if entry.second is not None]


@pytest.mark.parametrize("name", SECOND)
def test_a_second_point_is_another_one(name):
    entry = ENTRIES[name]
    at = entry.at_second()
    assert at.second is None
    assert at.make().guarantee(**at.values).is_private
    first, second = (
        registry.attack(name, each.make_neighbours(), values=each.values, sizes=each.sizes) for each in (entry, at)
    )
    told = [jax.tree.leaves((attack.params, attack.neighbours)) for attack in (first, second)]
    assert entry.sizes != at.sizes or any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(*told, strict=True))
    jax.eval_shape(second.release, KEY, second.params, second.neighbours[0])


def test_what_is_no_second_point():
    with pytest.raises(ValueError, match=r"second must be a jaxdp\.registry\.Second, got"):
        dataclasses.replace(LEARNERS["rucb"], second={"horizon": 3})
    wrong = dataclasses.replace(LEARNERS["rucb"], second=Second({"weight": 3}))
    with pytest.raises(ValueError, match="sizes must be arguments"):
        wrong.at_second()


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_of_another_size_fits(name):
    entry = resized(LEARNERS[name])
    learner, environment = entry.make(), entry.make_environment()
    assert entry.horizon == 9
    assert learner.interface is not None
    action = jax.tree.leaves(learner.interface.action, is_leaf=is_space)[0]
    if action.kind == "numbers":  # points
        assert action.shape == (OTHER["dim"] if "dim" in entry.sizes else 1,)
    else:
        assert action.high == OTHER["num_arms" if "num_arms" in entry.sizes else "num_experts"] - 1
    run = jaxdp.simulator(learner, environment, entry.horizon)
    jax.eval_shape(run, KEY, run.params(**entry.values))
    neighbours, user = entry.make_neighbours(), entry.make_user(KEY)
    assert neighbours[0].answers.shape[1:] == user.answers.shape
    attack = jaxdp.audit.learner_attack(learner, entry.values, neighbours, answer=entry.users_answer)
    jax.eval_shape(attack.release, KEY, attack.params, neighbours[0])


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_of_another_size_plays(name):
    entry = resized(LEARNERS[name])
    run = jaxdp.simulator(entry.make(), entry.make_environment(), entry.horizon)
    assert all(np.isfinite(values).all() for values in jax.jit(run)(KEY, run.params(**entry.values)).values())


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_of_another_size_fits(name):
    entry = resized(ESTIMATORS[name])
    estimator, params = entry.make(), entry.make().params(**entry.values)
    features, labels = entry.make_data(KEY)
    report = jax.eval_shape(estimator.privatize, KEY, params, features, labels)
    estimate = jax.eval_shape(estimator.fit, KEY, params, features, report)
    assert estimate.theta.shape == (entry.sizes.get("dim", entry.sizes.get("num_items")),)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_of_another_size_releases(name):
    entry = resized(MECHANISMS[name])
    made = entry.make()
    params = made.params(**entry.values)
    first, second = (jnp.asarray(data) for data in entry.make_neighbours())
    assert first.shape == second.shape
    assert not np.array_equal(first, second)
    if entry.sizes and first.ndim:
        assert len(first) == next(iter(entry.sizes.values()))
    released = jax.eval_shape(made.release, KEY, params, first)
    if made.exact is not None:
        assert jax.eval_shape(made.exact, first).shape == released.shape


def test_a_size_that_another_way_to_compute_takes():
    entry = dataclasses.replace(MECHANISMS["laplace"], others={"many": lambda key, params, data, times: data * times})
    made = entry.sized(times=3).make_releases()["many"]
    assert made(KEY, None, 2.0) == 6.0
    with pytest.raises(ValueError, match="others must be functions by name, without the name release, got"):
        dataclasses.replace(entry, others={"many": 3})


def test_sizes_go_where_they_are_taken():
    entry = LEARNERS["ebs_elimination_gaussian"]
    assert repr(entry.sized(num_arms=8, horizon=100, arity=None).make()) == (
        "ebs_elimination(num_arms=8, horizon=100, noise='gaussian')"
    )
    assert entry.sizes == {"num_arms": 3, "horizon": 12, "arity": 4}
    longer = LEARNERS["versatile_sparring"].sized(horizon=20)  # which the learner needs not know
    assert (longer.horizon, longer.make().horizon) == (20, None)


@pytest.mark.parametrize(
    ("entry", "size"),
    [
        (MECHANISMS["tree_counter"], "horizon"),
        (MECHANISMS["laplace"], "num_counts"),
        (LEARNERS["rucb"], "num_arms"),
    ],
)
def test_a_size_without_a_default_is_needed(entry, size):
    with pytest.raises(ValueError, match=f"{size} must not be None, because it has no default"):
        entry.sized(**{size: None})


def test_claims_of_mechanisms_name_their_sensitivity():
    claim = MECHANISMS["noisy_max_laplace"].make().guarantee(epsilon=1.0, sensitivity=3.0)
    assert claim.argument == "Laplace noise of scale 6 / epsilon on scores of sensitivity 3"
    unit = MECHANISMS["randomize_scalar"].make().guarantee(epsilon=1.0, bound=0.5).privacy_unit
    assert unit == "one scalar in [-0.5, 0.5]"
    assert float(MECHANISMS["gaussian"].make().params(epsilon=1.0, delta=1e-3, sensitivity=0.5).bound) == 0.5
    with pytest.raises(ValueError, match="sensitivity must be > 0"):
        MECHANISMS["laplace"].make().guarantee(epsilon=1.0, sensitivity=0.0)


def test_neighbours_of_many_shuffled_users():
    first, second = MECHANISMS["shuffled_randomized_response"].sized(num_users=20_000).make_neighbours()
    assert (first.sum(), second.sum()) == (19_999, 20_000)


FIELDS = {
    LearnerEntry: {
        "summary": "mine",
        "factory": jaxdp.dueling.rucb,
        "sizes": {"num_arms": 3},
        "values": {"epsilon": 1.0},
        "environment": lambda num_arms: jaxdp.dueling.utility_duels(range(num_arms)),
        "horizon": 5,
        "neighbours": (UserData(np.zeros((1, 3, 3), np.int32)), UserData(np.ones((1, 3, 3), np.int32))),
    },
    EstimatorEntry: {"summary": "mine", "factory": jaxdp.estimation.mle},
    MechanismEntry: {
        "summary": "mine",
        "params": lambda: None,
        "guarantee": lambda: None,
        "release": lambda key, params, data: data,
        "neighbours": (np.float32(0), np.float32(1)),
    },
}


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (LearnerEntry, {"summary": " "}, "summary must be one line of text, got ' '"),
        (LearnerEntry, {"proof": "surely"}, "proof must be one of proved, claimed, none, got 'surely'"),
        (LearnerEntry, {"factory": None}, "factory must be a function, got None"),
        (LearnerEntry, {"environment": 3}, "environment must be a function, got 3"),
        (LearnerEntry, {"horizon": 1}, "horizon must be an integer >= 2, got 1"),
        (LearnerEntry, {"horizon": 0}, "horizon must be an integer >= 2, got 0"),
        (LearnerEntry, {"sizes": {"num_arm": 3}}, "sizes must be arguments of the factory or .*, got 'num_arm'"),
        (LearnerEntry, {"variant": {"noise": "x"}}, "variant must be keywords of the factory, got 'noise'"),
        (LearnerEntry, {"variant": {"num_arms": 3}}, "variant must name no size, got num_arms"),
        (LearnerEntry, {"neighbours": 3}, "neighbours must be a pair of inputs, or a function that makes it, got 3"),
        (LearnerEntry, {"values": [1.0]}, r"values must be a mapping whose keys are names, got \[1.0\]"),
        (EstimatorEntry, {"data": None}, "data must be a function, got None"),
        (MechanismEntry, {"release": 0}, "release must be a function, got 0"),
    ],
)
def test_a_bad_field_is_told(kind, changes, message):
    kind(**FIELDS[kind])
    with pytest.raises(ValueError, match=message):
        kind(**{**FIELDS[kind], **changes})


@pytest.mark.parametrize("size", ["foo", "horizons"])
@pytest.mark.parametrize("number", [None, 3])
def test_an_unknown_size_is_refused(size, number):
    with pytest.raises(ValueError, match=f"sizes must be arguments of the factory or .*, got '{size}'"):
        LEARNERS["rucb"].sized(**{size: number})


@pytest.mark.parametrize("number", [None, "gaussian"])
def test_a_keyword_of_the_variant_is_no_size(number):
    with pytest.raises(ValueError, match="variant must name no size, got noise"):
        LEARNERS["ebs_elimination_gaussian"].sized(noise=number)


@pytest.mark.parametrize("name", ["laplace", "moment_randomizer", "rucb", "mle"])
def test_an_attack_at_an_unknown_value_is_refused(name):
    entry = ENTRIES[name]
    with pytest.raises(ValueError, match=r"values must be the arguments of params and guarantee, got .*'foo'"):
        registry.attack(name, entry.make_neighbours(), values={"foo": 1.0})


def test_a_horizon_among_sizes_is_the_problems():
    entry = LEARNERS["exponential_weights"]
    assert (entry.horizon, entry.sized(horizon=9).horizon, entry.sized(horizon=9).make().horizon) == (30, 9, 9)
    with pytest.raises(ValueError, match="horizon must equal the horizon in sizes, 30, got 4"):
        dataclasses.replace(entry, horizon=4)
    with pytest.raises(ValueError, match=r"sizes must be arguments of the factory or .*, got 'num_arms'"):
        entry.sized(num_arms=3)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ucbb", r"name must be one of \d+ names, got 'ucbb'\. Did you mean ucb or rucb( or \w+)*\?"),
        ("zzzz", "name must be one of laplace, .*, got 'zzzz'"),
        (["ucb"], r"name must be one of .*, got \['ucb'\]"),
    ],
    ids=["near", "far", "no_text"],
)
def test_an_unknown_name_has_no_entry(name, message):
    with pytest.raises(ValueError, match=message):
        entry_of(name)


LEARNER = LearnerEntry(**FIELDS[LearnerEntry])


def test_an_entry_of_ones_own_can_be_replaced_and_no_other():
    other = dataclasses.replace(LEARNER, summary="another")
    try:
        jaxdp.register("mine", LEARNER)
        with pytest.raises(ValueError, match="name must be new, got 'mine', which is a registered learner"):
            jaxdp.register("mine", other)
        jaxdp.register("mine", other, replace=True)
        assert LEARNERS["mine"].summary == "another"
    finally:
        LEARNERS.pop("mine", None)
    with pytest.raises(ValueError, match="name must be new, got 'rucb', which is a registered learner"):
        jaxdp.register("rucb", LEARNER, replace=True)


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        ("rucb", LEARNER, "name must be new, got 'rucb', which is a registered learner"),
        ("my learner", LEARNER, "name must be letters, digits and underscores, .*, got 'my learner'"),
        (3, LEARNER, "name must be letters, digits and underscores, .*, got 3"),
        ("mine", jaxdp.dueling.rucb, "entry must be one of MechanismEntry, LearnerEntry, .*, got an instance of "),
        (
            "mine",
            Entry(summary="x", factory=lambda: None, neighbours=(0, 1)),
            "entry must be one of .*, got an instance of ",
        ),
        (
            "mine",
            dataclasses.replace(LEARNER, factory=jaxdp.estimation.mle, sizes={}),
            "the result of factory must be of type jaxdp.Learner, got an instance of Estimator",
        ),
        (
            "mine",
            dataclasses.replace(LEARNER, values={}),
            r"values must be the arguments of params and guarantee, got \{\}: ",
        ),
        ("mine", dataclasses.replace(LEARNER, values={"epsilon": 0.0}), r"epsilon must be > 0, got 0.0"),
        ("mine", MechanismEntry(**FIELDS[MechanismEntry]), "guarantee must return a Guarantee, got None"),
    ],
)
def test_register_refuses(name, entry, message):
    with pytest.raises(ValueError, match=message):
        jaxdp.register(name, entry)
    assert {**MECHANISMS, **LEARNERS, **ESTIMATORS} == ENTRIES


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"draw_user": lambda key, num_arms: UserData(jnp.zeros(num_arms, jnp.int32))},
            "draw_user must draw a user as",
        ),
        (
            {"neighbours": (UserData(np.zeros((1, 3, 3))), UserData(np.ones((1, 3, 3), np.int32)))},
            "neighbours must have equal",
        ),
        ({"neighbours": lambda num_arms: (UserData(np.zeros((2, num_arms))),) * 2}, "must differ in exactly one round"),
    ],
)
def test_users_that_do_not_fit_are_told(changes, message, monkeypatch):
    monkeypatch.setitem(LEARNERS, "mine", dataclasses.replace(LEARNER, **changes))
    with pytest.raises((AssertionError, ValueError), match=message):
        check_registered("mine")


def test_a_plugin_that_fails_is_a_warning_once(monkeypatch):
    points = [EntryPoint("bad", "no.such.module", plugins.GROUP), EntryPoint("good", "math:pi", plugins.GROUP)]
    monkeypatch.setattr(plugins, "_tried", set())
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    with pytest.warns(
        UserWarning, match=r"the entry point bad \(no.such.module\) was not loaded: ModuleNotFound"
    ) as told:
        registry.attacks(["laplace"])
    assert len(told) == 1
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registry.attacks(["laplace"])


def test_all_plugins_are_loaded_even_if_warnings_are_errors(monkeypatch):
    def refuse(sentence):
        raise UserWarning(sentence)

    loaded = []
    good = SimpleNamespace(name="good", value="good", dist=None, load=lambda: lambda: loaded.append("good"))
    monkeypatch.setattr(plugins, "_tried", set())
    monkeypatch.setattr(
        plugins, "entry_points", lambda group: [EntryPoint("bad", "no.such.module", plugins.GROUP), good]
    )
    with pytest.raises(UserWarning, match="the entry point bad"):
        plugins.load_plugins(refuse)
    assert loaded == ["good"]


def test_a_plugin_that_exits_is_a_warning(monkeypatch):
    monkeypatch.setattr(plugins, "_tried", set())
    monkeypatch.setattr(plugins, "entry_points", lambda group: [EntryPoint("ends", "sys:exit", plugins.GROUP)])
    told = []
    plugins.load_plugins(told.append)
    assert told == ["the entry point ends (sys:exit) was not loaded: SystemExit: "]


def test_sources_are_listed():
    lines = registry.listing("learner", sources=True, width=1000).splitlines()
    assert lines[0].split()[-2:] == ["PROOF", "SOURCE"]
    assert any("rucb" in line and "proved" in line and "Zoghi" in line for line in lines)
    assert all("proved" in line or line.split()[1] in ("hedge", "fixed_share") for line in lines[1:])
