"""The release of one private ranking: its output and secrets, its key, refusals, and intervals."""

import dataclasses
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.__main__ import main
from jaxdp.estimation import confidence_set, estimate, mle, objective_perturbation
from jaxdp.preferences import Ballots, baseball1987
from jaxdp.preferences.ballots import pair_features
from jaxdp.preferences.models import sample_comparisons
from jaxdp.studies import ranking_release as module
from jaxdp.studies.ranking_release import least_curvature, ranking_release, release_key, release_report

DTYPE = jax.dtypes.canonicalize_dtype(float)
RELEASE = ("run", "private-ranking", "--release")


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs the command line in an empty folder; returns the exit code, the output, and the folder's files."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["jaxdp", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        return stopped.value.code, printed.out, printed.err, sorted(path.name for path in tmp_path.rglob("*"))

    return run


def table(path, first, second):
    """Makes two tables with the same pairs as often; they differ only in who won, and so is first in a line."""
    lines = [f"ann,bob,{first}", f"bob,ann,{9 - first}", f"cy,bob,{second}", f"bob,cy,{7 - second}", "ann,cy,3"]
    path.write_text("winner,loser,weight\n" + "\n".join(lines) + "\n")


def test_it_prints_one_private_ranking_and_leaves_nothing(command):
    code, out, err, files = command(*RELEASE, "--epsilon", "1")
    assert code == 0, err
    assert files == []
    assert "7 items: pure 1-differential privacy, central model" in out
    assert "Private: the outcome of one comparison." in out
    assert "273 comparisons" in out
    assert "Pairs with an interval that excludes 0:" in out
    assert "WARNING" not in out
    assert len(re.findall(r"-?[\d.]+ \(-?[\d.]+ to -?[\d.]+\)", out)) == 2 * 6
    for absent in ("Without privacy", "survive", "Clopper", "tau", "data:", "figure:"):
        assert absent not in out
    again = command(*RELEASE, "--epsilon", "1")[1]
    assert again != out  # no default seed: it would be no privacy at all


def test_nothing_but_the_noisy_statistic_reads_who_won(command, tmp_path, monkeypatch):
    table(tmp_path / "one.csv", 8, 2)
    table(tmp_path / "two.csv", 1, 6)
    seeded = (*RELEASE, "--epsilon", "1", "--seed", "3", "--comparisons")
    one, two = (command(*seeded, name) for name in ("one.csv", "two.csv"))
    assert one[0] == two[0] == 0
    assert one[1] != two[1]

    def deaf(**options):
        return objective_perturbation(**options)._replace(
            privatize=lambda key, params, features, labels: jnp.full(features.shape[1], 1.5, features.dtype)
        )

    monkeypatch.setattr(module, "objective_perturbation", deaf)
    one, two = (command(*seeded, name) for name in ("one.csv", "two.csv"))
    assert one[0] == 0, one[2]
    assert one == two


def test_a_malformed_file_is_not_quoted(command, tmp_path):
    (tmp_path / "bad.csv").write_text("winner,loser\nsecret,secret\n")
    code, out, err, _ = command(*RELEASE, "--epsilon", "1", "--comparisons", "bad.csv")
    assert (code, out) == (2, "")
    assert "bad.csv must be a valid file" in err
    assert "secret" not in err
    assert "secret" in command("run", "private-ranking", "--comparisons", "bad.csv")[2]


VOTES = "\n".join(
    ["# DATA TYPE: soi", "# NUMBER ALTERNATIVES: 3", "# NUMBER VOTERS: 9", "# NUMBER UNIQUE ORDERS: 2"]
    + [f"# ALTERNATIVE NAME {i}: {name}" for i, name in enumerate(("alpha", "beta", "gamma"), 1)]
    + ["6: 1,2,3", "3: 2,1", ""]
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "epsilon must be given once with --release, got none"),
        (["--epsilon", "1", "--epsilon", "2"], "epsilon must be given once with --release, got 1, 2"),
        (["--epsilon", "inf"], "epsilon must be finite, got inf"),
        (["--epsilon", "0"], "epsilon must be > 0, got 0.0"),
        (["--epsilon", "1", "--seeds", "5"], "seeds must be left out with --release, which draws once, got 5"),
        (["--epsilon", "1", "--out", "x"], "out must be left out if only text is printed, got x"),
        (["--epsilon", "1", "--radius", "inf"], "radius must be finite, got inf"),
        (["--epsilon", "1", "--delta", "1"], "delta must be in (0, 1), got 1.0"),
        (["--epsilon", "1", "--seed", "-1"], "seed must be in [0, 2**32), got -1"),
        (
            ["--epsilon", "1", "--ballots", "votes.soi"],
            "--ballots must be comparisons for a release, as ballot_objective_",
        ),
        (
            ["--epsilon", "1", "--comparisons", "apart.csv"],
            "--comparisons must connect all items by comparisons, got 2 groups",
        ),
    ],
)
def test_refusals(arguments, message, command, tmp_path):
    (tmp_path / "votes.soi").write_text(VOTES)
    (tmp_path / "apart.csv").write_text("winner,loser\na,b\nc,d\n")
    code, out, err, files = command(*RELEASE, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert files == ["apart.csv", "votes.soi"]


@pytest.mark.parametrize(("epsilon", "noise"), [(1.0, "gaussian"), (4.0, "k_norm")])
def test_the_claim_is_that_of_the_noise_which_is_predicted_to_be_smaller(epsilon, noise):
    """Checks that 7 items at δ = 0.001 get K-norm noise from ε = 1.2 or so on."""
    released = ranking_release(baseball1987(), epsilon=epsilon, delta=1e-3, key=jax.random.key(0))
    assert released.noise.item() == noise
    text = release_report(released, fresh=True, of_ballots=False)
    if noise == "gaussian":
        assert "7 items: (1, 0.001)-differential privacy, central model." in text
        assert (
            "one noisy statistic:\nGaussian noise, which has the smaller predicted error here. δ is 0.27 / number"
            in text
        )
    else:
        assert "7 items: pure 4-differential privacy, central model." in text
        assert (
            "one noisy statistic:\nK-norm noise, which has the smaller predicted error here; it needs no δ.\n\n" in text
        )
        assert "0.001" not in text


@pytest.mark.parametrize("delta", [0.5, 1e-2, 1e-3])
def test_a_large_delta_is_warned_of_as_loudly_as_a_seed(delta):
    """Checks that for 273 comparisons 1e-3 is below one over their number."""
    released = ranking_release(baseball1987(), epsilon=0.01, delta=1e-3, key=jax.random.key(0))
    assert released.noise.item() == "gaussian"
    text = release_report(released.assign_coords(delta=delta), fresh=True, of_ballots=False)
    assert ("WARNING: δ = " in text) == (delta > 1 / 273)
    if delta > 1 / 273:
        assert "is above 1 / number of comparisons, 0.0037:" in text


def test_the_default_delta_falls_with_the_number_of_comparisons():
    assert [module.default_delta(count) for count in (1, 273, 10**4, 10**6)] == pytest.approx([1e-6, 1e-6, 1e-6, 1e-9])
    assert all(module.default_delta(count) * count < 0.011 for count in (10**digits for digits in range(9)))
    released = ranking_release(baseball1987(), epsilon=0.001, key=jax.random.key(0))
    assert (released.noise.item(), float(released.delta)) == ("gaussian", 1e-6)


def test_a_store_is_refused(command):
    code, _, err, files = command("sweep", "private-ranking", "--release", "--epsilon", "1", "--store", "s.zarr")
    assert code == 2
    assert "store must be left out if only text is printed (use run), got s.zarr" in err
    assert files == []


def test_ballots_by_pairs(command, tmp_path):
    (tmp_path / "votes.soi").write_text(VOTES)
    code, out, err, files = command(*RELEASE, "--epsilon", "1", "--ballots", "votes.soi", "--unit", "pair")
    assert code == 0, err
    assert files == ["votes.soi"]
    assert "21 comparisons" in out
    assert "A whole ballot makes many comparisons. It is not protected" in out


def test_the_key_is_fresh_or_that_of_a_seed_with_a_warning(monkeypatch):
    one, two = (np.asarray(jax.random.key_data(release_key(None))) for _ in range(2))
    assert not np.array_equal(one, two)
    assert one.size == 2  # all 64 bits: a seed of `jax.random.key` has 32 of them
    monkeypatch.setattr(module.secrets, "token_bytes", lambda count: bytes(range(1, count + 1)))
    np.testing.assert_array_equal(jax.random.key_data(release_key(None)), [0x04030201, 0x08070605])
    assert np.array_equal(jax.random.key_data(release_key(7)), jax.random.key_data(jax.random.key(7)))
    released = ranking_release(baseball1987(), epsilon=1.0, delta=1e-3, key=release_key(7))
    text = release_report(released, fresh=False, of_ballots=False)
    assert "WARNING: the noise was drawn from a given --seed." in text
    assert "--seed 7" not in text  # whoever publishes it all the same does not publish the seed


def test_the_dataset():
    values = {"epsilon": 4.0, "delta": 1e-3, "radius": 5.0}
    released = ranking_release(baseball1987(), **values, key=jax.random.key(2))
    features, labels = baseball1987().design()
    assert (released.noise, released.delta) == ("k_norm", 0)
    plain = objective_perturbation(noise="k_norm", zero_sum=True)
    fit = estimate(plain, features, labels, key=jax.random.key(2), epsilon=4.0, radius=5.0)
    np.testing.assert_allclose(released.ability, fit.theta, atol=1e-5)
    np.testing.assert_array_equal(np.argsort(released["rank"].values), np.argsort(-np.asarray(fit.theta)))
    np.testing.assert_allclose(released.low, -released.high.T, atol=1e-5)
    middle = (released.low + released.high).values / 2
    np.testing.assert_allclose(middle, np.subtract.outer(fit.theta, fit.theta), atol=1e-4)
    assert (np.diag(released.low) == 0).all()
    margins = features @ np.asarray(fit.theta)
    assert float(released.curvature) == pytest.approx(float(1 / (2 + 2 * np.cosh(np.abs(margins).max()))), rel=1e-4)
    assert not released.proved
    proved = ranking_release(baseball1987(), **values, curvature=0.0, key=jax.random.key(2))
    assert proved.proved
    assert float((proved.high - proved.low).max()) > 100  # holds nearly everything
    heuristic = ranking_release(baseball1987(), **values, curvature=0.25, key=jax.random.key(2))
    assert float((heuristic.high - heuristic.low).max()) < float((released.high - released.low).max())
    with pytest.raises(ValueError, match=r"failure_prob must be in \(0, 1\), got 2"):
        ranking_release(baseball1987(), **values, failure_prob=2.0, key=jax.random.key(2))
    with pytest.raises(ValueError, match="data must be comparisons for a release"):
        ranking_release(Ballots(("x", "y"), (((0,), (1,)),), (3,)), **values, key=jax.random.key(2))


def test_the_released_intervals_hold_where_abilities_are_far_apart():
    """Simulates seasons with abilities three times as far apart as 1987's. A curvature of even odds fails the test."""
    features, labels = baseball1987().design()
    truth = 3 * estimate(mle(zero_sum=True), features, labels, key=jax.random.key(0)).theta
    features, directions = jnp.asarray(features, DTYPE), jnp.asarray(pair_features(7), DTYPE)
    estimator, count, radius = objective_perturbation(zero_sum=True), 200, 3 * 7**0.5
    params = estimator.params(epsilon=1.0, delta=1e-3, radius=radius)
    assert estimator.noise is not None
    noise = estimator.noise(params, features)

    def trial(key):
        key_labels, key_privatize, key_fit = jax.random.split(key, 3)
        labels = sample_comparisons(key_labels, jnp.matmul(features, truth, precision="highest"))
        fit = estimator.fit(key_fit, params, features, estimator.privatize(key_privatize, params, features, labels))
        leaves = {name: jnp.asarray(v, DTYPE) for name, v in (("ridge", 0), ("radius", radius), ("failure_prob", 0.05))}
        held = []
        for curvature in (least_curvature(features, fit.theta), jnp.asarray(0.25, DTYPE)):
            found = confidence_set(fit.theta, features, noise, **leaves, curvature=curvature)
            low, high = found.interval(directions)
            held.append(jnp.all((low <= directions @ truth) & (directions @ truth <= high)))
        return jnp.stack(held)

    right, even = np.asarray(jax.jit(jax.vmap(trial))(jax.random.split(jax.random.key(1), count))).mean(axis=0)
    least = 0.95 - 5 * np.sqrt(0.05 * 0.95 / count)
    assert right >= least
    assert even < least


def test_many_comparisons_prove_their_intervals():
    """Uses the curvature along the whole way from the estimate to the border of the set, and so of the truth."""
    small = baseball1987()
    table = dataclasses.replace(small, wins=small.wins * 400, totals=small.totals * 400)
    released = ranking_release(table, epsilon=4.0, delta=1e-3, key=jax.random.key(3))
    assert released.proved
    assert "They are proved." in release_report(released, fresh=True, of_ballots=False)
    assert (released.low > 0).sum() > 10
    features = jnp.asarray(table.design()[0], DTYPE)
    theta = jnp.asarray(released.ability.values, DTYPE)
    least = least_curvature(features, theta)
    plug_in = ranking_release(table, epsilon=4.0, delta=1e-3, curvature=float(least), key=jax.random.key(3))
    assert not plug_in.proved
    wider = (released.high - released.low).max() / (plug_in.high - plug_in.low).max()
    assert float(wider) == pytest.approx(float(least / released.curvature), rel=1e-3)
    assert wider > 1
    # By quadrature of the least curvature over the segment, at the set's border.
    directions = jnp.asarray(pair_features(7), DTYPE)
    reach = np.max(np.asarray(released.high.values - released.low.values)) / 2
    assert np.max(np.abs(directions @ theta)) < 50
    mean = np.mean(float(least) * np.exp(-np.linspace(0, 1, 10_001) * reach))
    assert float(released.curvature) == pytest.approx(mean, rel=2e-2)


def test_the_simulation_says_what_it_is(command):
    code, out, err, _ = command("run", "private-ranking", "--seeds", "2", "--epsilon", "1", "--out", "x")
    assert code == 0, err
    assert "Not private: this output, the figure and the dataset are computed from the private data" in out
    assert out.index("Not private") < out.index("Without privacy")
    assert "The numbers below do not include the sampling error" in out
    assert "comes first at least 95% of the time, over privacy noise only" in out
