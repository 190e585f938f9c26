"""Results of the benchmark: files that resume, standings, and an attack at the suite's own horizon."""

import json
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.core import Guarantee, Interface, Learner, Space, State, arms
from jaxdp.mechanisms import randomized_response
from jaxdp.suite import INSTANCES, _attack, _bench, _programs, _standings, command, v1

OWN = """
import jax
import jax.numpy as jnp
from jaxdp.core import Guarantee, Interface, Learner, Space, State, arms

def coin(*, num_arms, bias=0.0):
    return Learner(
        params=lambda *, epsilon: {"epsilon": epsilon},
        guarantee=lambda *, epsilon: Guarantee.pure(epsilon, trust_model="local", privacy_unit="bit", argument=""),
        init=lambda key, params: State((), ()),
        act=lambda key, params, public, context: jax.random.randint(key, (), 0, num_arms),
        privatize=lambda key, params, public, context, action, feedback: jnp.zeros(()),
        update=lambda key, params, state, report: state,
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1)),
    )

not_a_learner = 3
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "my_bandits.py").write_text(textwrap.dedent(OWN))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(v1.QUICK_HORIZONS, "arms", 200)
    monkeypatch.setitem(_attack.TRIALS, "quick", 200)
    return tmp_path


def test_an_own_learner_is_played_resumed_and_compared(own_module):
    path, lines = own_module / "coin.json", []
    record = _bench.bench(
        "my_bandits:coin", path, quick=True, family="arms", proof="https://example.org", report=lines.append
    )
    assert json.loads(path.read_text()) == json.loads(json.dumps(record))
    played = record["instances"]["arms.easy"]
    assert [len(played["values"][epsilon]) for epsilon in ("0.1", "1", "10", "inf")] == [v1.QUICK_SEEDS] * 4
    assert played["claims"]["0.1"]["claim"].startswith("0.1-DP, local")
    assert "feedback must be" in record["instances"]["arms.bounded"]["skipped"]
    assert record["proof"] == "https://example.org"
    assert record["attack"]["arms.easy"]["refuted"] is False
    del record["instances"]["arms.many"], record["attack"]["arms.easy"]
    record["instances"]["arms.easy"]["values"]["1"][0] = 5.0
    path.write_text(json.dumps(record))
    again = _bench.bench("my_bandits:coin", path, quick=True, family="arms", report=lines.append)
    assert again["instances"]["arms.easy"]["values"]["1"][0] == 5.0, "what was there was not played again"
    assert len(lines) == 8, "five instances and a reason, then one instance and the reason"
    assert again["attack"]["arms.easy"]["refuted"] is False
    assert "arms.many" in again["instances"]
    with pytest.raises(ValueError, match="out must be new, or hold results with protocol 'full'"):
        _bench.bench("my_bandits:coin", path, family="arms")
    with pytest.raises(ValueError, match="out must be new, or hold results with tuned"):
        _bench.bench("my_bandits:coin", path, quick=True, tuned={"bias": 1}, family="arms")


@pytest.mark.parametrize(
    ("text", "is_equal"),
    [
        ('"""Sums."""\n\ndef add(a, b):\n    """Adds."""\n    # exactly\n    return (\n        a + b\n    )\n', True),
        ("def add(a, b):\n    return a - b\n", False),
        ("def add(a, b=0):\n    return a + b\n", False),
    ],
)
def test_the_hash_of_the_code_changes_with_the_program_only(text, is_equal):
    plain = _programs._without_comments(b"def add(a, b):\n    return a + b\n")
    assert (_programs._without_comments(text.encode()) == plain) is is_equal


@pytest.mark.parametrize(
    ("name", "instance"),
    [
        ("tsallis_inf_gaussian", "arms.easy"),
        ("ucb_central_tree", "arms.easy"),
        ("versatile_sparring_gaussian", "duels.utilities"),
    ],
)
def test_variants_that_need_a_horizon_get_the_horizon_of_the_instance(name, instance):
    factory, variant = _programs.resolve(name)
    _, (_, arguments), _, _ = _bench._contestant(name, factory, variant, INSTANCES[instance], "round", True)
    assert arguments["horizon"] == INSTANCES[instance].horizon(quick=True)


def test_names_that_cannot_be_played_are_refused(own_module):
    for name, message in (
        ("my_bandits", "learner must be module:name"),
        ("my_bandits:absent", "learner must be module:name that can be imported"),
        ("absent_module:coin", "learner must be module:name that can be imported"),
    ):
        with pytest.raises(ValueError, match=message):
            _bench.bench(name, own_module / "x.json", quick=True)
    with pytest.raises(ValueError, match="plays none: arms: learners"):
        _bench.bench(
            "my_bandits:not_a_learner", own_module / "x.json", quick=True, family="arms", report=lambda line: None
        )
    assert not (own_module / "x.json").exists()
    with pytest.raises(ValueError, match="family must be one of"):
        command.bench_all(["ucb"], own_module, False, (), print, family="arm")
    with pytest.raises(ValueError, match="value must be NAME=NUMBER, got 'x'"):
        command.bench_all(["ucb"], own_module, False, ("x",), print)


def leaks_late(*, honest_rounds: int, num_arms: int = 8) -> Learner:
    """Returns a curator's learner that plays its last reward, and not its randomized response, from some round on."""

    def update(key, params, state, report):
        private = randomized_response(key, report, params["epsilon"])
        rounds = state.public[0]
        return State((), (rounds + 1, jnp.where(rounds < honest_rounds, private, report).astype(jnp.int32)))

    return Learner(
        params=lambda *, epsilon: {"epsilon": np.float32(epsilon)},
        guarantee=lambda *, epsilon: Guarantee.pure(
            epsilon, trust_model="central", privacy_unit="one reward", argument="rr", adversary_view=["action"]
        ),
        init=lambda key, params: State((), (jnp.int32(0), jnp.int32(0))),
        act=lambda key, params, public, context: public[1],
        privatize=lambda key, params, public, context, action, feedback: feedback,
        update=update,
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1)),
    )


def test_a_learner_that_is_private_below_1000_rounds_only_is_flagged():
    world, key = INSTANCES["arms.easy"].make(), jax.random.key(0)
    horizon = v1.QUICK_HORIZONS["arms"]
    results = {
        rounds: _attack.attack(key, leaks_late(honest_rounds=rounds), {"epsilon": 1.0}, world, horizon, 400)
        for rounds in (1_000, 10**9)
    }
    assert results[1_000]["refuted"]
    assert results[1_000]["bound"] > 3
    assert not results[10**9]["refuted"]
    assert 0.2 < results[10**9]["bound"] <= 1
    short = _attack.attack(key, leaks_late(honest_rounds=1_000), {"epsilon": 1.0}, world, 900, 400)
    assert not short["refuted"], "only the suite's horizon shows the leak"


UNFAIR = """
import jax
import jax.numpy as jnp
from jaxdp.core import Guarantee
from my_bandits import coin

CLAIM = {"trust_model": "local", "privacy_unit": "bit", "argument": ""}

def with_claim(num_arms, guarantee):
    return coin(num_arms=num_arms)._replace(guarantee=guarantee)

def stops(*, num_arms):
    return coin(num_arms=num_arms)._replace(done=lambda params, public: jnp.bool_(True))

def ten_times(*, num_arms):
    return with_claim(num_arms, lambda *, epsilon: Guarantee.pure(10 * epsilon, **CLAIM))

def fixed(*, num_arms):
    guarantee = lambda: Guarantee.pure(5.0, **CLAIM)
    return with_claim(num_arms, guarantee)._replace(params=lambda: {})

def large_delta(*, num_arms):
    return with_claim(num_arms, lambda *, epsilon: Guarantee.approximate(epsilon, 1e-3, **CLAIM))

def large_rho(*, num_arms):
    return with_claim(num_arms, lambda *, epsilon: Guarantee.zcdp(50 * epsilon, **CLAIM))

def large_mu(*, num_arms):
    return with_claim(num_arms, lambda *, epsilon: Guarantee.gaussian(epsilon, **CLAIM))

def partly(*, num_arms):
    return with_claim(
        num_arms, lambda *, epsilon: Guarantee.pure(epsilon, **CLAIM) if epsilon < 5 else Guarantee.none(**CLAIM)
    )

def small(*, num_arms):
    guarantee = lambda: Guarantee.pure(0.05, **CLAIM)
    return with_claim(num_arms, guarantee)._replace(params=lambda: {})

def breaks(*, num_arms):
    def act(key, params, public, context):
        breaks = (params["epsilon"] == 1) & (num_arms == 64)
        return jnp.where(breaks, 99, jax.random.randint(key, (), 0, num_arms)).astype(jnp.int32)

    return coin(num_arms=num_arms)._replace(act=act)
"""


def test_learners_that_stop_early_or_claim_less_than_their_column_are_not_ranked(own_module, monkeypatch):
    (own_module / "unfair.py").write_text(UNFAIR)
    options = {"quick": True, "family": "arms", "report": lambda line: None}
    for name, message in {
        "stops": "must play until the horizon",
        "ten_times": r"must claim \(0.1, 1e-06\)-DP or more privacy at epsilon = 0.1, got 1-DP",
        "fixed": r"must claim \(0.1, 1e-06\)-DP or more privacy at epsilon = 0.1, got 5-DP",
        "large_delta": r"must claim \(0.1, 1e-06\)-DP or more privacy",
        "large_rho": r"must claim \(0.1, 1e-06\)-DP or more privacy at epsilon = 0.1, got 5-zCDP",
        "large_mu": r"must claim \(0.1, 1e-06\)-DP or more privacy at epsilon = 0.1, got 0.1-GDP",
        "partly": "must claim the same kind of privacy at every finite epsilon",
    }.items():
        with monkeypatch.context() as patched:
            patched.delattr(_bench, "compare")  # nothing is played before
            with pytest.raises(ValueError, match=f"plays none: arms: .*{message}"):
                _bench.bench(f"unfair:{name}", own_module / "unfair.json", **options)
    for name in ("epsilon", "delta"):
        with pytest.raises(ValueError, match=f"value must not be {name}"):
            _bench.bench("unfair:small", own_module / "unfair.json", tuned={name: 1}, **options)
    small = _bench.bench("unfair:small", own_module / "small.json", **options)
    assert small["attack"]["arms.easy"]["claimed"] == 0.05, "a claim without epsilon is attacked as well"
    again = _bench.bench("unfair:small", own_module / "small.json", proof="https://example.org", **options)
    assert again["proof"] == json.loads((own_module / "small.json").read_text())["proof"] == "https://example.org"


@pytest.mark.filterwarnings("ignore:NaN in pseudo_regret")
def test_a_regret_that_is_not_a_number_spoils_the_geometric_mean(own_module):
    (own_module / "unfair.py").write_text(UNFAIR)
    record = _bench.bench(
        "unfair:breaks", own_module / "breaks.json", quick=True, family="arms", report=lambda line: None
    )
    text = _standings.standings({"breaks": record})
    row = next(line for line in text.splitlines() if line.startswith("| breaks | 5 of 5"))
    assert [cell.startswith("inf") for cell in row.split(" | ")[2:6]] == [False, True, False, False]
    with pytest.raises(ValueError, match="a learner that played all instances"):
        _standings.draw_standings({"breaks": record})


def test_an_estimator_gets_values_from_the_problem_before_its_claim_is_checked(monkeypatch, tmp_path):
    """Ends when the comparison begins: `feature_norm` of this estimator is a value of the problem."""

    def begin(contestants, **options):
        raise RuntimeError(f"{list(contestants)} are compared")

    monkeypatch.setattr(_bench, "compare", begin)
    with pytest.raises(RuntimeError, match="objective_perturbation_full'] are compared"):
        _bench.bench("objective_perturbation_full", tmp_path / "x.json", quick=True, family="rewards")


def test_a_fault_of_one_learner_does_not_end_the_others(own_module):
    (own_module / "boom.py").write_text("from my_bandits import coin\n\ndef boom(*, num_arms):\n    return 1 // 0\n")
    names, lines, options = ["boom:boom", "my_bandits:not_a_learner"], [], {"quick": True, "family": "arms"}
    assert command.bench_all(names, own_module / "out", False, (), lines.append, **options) == names
    assert any(line.startswith("  boom:boom raised ZeroDivisionError") for line in lines)
    assert lines[-1].startswith("  learner must play some instance")
    with pytest.raises(ZeroDivisionError):
        command.bench_all(names[:1], own_module / "out", False, (), lines.append, **options)


def test_the_hash_of_the_code_covers_the_file_that_defines_the_factory(own_module):
    path = own_module / "hashed.py"
    path.write_text("def coin():\n    return 0\n")
    (own_module / "thin.py").write_text("from hashed import coin\n")
    before = _programs.code_hash("thin:coin")
    path.write_text("def coin():\n    return 1\n")
    assert _programs.code_hash("thin:coin") != before
    assert _programs.code_hash("sys:exit") == ""


def test_a_module_may_begin_with_an_underscore(own_module):
    (own_module / "_own.py").write_text("from my_bandits import coin\n")
    record = _bench.bench("_own:coin", own_module / "own.json", quick=True, family="arms", report=lambda line: None)
    assert "values" in record["instances"]["arms.easy"]


def test_a_proof_is_a_link(own_module):
    for proof in ("proved", "javascript:alert(1)"):
        with pytest.raises(ValueError, match="proof must be a link that begins with https:// or http://"):
            _bench.bench("my_bandits:coin", own_module / "coin.json", proof=proof)


def test_options_of_the_command_that_do_not_belong_together_are_refused(tmp_path):
    for options, message in (
        ({"plot": tmp_path / "x.png"}, "plot must come with --standings"),
        ({"standings": tmp_path, "learners": ["ucb"]}, "learners must be left out with --standings"),
        ({"learners": ["ucb"], "value": ["a=1", "a=2"]}, "value must name each argument once"),
    ):
        with pytest.raises(ValueError, match=message):
            command.bench_learners(**{"folder": tmp_path, **options})
