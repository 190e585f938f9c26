"""Results of the benchmark: files that resume, standings, and an attack at the suite's own horizon."""

import copy
import json
import textwrap

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
    assert len(lines) == 7, "four instances and a reason, then one instance and the reason"
    assert again["attack"]["arms.easy"]["refuted"] is False
    assert "arms.many" in again["instances"]
    with pytest.raises(ValueError, match="out must be new, or hold results with protocol 'full'"):
        _bench.bench("my_bandits:coin", path, family="arms")
    with pytest.raises(ValueError, match="out must be new, or hold results with tuned"):
        _bench.bench("my_bandits:coin", path, quick=True, tuned={"bias": 1}, family="arms")


def test_names_that_cannot_be_played_are_refused(own_module):
    for name, message in (
        ("my_bandits", "learner must be module:name"),
        ("my_bandits:absent", "learner must be module:name that can be imported"),
        ("absent_module:coin", "learner must be module:name that can be imported"),
    ):
        with pytest.raises(ValueError, match=message):
            _bench.bench(name, own_module / "x.json", quick=True)
    with pytest.raises(ValueError, match="plays none: ValueError: learners"):
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
        return State((), (rounds + 1, jnp.where(rounds < honest_rounds, private, report)))

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
    made = records(good=("local", 0.2 + noise), bad=("local", 0.9 + noise), other=("central", 0.1 + noise))
    made["good"]["attack"] = {"arms.easy": {"currency": "epsilon", "bound": 0.93, "claimed": 1.0, "refuted": False}}
    made["bad"]["attack"] = {"arms.easy": {"currency": "epsilon", "bound": 3.0, "claimed": 1.0, "refuted": True}}
    made["bad"]["proof"] = "https://example.org"
    text = _standings.standings(made)
    assert text.count("## arms:") == 2
    local = text[text.index("local model") :]
    assert "not refuted: epsilon >= 0.93 of 1 | none |" in local
    assert "refuted: epsilon >= 3 of 1 | https://example.org |" in local
    assert "not attacked" in text[: text.index("local model")]
    rows = {line.split(" | ")[0].strip("| "): line for line in local.splitlines() if "±" in line}
    assert rows["good"].count("**") == 16
    assert "**" not in rows["bad"]
    assert "private" not in text.replace("privacy", "")


def test_the_figure_has_a_panel_for_each_table_and_leaves_out_incomplete_rows():
    made = records(good=("local", [0.1] * 10), half=("local", [0.9] * 10), other=("central", [0.01] * 10))
    del made["half"]["instances"]["arms.hard"]
    figure = _standings.draw_standings(made)
    panels = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in panels] == ["arms, central, pure", "arms, local, pure"]
    heights = [{round(float(y), 6) for line in ax.lines for y in np.ravel(line.get_ydata())} - {0.0} for ax in panels]
    assert heights == [{-2.0}, {-1.0}]
    del made["good"], made["other"]
    with pytest.raises(ValueError, match="a learner that played all instances"):
        _standings.draw_standings(made)


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
