"""Output and files of the commands, on small made-up results and tables."""

import re

import jax
import numpy as np
import pytest
import scipy.stats
import xarray as xr

from jaxdp.mechanisms import analytic_gaussian
from jaxdp.preferences import Ballots, baseball1987, read_comparisons, write_ballots
from jaxdp.studies import private_policy, private_ranking, ranking_report, reward_estimation
from jaxdp.studies.central_noise import describe_noise, merge_noises, with_noise
from jaxdp.studies.command import convergence_notes, mean_and_half_width
from jaxdp.studies.output import save
from jaxdp.studies.tables import columns
from tests.plotting.made_up import below

SHARE = re.compile(r"([\d.]+)% \(([\d.]+)% to ([\d.]+)%\)")
CELL = re.compile(r"(-?[\d.]+|nan) \+- ([\d.]+|nan)")


def reward_results():
    coords = {
        "estimator": ["mle", "debiased_rr"],
        "epsilon": [1.0, np.inf],
        "num_features": [5],
        "num_samples": [100, 10000],
    }
    sizes = (2, 2, 1, 2, 4)
    values = np.random.default_rng(0).gamma(2.0, size=sizes)
    values[1, 0] *= 1000  # cells of different widths
    dims = (*coords, "seed")
    ones = xr.DataArray(np.ones(sizes), coords, dims)
    errors = xr.DataArray(values, coords, dims)
    return xr.Dataset({"l2_error": errors, "certificate": 1e-6 * ones, "converged": ones.astype(bool)})


def ranked(tmp_path, rows, **options):
    path = tmp_path / "games.csv"
    path.write_text("winner,loser,weight\n" + "\n".join(rows))
    table = read_comparisons(path)
    options = {"epsilon": [1.0], "num_seeds": 2, "key": jax.random.key(0), **options}
    return table, private_ranking.private_ranking(table, **options)


def test_reward_table_holds_the_numbers_of_the_dataset():
    results = reward_results()
    mean, half = mean_and_half_width(results.l2_error)
    lines = reward_estimation.table(results).splitlines()
    start = lines.index("l2 error, d = 5, ε = 1, n =")
    header, first, second = lines[start + 1 : start + 4]
    for line, name in ((first, "mle"), (second, "debiased_rr")):
        assert line.startswith(name)
        cells = [(float(a), float(b)) for a, b in CELL.findall(line)]
        point = {"estimator": name, "epsilon": 1.0, "num_features": 5}
        np.testing.assert_allclose(cells, np.stack([mean.sel(point), half.sel(point)], axis=1), atol=5.1e-5)
        ends = [match.end() for match in CELL.finditer(line)]
        assert ends == [match.end() for match in re.finditer(r"[\d,]+", header)]
    assert header.split() == ["100", "10,000"]


def test_ranking_table_holds_the_numbers_of_the_dataset():
    results = private_ranking.private_ranking(baseball1987(), epsilon=[1.0, 4.0], num_seeds=3, key=jax.random.key(0))
    lines = ranking_report.ranking(results).splitlines()
    abilities = results.ability.sel(estimator="mle").isel(epsilon=0, seed=0)
    best = next(line for line in lines if line.split()[:2] == ["1", "Milwaukee"])
    assert float(best.split()[-1]) == pytest.approx(float(abilities.max() - abilities.min()), abs=6e-4)
    mean, half = mean_and_half_width(results.agreement)
    lines = ranking_report.table(results).splitlines()
    assert results.noise.values.tolist() == ["k_norm", "k_norm"]
    central = {1.0: "objective_perturbation_k_norm", 4.0: "objective_perturbation_k_norm"}  # the part shown there
    assert lines[-3].split() == ["objective_perturbation:", "first", "tau", "debiased_rr:", "first", "tau"]
    for line, epsilon in zip(lines[-2:], (1.0, 4.0), strict=True):
        assert line.startswith(f"ε = {epsilon:g} ")
        cells = [(float(a), float(b)) for a, b in CELL.findall(line)]
        point = {"estimator": [central[epsilon], "debiased_rr"], "epsilon": epsilon}
        np.testing.assert_allclose(cells, np.stack([mean.sel(point), half.sel(point)], axis=1), atol=6e-4)
        for name, text in zip(point["estimator"], SHARE.findall(line), strict=True):
            first = int((results["rank"].sel(estimator=name, item="Milwaukee", epsilon=epsilon) == 1).sum())
            limits = scipy.stats.binomtest(first, 3).proportion_ci(0.95, method="exact")
            expected = [first / 3, limits.low, limits.high]
            np.testing.assert_allclose([float(number) / 100 for number in text], expected, atol=6e-4)


def test_the_noise_of_smaller_predicted_error_is_shown_and_not_the_luckier_one():
    """Makes results in which the noise with the larger predicted error did better."""
    budgets, delta, dim = [1.0, 0.1, 4.0, 0.3, np.inf], 1e-3, 5
    predicted = [(dim + 1) / epsilon**2 < analytic_gaussian(epsilon, delta) ** 2 for epsilon in budgets]
    assert predicted == [True, False, True, False, False]
    errors = np.ones((4, 5, 3)) * np.array([[[0.1]], [[1]], [[2]], [[3]]])  # dimensions estimator, epsilon, seed
    errors[2, ~np.array(predicted)] = 0.5  # K-norm noise is the luckier one here
    names = ["mle", "central", "central_k_norm", "local"]
    coords = {"estimator": names, "epsilon": budgets, "delta": delta}
    results = xr.Dataset({"error": (("estimator", "epsilon", "seed"), errors), "kept": ("epsilon", budgets)}, coords)
    results = with_noise(results, dim)
    assert results.noise.values.tolist() == ["k_norm", "gaussian", "k_norm", "gaussian", "none"]
    found = merge_noises(results)
    assert found.estimator.values.tolist() == ["mle", "central", "local"]
    assert found.error.dims == results.error.dims
    np.testing.assert_array_equal(found.error.sel(estimator="central", seed=0), [2, 1, 2, 1, 1])
    np.testing.assert_array_equal(found.error.isel(estimator=[0, 2]), results.error.isel(estimator=[0, 3]))
    np.testing.assert_array_equal(found.kept, budgets)
    luckier = results.error.sel(estimator=["central", "central_k_norm"]).mean("seed").min("estimator")
    assert (found.error.sel(estimator="central", seed=0) > luckier)[:4].all()
    xr.testing.assert_identical(merge_noises(found), found)
    text = (
        "Central noise, chosen by smaller predicted error: Gaussian (δ = 0.001) at ε = 0.1, 0.3; K-norm (pure ε-DP) at"
    )
    assert describe_noise(results) == describe_noise(found) == f"{text} ε = 1, 4."
    assert describe_noise(results.isel(epsilon=[4])) == ""


def survivals(rows, epsilons):
    """Makes a dataset for `survival`: hits out of 100 for every estimator and epsilon."""
    hits = np.array([[100] * len(epsilons), *rows])
    values = (np.arange(100) < hits[..., None]).astype(float)
    coords = {"estimator": ["none", *"ab"[: len(rows)]], "epsilon": list(epsilons), "item": ["x", "y"]}
    rank = np.broadcast_to(np.array([2.0, 1.0])[:, None], (len(hits), len(epsilons), 2, 100))
    return xr.Dataset(
        {
            "survival": (("estimator", "epsilon", "seed"), values),
            "rank": (("estimator", "epsilon", "item", "seed"), rank),
            "ability": (("estimator", "epsilon", "item", "seed"), -rank),
        },
        coords,
    )


def test_from_which_epsilon_on_the_winner_survives():
    text = ranking_report.survival(survivals([[94, 96, 99, 100], [99, 94, 99, 90]], [0.5, 1.0, 2.0, np.inf]))
    assert text.splitlines() == [
        "y comes first at least 95% of the time, over privacy noise only",
        "  a: only at ε = ∞ with 95% confidence; by the point estimate from ε = 1 on, where it is 96.0% (90.1% to"
        " 98.9%).",
        "  b: not at any ε of the grid.",
    ]
    text = ranking_report.survival(survivals([[0, 95], [100, 100]], [1.0, 2.0]).isel(epsilon=[1, 0]))  # any order
    luck = "by the point estimate from ε = 2 on, where it is 95.0% (88.7% to 98.4%)."
    assert f"  a: not at any ε of the grid with 95% confidence; {luck}" in text
    assert "  b: from ε = 1 on with 95% confidence, where it is 100.0% (96.4% to 100.0%)." in text
    failed = survivals([[100, 100], [100, 100]], [1.0, 2.0])
    failed["survival"][1, 1, 7] = np.nan
    assert "  a: not at any ε of the grid." in ranking_report.survival(failed)


@pytest.mark.parametrize(("seeds", "is_enough"), [(4, False), (71, False), (72, True)])
def test_too_few_seeds_say_nothing_of_who_survives(seeds, is_enough):
    """Not even 71 of 71 show 95%."""
    text = ranking_report.survival(survivals([[100, 100]], [1.0, 2.0]).isel(seed=slice(seeds)))
    assert ("from ε = 1 on with 95% confidence" in text) == is_enough
    assert (f"no verdict: at least 72 seeds are needed, got {seeds}." in text) != is_enough
    assert ("not at any" in text) is False


VOTES = Ballots(("x", "y", "z"), (((0,), (1,), (2,)), ((1,),), ((1,), (0,))), (60, 30, 10))


def test_ballots():
    results = private_ranking.private_ranking(VOTES, epsilon=[1.0, np.inf], num_seeds=3, key=jax.random.key(0))
    central = "ballot_objective_perturbation"
    assert results.estimator.values.tolist() == ["ballot_mle", central, f"{central}_k_norm", "ballot_rr"]
    assert results.noise.values.tolist() == ["k_norm", "none"]  # in two dimensions
    assert results.ability.dims == ("estimator", "epsilon", "item", "seed")
    np.testing.assert_array_equal(
        results.survival, (results["rank"].sel(item="x") == 1).transpose("estimator", "epsilon", "seed")
    )
    clear = results.ability.sel(epsilon=np.inf)
    np.testing.assert_allclose(clear.sel(estimator="ballot_rr"), clear.isel(estimator=1), atol=1e-3)
    text = ranking_report.report(results, VOTES)
    assert text.startswith("3 items, 100 ballots")
    assert "The private estimators protect one whole ballot.\nCentral noise" in text
    assert "K-norm (pure ε-DP) at ε = 1." in text
    assert "Gaussian" not in text
    assert "δ" not in text
    assert "note: for a pair" not in text
    private_ranking.survival_figure(results)


def test_a_winner_that_half_wins_would_not_have_is_told():
    """Makes six ballots that rank x over y alone; z beats y often, and is never compared with x."""
    votes = Ballots(("x", "y", "z"), (((0,), (1,)), ((2,), (1,)), ((1,), (2,))), (6, 90, 10))
    results = private_ranking.private_ranking(votes, epsilon=[np.inf], num_seeds=1, key=jax.random.key(0))
    winner = results["item"].values[int(results["rank"].isel(estimator=0, epsilon=0, seed=0).argmin("item"))]
    assert winner == "x"
    assert np.all(results.survival.isel(estimator=[1, 2, 3]) == 0)
    text = ranking_report.report(results, votes)
    assert "Counted this way, first is z and not x, even without noise" in text
    assert "0 of 106 ballots rank one item." in text
    assert "It is x, but with --unranked last, as elections count ballots,\nit is z, by" in text
    assert "protect one whole ballot.\nOver 1 seed" in text  # no privacy, and so no noise to report


PLUMP = Ballots(("A", "B"), (((0,),), ((1,), (0,)), ((0,), (1,))), (6, 3, 1))  # six rank A alone


@pytest.mark.parametrize(
    ("unranked", "silent", "first", "lead", "other", "behind"),
    [("unknown", 6, "B", np.log(3), "A", np.log(7 / 3)), ("last", 0, "A", np.log(7 / 3), "B", np.log(3))],
)
def test_the_report_says_who_is_first_the_other_way(unranked, silent, first, lead, other, behind):
    clear = without_privacy([0.0, lead] if first == "B" else [lead, 0.0], items="AB")
    assert f"   1  {first}  {lead:.3f}" in ranking_report.ranking(clear)
    text = ranking_report.other_reading(clear, PLUMP, unranked)
    assert text.startswith("\n6 of 10 ballots rank one item. With --unranked ")
    assert f"With --unranked {unranked}, {silent} of 10 state no preference." in text
    assert f"It is {first}, but with --unranked" in text
    assert text.endswith(f"\nit is {other}, by {behind:.3f} log odds.")


def test_pairs_of_ballots_keep_their_ballots(tmp_path):
    write_ballots(PLUMP, tmp_path / "plump.soi")
    pairs = private_ranking.election(ballots=tmp_path / "plump.soi", unit="pair")
    assert isinstance(pairs, ranking_report.BallotTable)
    assert pairs.ballots == PLUMP
    assert (pairs.wins.tolist(), pairs.totals.tolist()) == ([1], [4])


def test_the_other_reading_is_left_out_where_there_is_none():
    """Omits it for complete ballots.

    It is no warning where the first is the same, or the other way connects no items.
    """
    complete = Ballots(("A", "B"), (((0,), (1,)), ((1,), (0,))), (6, 3))
    clear = without_privacy([1.0, 0.0, -1.0])
    assert ranking_report.other_reading(clear, complete, "unknown") == ""
    same = Ballots(("x", "y", "z"), (((0,),), ((0,), (1,), (2,)), ((2,), (1,), (0,))), (6, 3, 1))
    text = ranking_report.other_reading(clear, same, "unknown")
    assert text.endswith("6 of 10 state no preference. x comes first with --unranked last, too.")
    alone = Ballots(("x", "y", "z"), (((0,),), ((1,),)), (6, 3))
    assert ranking_report.other_reading(clear, alone, "last").endswith(
        "With --unranked unknown they do not connect all items."
    )


def without_privacy(abilities, items="xyz"):
    """Makes results for `notes`: one estimate without privacy."""
    ability = np.array(abilities, float)
    rank = 1.0 + np.argsort(np.argsort(-ability))
    cell, dims = (1, 1, 1, len(ability)), ("estimator", "epsilon", "seed", "item")
    values = {"ability": (dims, ability.reshape(cell)), "rank": (dims, rank.reshape(cell))}
    solver = {"certificate": (dims[:3], np.zeros(cell[:3])), "converged": (dims[:3], np.ones(cell[:3], bool))}
    return xr.Dataset({**values, **solver}, {"item": list(items), "radius": np.inf})


def test_an_order_that_half_wins_would_not_give_is_told():
    """Makes ballots in which x is first either way; y beats z where a ballot compares them; z has more wins over x."""
    votes = Ballots(("x", "y", "z"), (((0,), (1,)), ((0,), (2,)), ((1,), (2,)), ((2,), (0,))), (40, 1, 1, 3))
    (note,) = ranking_report.notes(votes, without_privacy([2.0, 1.0, 0.0]))
    assert "Counted this way, the order is x, z, y, even without noise" in note
    assert "tau with the ranking above is below 1" in note
    assert ranking_report.notes(votes, without_privacy([2.0, 0.0, 1.0])) == []
    tied = Ballots(("x", "y", "z"), (((0,), (1,), (2,)), ((0,), (2,), (1,))), (5, 5))
    (note,) = ranking_report.notes(tied, without_privacy([2.0, 1.0, 0.0]))
    assert "Counted this way, the order is x, y = z, even without noise" in note
    assert ranking_report.notes(tied, without_privacy([2.0, 1.0, 1.0])) == []  # tied without privacy as well


def test_columns_align():
    assert columns([["", "n"], ["long name", "1.25"], ["a", "10.25"]]) == [
        "               n",
        "long name   1.25",
        "a          10.25",
    ]


def test_kendall_tau_against_scipy():
    rng = np.random.default_rng(0)
    for count in (2, 3, 7, 20):
        ranks = np.stack([rng.permutation(count) + 1 for _ in range(10)]).astype(float)
        reference = rng.permutation(count) + 1
        tau = private_ranking.kendall_tau(
            xr.DataArray(ranks, dims=("seed", "item")), xr.DataArray(reference, dims="item")
        )
        expected = np.array([scipy.stats.kendalltau(row, reference)[0] for row in ranks], float)
        np.testing.assert_allclose(tau, expected, atol=1e-12)
    ranks[3, 0] = np.nan
    tau = private_ranking.kendall_tau(xr.DataArray(ranks, dims=("seed", "item")), xr.DataArray(reference, dims="item"))
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(tau)), [3])


def test_an_item_that_never_lost_lies_on_the_bound(tmp_path):
    table, results = ranked(tmp_path, ["a,b,5", "a,c,3", "b,c,2", "c,b,1"])
    assert float(results.radius) == pytest.approx(3 * np.sqrt(3))
    text = ranking_report.report(results, table)
    assert "lie on the bound (norm 5.196, radius 5.196)" in text
    assert re.search(r"   1  a  [\d.]+  never lost: only the bound \(--radius\) limits its ability\n", text)
    assert "never won" not in text
    table, results = ranked(tmp_path, ["a,b,5", "b,a,3"], radius=10.0)
    text = ranking_report.report(results, table)
    assert "note" not in text
    assert "never" not in text


def test_groups_that_were_never_compared_are_not_ranked(tmp_path):
    """Checks groups between which only rounding would decide."""
    rows = ["a,b,5", "b,a,3", "x,y,5", "y,x,4"]
    message = "got 2 groups that were never compared with one another, {a, b}, {x, y}: rank each group separately"
    with pytest.raises(ValueError, match=re.escape(f"table must connect all items by comparisons, {message}")):
        ranked(tmp_path, rows)
    with pytest.raises(ValueError, match=r"got 2 groups .* {a, b, c}, {z}"):  # known by a weight of 0 alone
        ranked(tmp_path, ["a,b,5", "b,c,3", "z,a,0"])
    votes = Ballots(("a", "b", "x", "y"), (((0,), (1,)), ((2,), (3,)), ((3,), (2,))), (3, 1, 2))
    with pytest.raises(ValueError, match=r"ballots must connect .* {x, y}: unranked=\"last\" \(--unranked last\)"):
        private_ranking.private_ranking(votes, epsilon=[1.0], num_seeds=1, key=jax.random.key(0))


def test_default_bound_does_not_distort_a_large_table(tmp_path):
    abilities = np.linspace(-3, 3, 30)  # norm 9.8, beyond a bound of 5
    games = [(i, j) for i in range(30) for j in range(i + 1, 30) if j - i < 5]
    rows = []
    for i, j in games:
        wins = round(2000 / (1 + np.exp(abilities[j] - abilities[i])))
        rows += [f"{i},{j},{wins // 20}", f"{j},{i},{(2000 - wins) // 20}"]
    table, results = ranked(tmp_path, rows, num_seeds=1)
    found = results.ability.sel(estimator="mle").isel(epsilon=0, seed=0)
    assert float(np.linalg.norm(found)) > 9
    assert not [note for note in ranking_report.notes(table, results) if "bound" in note]


def test_failed_fits_count_as_unconverged_and_sgd_does_not():
    results = reward_results()
    assert convergence_notes(results) == []
    results["certificate"][0, 0, 0, 0, 0] = np.nan
    results["converged"][0, 0, 0, 0, 0] = False
    results["certificate"][1] = np.inf
    results["converged"][1] = False
    (note,) = convergence_notes(results)
    assert "1 of 16 minimisations stopped before they converged" in note
    assert "1 of them failed" in note
    assert note in reward_estimation.report(results)
    results["certificate"][:] = np.inf
    assert convergence_notes(results) == []


def test_failed_fits_show_in_the_tables():
    results = reward_results()
    results["l2_error"][0, 0, 0, 0, 2] = np.nan
    line = next(line for line in reward_estimation.table(results).splitlines() if line.startswith("mle"))
    assert "nan +- nan" in line


def test_the_data_is_safe_before_the_figure_is_drawn(tmp_path):
    results = reward_results()

    def broken(dataset):
        assert (tmp_path / "data.zarr").exists()
        raise ZeroDivisionError

    with pytest.raises(RuntimeError, match=re.escape(str(tmp_path / "data.zarr"))):
        save(results, broken, tmp_path)
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "data.zarr").load().l2_error, results.l2_error)


def policy_results(epsilon=1.0):
    """Makes results of `private_policy`: three estimators (one has two noises), two sizes, four seeds."""
    policies = ["greedy", "pessimistic", "pessimistic_per_state", "reference"]
    names = ["mle", "objective_perturbation", "objective_perturbation_k_norm", "debiased_rr"]
    coords = {"estimator": names, "policy": policies, "epsilon": [epsilon], "num_samples": [100, 10000]}
    single = {"num_features": 5, "delta": 1e-3, "failure_prob": 0.1, "curvature": 0.25}
    sizes = (4, 4, 1, 2, 4)
    lost = xr.DataArray(np.random.default_rng(0).gamma(2.0, size=sizes), coords, (*coords, "seed"))
    ones = xr.ones_like(lost).isel(policy=0, drop=True)
    scalars = {"gap": 1e-3 * ones, "certificate": 1e-6 * ones, "covered": ones > 0, "converged": ones > 0}
    return with_noise(xr.Dataset({"suboptimality": lost, **scalars}).assign_coords(single), 5)


@pytest.mark.parametrize(("epsilon", "orders"), [(1.0, 2), (0.1, 3)])
def test_orders_are_drawn_for_greedy_policies_alone(epsilon, orders):
    """Checks that 2L times the l2 error bounds a greedy policy's loss alone; K-norm noise has no theorem."""
    figure = private_policy.figure(policy_results(epsilon))
    dotted = [[line for line in panel.lines if line.get_marker() == "None"] for panel in figure.axes]
    assert [len(lines) for lines in dotted] == [orders, 0, 0]
    assert {1.0: "K-norm (pure ε-DP) at ε = 1.", 0.1: "Gaussian (δ = 0.001) at ε = 0.1."}[epsilon] in below(figure)


def test_confidence_sets_that_failed_are_told():
    results = policy_results()
    text = private_policy.report(results)
    assert "Central noise, chosen by smaller predicted error: K-norm (pure ε-DP) at ε = 1." in text
    assert "objective_perturbation_k_norm" not in text
    assert "contain the true parameter in 100% to 100% of the seeds" in text
    assert "note" not in text
    results["gap"][0, 0, 0, 1:] = np.nan
    results["covered"][0, 0, 0, 1:] = False
    text = private_policy.report(results)
    assert "contain the true parameter in 100% to 100% of the seeds" in text  # of those with a set
    assert "within 0.001 of the largest one" in text
    assert "note: 3 of 24 confidence sets failed, and pessimistic policies are NaN there" in text
    results["gap"][:] = np.nan
    text = private_policy.report(results)
    assert "note: 24 of 24 confidence sets failed" in text
    assert "contain the true parameter" not in text
    assert "within" not in text
