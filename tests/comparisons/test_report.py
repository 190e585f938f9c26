"""A report is one file that loads nothing, runs nothing and escapes names."""

import base64
import hashlib
import json
import math
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import jax
import pytest
import xarray as xr

import jaxdp
from jaxdp import bandits
from jaxdp.__main__ import main
from jaxdp.comparisons.report import ClaimRow, _claim_rows, guess_probability, plain_svg, read_audit, write_report
from jaxdp.core import Guarantee

EVIL = "<script>alert(1)</script>"
LABEL = {"trust_model": "local", "privacy_unit": "one label", "argument": "test"}
CONTAINERS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "code", "b"}
SHAPES = {"table", "tr", "td", "th", "svg", "g", "defs", "path", "use", "clippath", "rect"}


class Tags(HTMLParser):
    """Collects tags, attributes and texts."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "results.zarr"
    jaxdp.compare(
        {"UCB": bandits.ucb, EVIL: bandits.thompson, 'a" onload="b': bandits.ucb_central},
        bandits.bernoulli_bandit([0.9, 0.5]),
        epsilon=[1.0, math.inf],
        horizon=100,
        num_seeds=6,
        key=jax.random.key(0),
        store=path,
    )
    return path


def harmless(text):
    """Checks that a page has only plain elements, and neither styles, events nor links to other places."""
    parser = Tags()
    parser.feed(text)
    assert {*parser.tags} <= CONTAINERS | SHAPES
    for name, value in parser.attributes:
        assert name != "style", value
        assert not name.startswith("on"), name
        assert "href" not in name or value.startswith("#"), value
    return parser


def test_a_report_runs_nothing_and_shows_names_as_they_are(store):
    audit = [{"name": EVIL, "currency": "epsilon", "lower_bound": 0.93, "claimed": 1.0}]
    text = write_report(jaxdp.open(store), epsilon=1.0, audit=audit, command=f"jaxdp report '{EVIL}' &c")
    parser = harmless(text)
    assert parser.tags.count("style") == 1
    assert EVIL in parser.texts
    assert 'a" onload="b' in parser.texts
    assert f"jaxdp report '{EVIL}' &c" in parser.texts
    assert "epsilon ≥ 0.93 of 1" in parser.texts
    assert "73.1%" in parser.texts
    policy = next(value for name, value in parser.attributes if name == "content")
    style = re.findall("<style>(.*?)</style>", text)[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'"
    with pytest.raises(AssertionError):
        harmless(text.replace("</h1>", f"</h1>{EVIL}"))


def test_an_attack_is_shown_beside_the_claim_that_it_attacked(store):
    row = {"name": "UCB", "currency": "epsilon", "lower_bound": 3.2, "claimed": 4.0}
    texts = harmless(write_report(jaxdp.open(store), audit=[row])).texts
    assert "not attacked at this budget" in texts
    assert not any("≥ 3.2" in text for text in texts)
    claim = ClaimRow("UCB", "", 1.0, Guarantee.approximate(1.0, 1e-6, **LABEL))
    for changed, is_shown in (
        ({"claimed": 1.0}, True),
        ({"claimed": 1.0, "currency": "rho"}, False),
        ({"claimed": 1.0, "delta": 1e-9}, False),
        ({"claimed": 1.0, "delta": 1e-3}, True),
    ):
        shown = "epsilon ≥ 3.2 of 1" if is_shown else "not attacked at this budget"
        assert claim.attack([{**row, **changed}]) == shown


def test_a_figure_of_matplotlib_loses_what_could_load_or_run():
    text = (
        b'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" onload="x()">'
        b'<script>x()</script><style>*{}</style><!-- c --><a xlink:href="http://x.y"/>'
        b'<g style="fill: #fff; opacity: 1">'
        b'<use xlink:href="#a"/><use xlink:href="http://x.y/z.svg"/><image xlink:href="data:x"/></g></svg>'
    )
    parser = harmless(plain_svg(text))
    assert parser.tags == ["svg", "g", "use", "use"]
    assert ("fill", "#fff") in parser.attributes
    assert [value for name, value in parser.attributes if "href" in name] == ["#a"]


def test_odds_of_a_guess_follow_from_the_claim():
    assert guess_probability(Guarantee.pure(1.0, **LABEL)) == pytest.approx(math.e / (1 + math.e))
    assert guess_probability(Guarantee.approximate(1.0, 0.1, **LABEL)) == pytest.approx((math.e + 0.1) / (1 + math.e))
    assert guess_probability(Guarantee.pure(1e4, **LABEL)) == 1
    assert guess_probability(Guarantee.pure(1e-9, **LABEL)) == pytest.approx(0.5)
    normal = 0.5 * (1 + math.erf(0.5 / math.sqrt(2)))  # distinguishing N(0, 1) from N(1, 1)
    assert guess_probability(Guarantee.gaussian(1.0, **LABEL)) == pytest.approx(normal, abs=2e-3)
    assert normal - 1e-9 <= guess_probability(Guarantee.zcdp(0.5, **LABEL)) < 0.85


def test_the_command_writes_a_new_file(store, tmp_path, monkeypatch, capsys):
    out, audit = tmp_path / "report.html", tmp_path / "audit \udcff.json"  # a name that is not UTF-8
    rows = [
        {"name": "UCB", "currency": "epsilon", "lower_bound": 0.5, "claimed": "inf"},
        {"name": EVIL, "currency": "epsilon", "lower_bound": "inf", "claimed": 1.0},
    ]
    audit.write_text(json.dumps(rows))
    arguments = ["jaxdp", "report", str(store), "--out", str(out), "--audit", str(audit)]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as status:
        main()
    assert status.value.code == 0
    assert f"python -m jaxdp report {store}" in "".join(harmless(out.read_text()).texts)
    assert {"epsilon ≥ 0.5 of inf", "epsilon ≥ inf of 1"} <= {*harmless(out.read_text()).texts}
    with pytest.raises(SystemExit) as status:
        main()
    assert status.value.code == 2
    assert "out must be a new file" in capsys.readouterr().err


def test_claims_have_the_epsilon_of_a_static_axis():
    claim = Guarantee.pure(0.5, **LABEL)
    points = [
        SimpleNamespace(static={"epsilon": 0.5}, values={}, guarantees={"learner": claim}),
        SimpleNamespace(static={"epsilon": "inf"}, values={}, guarantees={"learner": Guarantee.none(**LABEL)}),
        SimpleNamespace(static={}, values={"epsilon": 0.5}, guarantees={"learner": claim}),
    ]
    assert [row.epsilon for row in _claim_rows(points, "learner")] == [0.5, math.inf, 0.5]


def test_one_budget_is_drawn_against_rounds_without_a_line_at_epsilon(store):
    dataset = jaxdp.open(store).sel(epsilon=[1.0])
    rounds = xr.concat([0.5 * dataset, dataset], "round").assign_coords(round=[50, 100]).assign_attrs(dataset.attrs)
    pages = [write_report(rounds, metric="pseudo_regret", epsilon=epsilon) for epsilon in (None, 1.0)]
    assert all("Loss against rounds" in page for page in pages)
    assert pages[0].count("<path") == pages[1].count("<path")


def test_large_values_may_be_good_and_counts_are_named(store):
    text = write_report(jaxdp.open(store), best="largest", unpaired=["UCB"])
    assert "the largest mean of a column" in text
    assert "Unpaired, on different worlds (played by counts): UCB." in text


def test_bad_arguments_are_named(store, tmp_path):
    dataset = jaxdp.open(store)
    with pytest.raises(ValueError, match="best must be one of least, largest, got 'most'"):
        write_report(dataset, best="most")
    with pytest.raises(ValueError, match=r"unpaired must be one of .*, got 'Exp3'"):
        write_report(dataset, unpaired=["Exp3"])
    with pytest.raises(ValueError, match="epsilon must be one of 1, inf, got 3"):
        write_report(dataset, epsilon=3.0)
    with pytest.raises(ValueError, match="metric must be one of"):
        write_report(dataset, metric="loss")
    (tmp_path / "x.json").write_text("[{}]")
    with pytest.raises(ValueError, match="which has no rows with bounds"):
        read_audit(tmp_path / "x.json")
