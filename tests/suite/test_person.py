"""Rows per person: the schedule, the claims, files of their own, learners that are refused, and the attack."""

import hashlib
import json
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp.core import Guarantee, Interface, Learner, Space, State, Visit, arms
from jaxdp.core.visited import ANY_VISIT
from jaxdp.mechanisms import randomized_response
from jaxdp.suite import INSTANCES, _attack, _bench, command, v1

OWN = """
import jax
import jax.numpy as jnp
from jaxdp.core import Guarantee, Interface, Learner, Space, State, arms

def coin(*, num_arms):
    return Learner(
        params=lambda *, epsilon: {"epsilon": epsilon},
        guarantee=lambda *, epsilon: Guarantee.pure(epsilon, trust_model="local", privacy_unit="bit", argument=""),
        init=lambda key, params: State((), ()),
        act=lambda key, params, public, context: jax.random.randint(key, (), 0, num_arms),
        privatize=lambda key, params, public, context, action, feedback: jnp.zeros(()),
        update=lambda key, params, state, report: state,
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1)),
    )

def needs_horizon(*, num_arms, horizon):
    if horizon != 10:
        raise ValueError(f"horizon must be the number of people, got {horizon}")
    return coin(num_arms=num_arms)

def per_round_only(*, num_arms):
    return coin(num_arms=num_arms)._replace(reports=1)

def joint(*, num_arms):
    claim = dict(trust_model="joint", privacy_unit="bit", argument="")
    return coin(num_arms=num_arms)._replace(guarantee=lambda *, epsilon: Guarantee.pure(epsilon, **claim))
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "my_people.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(v1.QUICK_HORIZONS, "arms", 200)
    monkeypatch.setitem(_attack.TRIALS, "quick", 200)
    return tmp_path


def test_the_schedule_never_changes():
    digests = {
        2_000: "87cefacf203f1aa7d63dd2fbf4cf793c8cccf568e94ebb5f1d34e40b5d1610ca",
        10_920: "77f0335829e79bf426de7e0489ead4013bf507ff821489afd27480d0ddbf8af8",
        100_000: "0cba8c7e68b57c01833f0d7b1dba0b84949c75006b5048eab484ae9320c32da3",
    }
    worlds = {instance.horizon(quick) for instance in INSTANCES.values() for quick in (True, False)}
    assert {*digests} == worlds - {0, *(table["contextual"] for table in (v1.HORIZONS, v1.QUICK_HORIZONS))}
    for horizon, digest in digests.items():
        visits = v1.schedule(horizon)
        assert (len(visits), visits.num_people, visits.most) == (horizon, horizon // 20, 20)
        assert (np.bincount(visits.person) == 20).all()
        assert hashlib.sha256(visits.person.astype("<i4").tobytes()).hexdigest() == digest


def test_a_learner_is_played_per_person_into_a_file_of_its_own(own_module):
    lines = []
    options = {"quick": True, "family": "arms", "unit": "person"}
    command.bench_all(["my_people:needs_horizon"], own_module, False, (), lines.append, **options)
    (path,) = own_module.glob("*.json")
    assert path.name == "my_people.needs_horizon.person.json"
    record = json.loads(path.read_text())
    assert record["unit"] == "person"
    played = record["instances"]["arms.late"]
    assert played["horizon"] == 200
    for epsilon, claim in played["claims"].items():
        assert claim["privacy_unit"] == "one person"
        assert claim["claim"].startswith("no claim" if epsilon == "inf" else f"{epsilon}-DP, local, one person")
    assert record["attack"]["arms.easy"]["refuted"] is False
    with pytest.raises(ValueError, match="out must be new, or hold results with unit 'round'"):
        _bench.bench("my_people:needs_horizon", path, quick=True, family="arms")
    with pytest.raises(ValueError, match="unit must be one of"):
        command.bench_all(["ucb"], own_module, False, (), print, unit="people")


def test_learners_without_a_claim_for_a_person_are_not_played(own_module):
    options = {"quick": True, "unit": "person", "family": "arms", "report": lambda line: None}
    for name, message in {
        "my_people:per_round_only": "must claim privacy for a person to be played per person, got 0.1-DP, local, bit",
        "my_people:joint": "must not claim joint privacy",
    }.items():
        with pytest.raises(ValueError, match=message):
            _bench.bench(name, own_module / "x.json", **options)
        assert not (own_module / "x.json").exists()
    with pytest.raises(ValueError, match='unit must be "round" for estimators'):
        INSTANCES["rewards.flat"].make_for("person", quick=True)
    with pytest.raises(ValueError, match="no contexts"):
        INSTANCES["contextual.linear"].make_for("person", quick=True)


@pytest.mark.parametrize("name", ["arms.drifting", "duels.cyclic", "arms.late", "experts.shifting"])
def test_people_change_nothing_but_the_numbers_of_arms(name, monkeypatch):
    monkeypatch.setitem(v1.QUICK_HORIZONS, INSTANCES[name].family, 300)
    answers = []
    for unit in v1.UNITS:
        world = INSTANCES[name].make_for(unit, quick=True)

        def play(state, round_, world=world):
            size = int(world.interface.action.high) + 1
            moved = size // 2 if world.visits is None and "experts" not in name else 0
            pair = (jnp.stack([round_, 2 * round_ + 1]) + moved).astype(jnp.int32) % size
            action = pair if world.interface.action.shape else pair[0]
            key = jax.random.fold_in(jax.random.key(1), round_)
            state, answer, _ = world.feedback(key, world.params(), state, action)
            return state, answer

        state = world.init(jax.random.key(0), world.params())
        answers.append(np.asarray(jax.lax.scan(play, state, jnp.arange(300, dtype=jnp.int32))[1]))
    np.testing.assert_array_equal(*answers)


def test_no_instance_with_arms_has_its_best_arm_first():
    for name, instance in INSTANCES.items():
        if instance.family in ("arms", "duels"):
            world = instance.make_for("person", quick=True)
            state = world.init(jax.random.key(0), world.params())
            size = int(world.interface.action.high) + 1
            gaps = [
                float(world.evaluate(world.params(), state, jnp.int32(arm))["simple_regret"]) for arm in range(size)
            ]
            assert gaps[0] > 0, name
            assert min(gaps) == 0, name
            action = jnp.zeros(world.interface.action.shape, jnp.int32)
            _, _, outcome = world.feedback(jax.random.key(0), world.params(), state, action)
            _, totals = world.unheard(world.params(), state, action, jnp.asarray(3)) if world.unheard else (0, outcome)
            regret = float(outcome["pseudo_regret"])
            assert regret > 0, name
            assert float(totals["pseudo_regret"]) == pytest.approx(regret * (3 if world.unheard else 1)), name


def test_features_have_the_order_of_the_arms():
    instance = INSTANCES["duels.features"]
    rows, people = np.asarray(instance.sizes["features"]), np.asarray(instance.sizes_for("person")["features"])
    utilities = people @ np.asarray([2.0, 1.0, 3.0])
    world = instance.make_for("person", quick=True)
    gaps = [
        world.evaluate(world.params(), world.init(jax.random.key(0), world.params()), jnp.int32(arm))
        for arm in range(16)
    ]
    assert int(np.argmin([gap["simple_regret"] for gap in gaps])) == int(np.argmax(utilities))
    assert instance.sizes_for("round")["features"] == rows.tolist()
    assert sorted(rows.tolist()) == sorted(people.tolist())


@pytest.mark.filterwarnings("ignore:.* hears .* rounds")
@pytest.mark.parametrize("name", ["arms.drifting", "duels.cyclic"])
def test_heard_rounds_equal_all_rounds(name):
    learner = jaxdp.bandits.ucb_central(num_arms=4) if name == "arms.drifting" else jaxdp.dueling.rucb(num_arms=8)
    world, outputs = INSTANCES[name].make_for("person", quick=True), []
    for engine in ("auto", "heard", "rounds"):
        run = jaxdp.simulator(learner, world, 800, unit="person", engine=engine)
        outputs.append(run(jax.random.key(3), run.params(epsilon=2.0))["pseudo_regret"])
    assert outputs[0] == outputs[1], "the suite plays heard rounds only"
    np.testing.assert_allclose(outputs[0], outputs[2], rtol=1e-5)


def hears_all_visits(*, reports_in: int) -> Learner:
    """Returns a local learner that claims epsilon for a person and spends it in each of the first visits."""

    def privatize(key, params, public, context: Visit, action, feedback):
        return jnp.where(context.nth < reports_in, randomized_response(key, feedback, params["epsilon"]), 0)

    return Learner(
        params=lambda *, epsilon: {"epsilon": np.float32(epsilon)},
        guarantee=lambda *, epsilon: Guarantee.pure(
            epsilon, trust_model="local", privacy_unit="one person", argument="rr", unit="person"
        ),
        init=lambda key, params: State((), ()),
        act=lambda key, params, public, context: jnp.int32(0),
        privatize=privatize,
        update=lambda key, params, state, report: state,
        interface=Interface(arms(8), Space("integers", (), 0, 1), ANY_VISIT),
        reports=1,
    )


def follows_the_last_answer(*, hears: int) -> Learner:
    """Returns a curator's learner that plays its last answer, randomized, of a person's first visits."""

    def update(key, params, state, report):
        visit, answer = report
        private = randomized_response(key, answer, params["epsilon"])
        return State((), jnp.where(visit.nth < hears, private.astype(jnp.int32), state.public))

    return Learner(
        params=lambda *, epsilon: {"epsilon": np.float32(epsilon)},
        guarantee=lambda *, epsilon: Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit="one person",
            argument="rr",
            unit="person",
            adversary_view=["action"],
        ),
        init=lambda key, params: State((), jnp.int32(0)),
        act=lambda key, params, public, context: public,
        privatize=lambda key, params, public, context, action, feedback: (context, feedback),
        update=update,
        interface=Interface(arms(8), Space("integers", (), 0, 1), ANY_VISIT),
        reports=1,
    )


@pytest.mark.parametrize("make", [hears_all_visits, follows_the_last_answer])
def test_a_learner_that_spends_epsilon_in_every_visit_is_refuted(make, monkeypatch):
    monkeypatch.setitem(v1.QUICK_HORIZONS, "arms", 200)
    world, key = INSTANCES["arms.easy"].make_for("person", quick=True), jax.random.key(0)
    (argument,) = {hears_all_visits: ["reports_in"], follows_the_last_answer: ["hears"]}[make]
    results = {
        visits: _attack.attack(key, make(**{argument: visits}), {"epsilon": 1.0}, world, 200, 2_000)
        for visits in (1, 20)
    }
    assert not results[1]["refuted"]
    assert 0.3 < results[1]["bound"] <= 1
    assert results[20]["refuted"]


@pytest.mark.parametrize("is_confirmed", [False, True])
def test_a_claim_is_refuted_only_if_a_second_attack_with_a_new_key_refutes_it_too(is_confirmed, monkeypatch):
    calls = []

    def audit(key, pair, *, trials, confidence):
        calls.append((tuple(jax.random.key_data(key).tolist()), trials))
        is_violated = len(calls) == 2 or (is_confirmed and len(calls) == 3)
        bound, verdict = (1.5, "violated") if is_violated else (0.9, "consistent")
        return SimpleNamespace(lower_bound=bound, verdict=verdict, currency="epsilon", claimed=1.0, delta=0.0)

    monkeypatch.setattr(_attack, "audit", audit)
    world, learner = INSTANCES["arms.easy"].make(), jaxdp.bandits.ucb(num_arms=8)
    result = _attack.attack(jax.random.key(0), learner, {"epsilon": 1.0}, world, 2_000, 100)
    assert result["refuted"] is is_confirmed
    assert (result["bound"], result["trials"]) == (1.5 if is_confirmed else 0.9, 500)
    assert [trials for _, trials in calls] == [100, 100, 500, 500]
    assert len({key for key, _ in calls}) == 4
