"""Results of the benchmark: files that resume, standings, and an attack at the suite's own horizon."""

import collections
import copy
import json
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from jaxdp.core import Guarantee, Interface, Learner, Space, State, arms
from jaxdp.mechanisms import randomized_response
from jaxdp.suite import INSTANCES, _attack, _bench, _standings, command, v1

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
    record = _bench.bench("my_bandits:coin", path, quick=True, family="arms", proof="a link", report=lines.append)
    assert json.loads(path.read_text()) == json.loads(json.dumps(record))
    played = record["instances"]["arms.easy"]
    assert [len(played["values"][epsilon]) for epsilon in ("0.1", "1", "10", "inf")] == [v1.QUICK_SEEDS] * 4
    assert played["claims"]["0.1"]["claim"].startswith("0.1-DP, local")
    assert "feedback must be" in record["instances"]["arms.bounded"]["skipped"]
    assert record["proof"] == "a link"
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
    plain = _bench._without_comments(b"def add(a, b):\n    return a + b\n")
    assert (_bench._without_comments(text.encode()) == plain) is is_equal


@pytest.mark.parametrize(
    ("name", "instance"),
    [
        ("tsallis_inf_gaussian", "arms.easy"),
        ("ucb_central_tree", "arms.easy"),
        ("versatile_sparring_gaussian", "duels.utilities"),
    ],
)
def test_variants_that_need_a_horizon_get_the_horizon_of_the_instance(name, instance):
    factory, variant = _bench.resolve(name)
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


def records(**scores):
    """Returns results with these values of every seed, as a multiple of uniform play, in two instances."""
    made = {}
    for name, (trust, values) in scores.items():
        claim = {"claim": "", "kind": "pure", "trust_model": trust, "privacy_unit": "one reward"}
        instances = {
            instance: {
                "values": {
                    e: [v * INSTANCES[instance].uniform(True) for v in values] for e in ("0.1", "1", "10", "inf")
                },
                "claims": {"1": claim},
            }
            for instance in ("arms.easy", "arms.hard")
        }
        made[name] = {
            "learner": name,
            "unit": "round",
            "tuned": {},
            "protocol": "quick",
            "proof": "",
            "instances": instances,
            "attack": {},
            "suite_hash": v1.suite_hash(),
        }
    return made


def test_standings_rank_within_a_trust_model_only():
    noise = np.linspace(-0.01, 0.01, 10)
    made = records(good=("local", 0.2 + noise), bad=("local", 0.9 + noise), ucb_central=("central", 0.1 + noise))
    made["good"]["attack"] = {"arms.easy": {"currency": "epsilon", "bound": 0.93, "claimed": 1.0, "refuted": False}}
    made["bad"]["attack"] = {"arms.easy": {"currency": "epsilon", "bound": 3.0, "claimed": 1.0, "refuted": True}}
    made["bad"]["proof"] = "https://example.org"
    text = _standings.standings(made)
    assert text.count("## arms:") == 2
    local = text[text.index("local model") :]
    assert "not refuted: epsilon >= 0.93 of 1 | none |" in local
    assert "refuted: epsilon >= 3 of 1 | https://example.org |" in local
    assert "not attacked | proved |" in text[: text.index("local model")]
    rows = collections.defaultdict(str)
    for line in local.splitlines():
        if "±" in line:
            rows[line.split(" | ")[0].strip("| ")] += line
    assert rows["good"].count("**") == 16
    assert "**" not in rows["bad"]
    assert "private" not in text.replace("privacy", "")


def test_standings_have_a_table_for_each_unit():
    made = records(one=("local", [0.5] * 10))
    person = copy.deepcopy(made["one"]) | {"unit": "person"}
    for played in person["instances"].values():
        played["claims"]["1"]["privacy_unit"] = "one person"
    assert _standings._label(person) == "one (person)"
    text = _standings.standings({**made, _standings._label(person): person})
    rounds, people = text.index("one reward, pure claims"), text.index("one person of 20 visits, pure claims")
    assert "| one | 2 of 2 |" in text[rounds:]
    assert "| one (person) | 2 of 2 |" in text[people:rounds]
    assert "Claims are for one person of 20 visits." in text[people:rounds]
    figure = _standings.draw_standings({**made, _standings._label(person): person})
    assert [ax.get_title() for ax in figure.axes] == [
        "arms, local, pure,\none person of 20 visits",
        "arms, local, pure,\none reward",
    ]


def test_a_claim_for_a_round_that_names_a_person_is_in_no_table_of_a_person():
    made = records(person=("local", [0.5] * 10), round=("local", [0.1] * 10))
    made["person"]["unit"] = "person"
    for name, text in (("person", "one person"), ("round", f"one person of {v1.VISITS} visits")):
        for played in made[name]["instances"].values():
            played["claims"]["1"] = played["claims"]["1"] | {"privacy_unit": text}
    tables = {group[2]: scores.learner.values.tolist() for group, scores in _standings.score_tables(made).items()}
    assert tables == {
        "one person of 20 visits": ["person"],
        "one person of 20 visits, played per round": ["round"],
    }


def test_the_figure_has_a_panel_for_each_table_and_leaves_out_incomplete_rows():
    made = records(good=("local", [0.1] * 10), half=("local", [0.9] * 10), other=("central", [0.01] * 10))
    del made["half"]["instances"]["arms.hard"]
    figure = _standings.draw_standings(made)
    panels = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in panels] == ["arms, central, pure,\none reward", "arms, local, pure,\none reward"]
    heights = [{round(float(y), 6) for line in ax.lines for y in np.ravel(line.get_ydata())} - {0.0} for ax in panels]
    assert heights == [{-2.0}, {-1.0}]
    assert _standings.left_out(made) == ["half (1 of 2 instances of arms)"]
    single = {"half": made["half"]}
    assert _standings.left_out(single) == ["half (1 of 1 instances of arms)"]
    del made["good"], made["other"]
    with pytest.raises(ValueError, match="a learner that played all instances"):
        _standings.draw_standings(made)


def test_a_panel_of_learners_without_a_claim_says_so():
    made = records(one=("local", [0.5] * 10))
    for played in made["one"]["instances"].values():
        played["claims"]["1"]["kind"] = "none"
    assert _standings.draw_standings(made).axes[0].get_title() == "arms, local, no claim,\none reward"


def test_geometric_means_show_what_one_instance_does():
    scores = xr.DataArray([[0.1], [0.4], [0.4]], {"instance": list("abc"), "epsilon": [1.0]}, ("instance", "epsilon"))
    assert _standings.geometric_means(scores, 0.01) == ["0.252 (0.2 to 0.4)"]
    negative = xr.DataArray([[-1.0], [np.nan]], {"instance": list("ab"), "epsilon": [1.0]}, ("instance", "epsilon"))
    assert _standings.geometric_means(negative, 0.01) == ["0.01 (0.01 to 0.01)"]


def test_folders_that_mix_results_are_refused(tmp_path):
    with pytest.raises(ValueError, match="which has none"):
        _standings.read_results(tmp_path)
    made = records(one=("local", [0.5] * 10), two=("local", [0.5] * 10))
    made["two"]["protocol"] = "full"
    for name, record in made.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="standings must have one protocol, got quick and"):
        _standings.read_results(tmp_path)
    old = copy.deepcopy(made["one"]) | {"suite_hash": "0"}
    (tmp_path / "two.json").write_text(json.dumps(old))
    with pytest.raises(ValueError, match="of this version of the suite"):
        _standings.read_results(tmp_path)


@pytest.mark.parametrize(("instance", "epsilon"), [("arms.easy", "inf"), ("arms.hard", "1")])
def test_results_with_several_numbers_of_seeds_are_refused(instance, epsilon, tmp_path):
    (made,) = records(one=("local", [0.5] * 10)).values()
    made["instances"][instance]["values"][epsilon].pop()
    (tmp_path / "one.json").write_text(json.dumps(made))
    with pytest.raises(ValueError, match=r"must have one number of seeds, got 10 and, in .*one.json for arms\..*, 9"):
        _standings.read_results(tmp_path)


@pytest.mark.parametrize("folder", ["full", "quick"])
def test_committed_results_are_results_of_this_suite_with_or_without_late_instances(folder):
    results = _standings.read_results(Path(__file__).parents[2] / "benchmarks" / "suite" / folder)
    assert {record["unit"] for record in results.values()} <= {"round", "person"}
    assert any("arms.easy" in record["instances"] for record in results.values())
    without = {name: copy.deepcopy(record) for name, record in results.items() if "arms.easy" in record["instances"]}
    for record in without.values():
        record["instances"].pop("arms.late", None)
    tables = _standings.score_tables(without)
    assert not any("arms.late" in table["instance"] for table in tables.values())
    assert any("arms.easy" in table["instance"] for table in tables.values())


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
    again = _bench.bench("unfair:small", own_module / "small.json", proof="a link", **options)
    assert again["proof"] == json.loads((own_module / "small.json").read_text())["proof"] == "a link"


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


def test_results_with_another_claim_are_in_another_table():
    made = records(one=("local", [0.5] * 10), two=("local", [0.4] * 10))
    made["two"]["instances"]["arms.hard"]["claims"] = {
        "1": made["two"]["instances"]["arms.hard"]["claims"]["1"] | {"kind": "approximate"}
    }
    text = _standings.standings(made)
    pure, approximate = text[text.index("pure claims") :], text[: text.index("pure claims")]
    assert "| two | 1 of 2 |" in pure
    assert "| two | 1 of 1 |" in approximate
    assert "| one |" not in approximate


def test_options_of_the_command_that_do_not_belong_together_are_refused(tmp_path):
    for options, message in (
        ({"plot": tmp_path / "x.png"}, "plot must come with --standings"),
        ({"standings": tmp_path, "learners": ["ucb"]}, "learners must be left out with --standings"),
        ({"learners": ["ucb"], "value": ["a=1", "a=2"]}, "value must name each argument once"),
    ):
        with pytest.raises(ValueError, match=message):
            command.bench_learners(**{"folder": tmp_path, **options})
