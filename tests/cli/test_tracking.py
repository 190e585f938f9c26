"""The studies of tracking: settings, what their texts and figures say, and errors."""

import math
import re

import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg

from jaxdp.experts import counter_weights_parameters
from jaxdp.studies import tracking, tracking_orders, tracking_regret, tracking_separation, tracking_your_losses
from jaxdp.studies.command import mean_and_half_width
from jaxdp.studies.comparison import nearest_epsilon
from jaxdp.studies.declared import BoundStudy
from jaxdp.studies.tracking import LEARNERS
from jaxdp.theory import tracking as theory

CELL = re.compile(r"(-?[\d,.]+) \+- ([\d,.]+|nan)")


def made_up(adversaries=("shifting",), num_seeds=6, horizons=(1000, 100, 10_000), switches=(2, 4), epsilons=(2.0, 0.5)):
    """Makes regret of 3 S T^(1/2) / epsilon for the first learner, and of 0.2 T for the second."""
    settings = tracking.star(adversaries, [10], horizons, switches)
    coords = {
        "learner": ["counter_weights", "svt_restarts"],
        "setting": [str(setting) for setting in settings],
        "epsilon": [*epsilons, math.inf],
        "seed": range(num_seeds),
    }
    noise = np.random.default_rng(0).uniform(0.99, 1.01, [len(values) for values in coords.values()])
    noise = xr.DataArray(noise, coords, list(coords))
    rounds = xr.DataArray([setting.horizon for setting in settings], dims="setting")
    changes = xr.DataArray([setting.num_switches for setting in settings], dims="setting")
    first = 3 * changes * rounds**0.5 / noise.epsilon.clip(max=100)
    regret = noise * xr.concat([first, 0.2 * rounds * xr.ones_like(noise.epsilon)], "learner")
    results = xr.Dataset({"dynamic_regret": regret, "best_sequence_loss": 0.25 * rounds + 0 * regret})
    results = results.transpose("learner", "setting", "epsilon", "seed")
    claims = ["central, (ε, δ)", "central, ε"]
    return tracking.with_settings(results, settings).assign_coords(claim=("learner", claims), delta=1e-6, gap=0.25)


def test_a_star_of_settings():
    found = tracking.star(["shifting", "alternating"], [10, 100], [50, 60], [3, 0])
    own = [(10, 50, 3), (10, 60, 3), (10, 50, 0), (100, 50, 3)]
    assert [tuple(setting) for setting in found] == [
        (name, *sizes) for name in ("shifting", "alternating") for sizes in own
    ]
    assert str(found[0]) == "shifting, N = 10, T = 50, S = 3"


def test_every_learner_and_adversary_can_be_made():
    for name, make in tracking.LEARNERS.items():
        for switches in (0, 3):
            made = make(5, 60, switches)
            assert made.interface is not None
            assert made.interface.action.high == 4
            claim = tracking.claim_of(made, 1e-6)
            assert claim.startswith(
                "local"
                if name in ("exponential_weights", "mirror_descent_noisy", "mirror_descent_paper")
                else "central"
            )
    assert tracking.claim_of(tracking.LEARNERS["mirror_descent_paper"](5, 60, 3), 1e-6) == "local, 5ε"
    assert tracking.claim_of(tracking.LEARNERS["svt_restarts"](5, 60, 3), 1e-6) == "central, ε"
    for name, adversary in tracking.ADVERSARIES.items():
        made = adversary.make(tracking.Setting(name, 5, 60, 3), 0.2)
        assert made.horizon in (60, None)
        assert adversary.kind in tracking_orders.ORDERS


@pytest.fixture(scope="module")
def small():
    return tracking_regret.tracking_regret(
        epsilon=[1.0, math.inf],
        learner=["mirror_descent", "limited_updates_oblivious"],
        horizon=[300],
        num_switches=[2],
        num_experts=[3],
        gap=0.5,
        num_seeds=3,
        key=jax.random.key(3),
    )


def test_a_comparator_that_switches_in_every_round_has_no_static_class():
    assert "markov(switch_rate=0.98" in repr(tracking.LEARNERS["counter_weights"](3, 60, 59))


def test_results(small):
    regret = small.dynamic_regret
    assert regret.dims == ("learner", "setting", "epsilon", "seed")
    assert small.setting.values.tolist() == ["shifting, N = 3, T = 300, S = 2"]
    assert small.claim.values.tolist() == ["central, (ε, δ)"] * 2
    assert small.horizon.values.tolist() == [300]
    np.testing.assert_allclose(regret, small.loss - small.best_sequence_loss, atol=1e-3)
    assert bool((regret >= small.regret).all())
    assert float(small.best_sequence_loss.std("learner").max()) == 0  # one world for all
    free = regret.sel(epsilon=math.inf).mean("seed")
    assert float(free.sel(learner="mirror_descent").squeeze()) < float(
        free.sel(learner="limited_updates_oblivious").squeeze()
    )
    assert tracking_regret.report(small)


def test_slices():
    results = made_up(("shifting", "alternating"))
    shifting, alternating = tracking_regret.bases(results)
    assert shifting == ("shifting", 10, 1000, 2)
    assert tracking_regret.varying_axes(results) == ["horizon", "num_switches"]
    chosen = tracking_regret.along(results, alternating, "horizon")
    assert chosen.horizon.values.tolist() == [100, 1000, 10_000]
    expected = results.dynamic_regret.sel(setting="alternating, N = 10, T = 100, S = 2")
    np.testing.assert_array_equal(chosen.dynamic_regret.sel(horizon=100), expected)
    assert tracking_regret.along(results, shifting, "num_switches").num_switches.values.tolist() == [2, 4]
    assert nearest_epsilon(results) == 2.0


def test_tables_hold_the_numbers_of_the_dataset():
    results = made_up()
    base = tracking_regret.bases(results)[0]
    lines = tracking_regret.table(results, base).splitlines()
    mean, half = mean_and_half_width(tracking.at_setting(results, base).dynamic_regret)
    for line, name in zip(lines[2:4], results.learner.values, strict=True):
        cells = [[float(number.replace(",", "")) for number in pair] for pair in CELL.findall(line)]
        np.testing.assert_allclose(cells, np.stack([mean.sel(learner=name), half.sel(learner=name)], 1), atol=0.51)
    uniform = (0.5 - 0.25 / 10 - 0.25) * 1000
    assert lines[4].split()[-3:] == [f"{uniform:,.0f}"] * 3
    assert len(lines) == 5


def test_a_static_setting_has_the_bound_that_is_proved():
    results = made_up(switches=(0,))
    base = tracking_regret.bases(results)[0]
    line = tracking_regret.table(results, base).splitlines()[-1]
    about = {"delta": 1e-6, "num_experts": 10, "horizon": 1000}
    bounds = [counter_weights_parameters(epsilon=e, **about).regret_bound for e in (2.0, 0.5, math.inf)]
    assert line.split() == ["proved", "bound", "of", "Counter", "weights", *(f"{bound:,.0f}" for bound in bounds)]
    assert "Table 1" not in tracking_regret.growth(results, base)


def test_exponents():
    results = made_up(num_seeds=30)
    base = tracking_regret.bases(results)[0]
    lines = tracking_regret.growth(results, base).splitlines()
    found = [[float(n) for n in re.findall(r"(-?\d\.\d\d) \(", line)] for line in lines[2:4]]
    np.testing.assert_allclose(found, [[0.5, 0.5, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0, 0.0]], atol=0.02)
    rounds = np.array([100.0, 1000.0, 10_000.0])
    for line, order in zip(lines[4:], (theory.shifting_upper, theory.shifting_lower), strict=True):
        slopes = [np.polyfit(np.log(rounds), np.log(order(e, rounds, 10, 2)), 1)[0] for e in (2.0, math.inf)]
        assert [float(word) for word in line.split()[-5:-3]] == pytest.approx(slopes, abs=0.006)


def test_the_figure():
    results = made_up(("shifting", "punish_repeats"))
    figure = tracking_regret.figure(results)
    FigureCanvasAgg(figure).draw()
    assert len(figure.axes) == 6
    against_rounds, _, against_epsilon = figure.axes[:3]
    curve, other, order = against_rounds.get_lines()
    mean = tracking_regret.along(results, tracking_regret.bases(results)[0], "horizon").dynamic_regret.mean("seed")
    for line, name in ((curve, "counter_weights"), (other, "svt_restarts")):
        np.testing.assert_allclose(np.asarray(line.get_ydata(), float), mean.sel(learner=name, epsilon=2.0))
    heights = theory.shifting_upper(2.0, [100, 1000, 10_000], 10, 2)
    first = float(mean.sel(epsilon=2.0, horizon=100).min())
    np.testing.assert_allclose(np.asarray(order.get_ydata(), float), first * heights / heights[0])
    assert [tick.get_text() for tick in against_epsilon.get_xticklabels()] == ["0.5", "2", "∞"]
    below = figure._supxlabel.get_text().replace("\n", " ")  # pyright: ignore[reportAttributeAccessIssue]
    assert "Thm 3.6; Thm 5.2, claimed" in below
    entries = [entry.get_text().replace("\n", " ") for entry in figure.legends[0].get_texts()]
    assert entries == [
        "central, (ε, δ): Counter weights",
        "central, ε: SVT restarts",
        tracking_orders.ORDER_LABEL,
        "uniform play",
    ]


def test_losses_above_one_name_the_option_of_their_scale():
    with pytest.raises(
        ValueError, match=r"losses must be in \[0, 2\], got 3; --scale is the entry that counts as loss 1"
    ):
        tracking_your_losses.tracking_your_losses(
            np.array([[0.0, 3.0], [2.0, 1.0]]), scale=2.0, num_switches=1, key=jax.random.key(0)
        )
    with pytest.raises(ValueError, match="scale must be > 0, got nan"):
        tracking_your_losses.tracking_your_losses(np.zeros((3, 2)), scale=math.nan, key=jax.random.key(0))


@pytest.fixture(scope="module")
def yours(tmp_path_factory):
    """Makes losses: expert 0 is right in the first half, expert 1 in the second; a third is wrong all the time."""
    path = tmp_path_factory.mktemp("losses") / "mine.csv"
    rows = ["first,second,third", *["0,4,4"] * 200, *["4,0,4"] * 200]
    path.write_text("\n".join(rows))
    learners = ["mirror_descent", "limited_updates"]
    study = tracking_your_losses.STUDY.bind(
        path=path, scale=4.0, num_switches=1, epsilon=[0.1, math.inf], learner=learners, num_seeds=5
    )
    assert isinstance(study, BoundStudy)
    return study, study.simulate()


def test_your_losses(yours):
    study, results = yours
    assert float(results.uniform_loss) == pytest.approx(400 * 2 / 3)
    np.testing.assert_array_equal(results.best_sequence_loss, 0)
    np.testing.assert_array_equal(results.best_loss, 200)
    np.testing.assert_allclose(results.gained, 1 - results.loss / results.uniform_loss, atol=1e-6)
    assert tracking_your_losses.best_expert_share(results) == pytest.approx(0.25)
    text = study.report(results)
    assert "uniform play 267, of the best expert 200, of the best sequence of at most 1 switches 0" in text
    assert re.search(r"ε = ∞ \(no privacy\): Mirror descent\n", text)
    alone = study.report(results.isel(seed=[0]))
    assert "no verdict: at least 5 seeds are needed, got 1." in alone
    few = study.report(results.isel(seed=range(4)))
    assert "no verdict: at least 5 seeds are needed, got 4." in few, "by chance, two outcomes agree in all seeds"
    assert "Mirror descent (not shown to lose more: Limited updates)" in alone
    assert re.search(r"central, \(ε, δ\): Mirror descent +ε = ∞ \(no privacy\)\n", text)
    assert re.search(r"Limited updates +none of these", text)
    assert "not private" in text
    figure = study.figure(results)
    FigureCanvasAgg(figure).draw()
    assert results.attrs["privacy"] == tracking_your_losses.NOT_PRIVATE


def test_losses_of_one_round_have_no_switches():
    assert LEARNERS["counter_weights"](2, 1, 0).horizon == 1


def test_losses_with_nothing_to_gain():
    results = tracking_your_losses.tracking_your_losses(
        np.ones((30, 2)), epsilon=[1.0], learner=["limited_updates"], num_switches=0, num_seeds=5, key=jax.random.key(3)
    )
    assert bool(results.gained.isnull().all())
    assert "nothing to gain" in tracking_your_losses.report(results)
    FigureCanvasAgg(tracking_your_losses.figure(results)).draw()


def test_separation():
    results = tracking_separation.tracking_separation(
        ratio=[1.0, 100.0],
        learner=["mirror_descent"],
        horizon=[400],
        num_switches=4,
        num_seeds=3,
        key=jax.random.key(3),
    )
    assert results.regret_a_round.dims == ("learner", "adversary", "horizon", "ratio", "seed")
    np.testing.assert_allclose(results.epsilon, [[0.1, 10.0]])
    np.testing.assert_allclose(results.regret_a_round, results.dynamic_regret / results.horizon)
    text = tracking_separation.report(results)
    assert text.count("Mirror descent") == 2
    assert "Runs outside these conditions do not confirm the theorem" in " ".join(text.split())
    figure = tracking_separation.figure(results)
    FigureCanvasAgg(figure).draw()
    assert [panel.get_title() for panel in figure.axes[:2]] == list(tracking_separation.LABELS.values())
    order = figure.axes[1].get_lines()[-1]
    at = np.asarray(order.get_xdata(), float)
    np.testing.assert_allclose(
        np.asarray(order.get_ydata(), float), theory.adaptive_lower(at * 0.1, 400, 4) / 400, rtol=1e-9
    )
    assert float(at[0]) == pytest.approx(1.0)
    assert tracking_separation.threshold(np.array([1e-3]), 400, 4) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learner": ["hedge"]}, r"learner must be one of exponential_weights, .*, got 'hedge'"),
        ({"adversary": ["nice"]}, r"adversary must be one of shifting, .*, got 'nice'"),
        ({"horizon": []}, r"horizon must have at least one value, got none"),
        ({"horizon": [1]}, r"horizon must be an integer >= 2, got 1"),
        ({"num_switches": [-1]}, r"num_switches must be an integer >= 0, got -1"),
        ({"num_switches": [2, 50]}, r"num_switches must be < horizon = 50, got 50"),
        ({"num_experts": [1]}, r"num_experts must be an integer >= 2, got 1"),
        ({"gap": 0.6}, r"gap must be in \(0, 1/2\], got 0.6"),
        ({"gap": math.nan}, r"gap must be > 0, got nan"),
        ({"epsilon": [0.0]}, r"epsilon must be > 0, got 0.0"),
        ({"delta": 0.0}, r"delta must be in \(0, 1\), got 0.0"),
        (
            {"adversary": ["lower_bound"], "num_switches": [10]},
            r"num_switches must be < num_experts = 10 with lower_bound",
        ),
    ],
)
def test_errors(values, message):
    with pytest.raises(ValueError, match=message):
        tracking_regret.tracking_regret(
            **{
                "learner": ["mirror_descent"],
                "horizon": [50],
                "num_switches": [2],
                "num_seeds": 2,
                "key": jax.random.key(3),
                **values,
            }
        )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ratio": [0.0]}, r"ratio must be > 0, got 0.0"),
        ({"ratio": [math.nan]}, r"ratio must be > 0, got nan"),
        ({"num_switches": 0}, r"num_switches must be an integer >= 1, got 0"),
        ({"gap": 0.6}, r"gap must be in \(0, 1/2\], got 0.6"),
    ],
)
def test_errors_of_separation(values, message):
    with pytest.raises(ValueError, match=message):
        tracking_separation.tracking_separation(**{"horizon": [50], "key": jax.random.key(3), **values})


@pytest.mark.parametrize(
    ("losses", "values", "message"),
    [
        (np.full((5, 2), 2.0), {}, r"losses must be in \[0, 1\]"),
        (np.full((5, 2), np.nan), {}, r"losses must be"),
        (np.zeros(5), {}, r"losses must be \[horizon, num_experts\]"),
        (np.zeros((5, 2)), {"num_switches": 5}, r"num_switches must be < horizon = 5, got 5"),
        (np.zeros((5, 2)), {"learner": ["best"]}, r"learner must be one of .*, got 'best'"),
    ],
)
def test_errors_of_your_losses(losses, values, message):
    with pytest.raises(ValueError, match=message):
        tracking_your_losses.tracking_your_losses(
            losses, **{"num_switches": 1, "num_seeds": 5, "key": jax.random.key(3), **values}
        )
