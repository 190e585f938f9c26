"""The study of contextual linear bandits: what its texts and figure say, a user's own data, and errors."""

import math
import warnings
from typing import Any

import jax
import numpy as np
import pytest
import scipy.stats
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg

from jaxdp.bandits._uniform_log import _by_all_contexts, _by_own_context
from jaxdp.bandits.contextual import logged_contexts
from jaxdp.studies import ldp_linear as study
from jaxdp.studies import ldp_linear_logged as logged
from jaxdp.studies.declared import BoundStudy
from jaxdp.studies.linear_learners import LEARNERS, are_refused

EPSILONS, DIMS, ROUNDS = [0.5, 1.0, 4.0, 64.0, math.inf], [2, 5], [1000, 10_000, 30_000, 100_000]


def made_up(num_seeds=12):
    """Makes regret that grows as T^(3/4) eps^(-1/2) for local privacy, as T^(1/2) for joint; 2 dimensions learn."""
    coords = {"dim": DIMS, "learner": list(LEARNERS), "epsilon": EPSILONS, "round": ROUNDS, "seed": range(num_seeds)}
    noise = np.random.default_rng(0).uniform(0.99, 1.01, [len(values) for values in coords.values()])
    noise = xr.DataArray(noise, coords, list(coords))
    rounds, budget = noise["round"].astype(float), noise.epsilon
    price = (1 + 4 / budget) ** 0.5
    local = xr.where(np.isinf(budget), rounds**0.5, 3 * rounds**0.75 * budget**-0.5)
    factor = xr.DataArray([2.0, 1.0, 0.5, 1.0], {"learner": list(LEARNERS)}, ("learner",))
    mean = xr.where(noise.learner == "joint", rounds**0.5 * price, local * factor)
    regret = (noise * mean * xr.DataArray([1.0, 9.0], {"dim": DIMS}, ("dim",))).transpose(*coords)
    return (
        xr.Dataset({"pseudo_regret": regret.where(~are_refused(list(LEARNERS), EPSILONS))})
        .assign(uniform_regret=(("dim", "round"), [[0.48 * t for t in ROUNDS]] * 2))
        .assign_coords(delta=1e-5)
        .assign_attrs(num_arms=20)
    )


def numbers(line):
    return [
        float(cell)
        for cell in line.replace("(", " ").replace(")", " ").split()
        if cell.lstrip("-").replace(".", "").isdigit()
    ]


def test_exponents_are_fitted_where_learners_learn():
    results = made_up()
    lines = {line.split("  ")[0]: line for line in study.exponents(results).splitlines()}
    gaussian = numbers(lines["2 dimensions, local: Gaussian reports"].split("reports")[1])
    np.testing.assert_allclose(gaussian[-1], 0.5)
    assert gaussian.count(0.75) >= 1
    joint = numbers(lines["2 dimensions, joint: one counter"].split("counter")[1])
    np.testing.assert_allclose(joint[0], 0.5, atol=0.02)
    assert lines["5 dimensions, local: Gaussian reports"].split("reports")[1].split()[0] == "-"
    assert not study.learning(results).sel(dim=5, learner="gaussian", epsilon=0.5).any()


def test_the_report():
    results = made_up()
    text = study.report(results)
    assert "regret with the published constants / regret, ε = 1" in text
    gains = {line.split("  ")[0]: numbers(line.split("  ", 1)[1]) for line in study.gains(results).splitlines()[2:]}
    np.testing.assert_allclose(gains["local: Gaussian reports"], [2, 2], atol=0.05)
    np.testing.assert_allclose(gains["local: reports on a sphere"], [4, 4], atol=0.1)
    title, _, *rows = study.sufficient_epsilons(results).splitlines()
    assert "within 10% of the non-private regret (local: Gaussian reports, ε = ∞;" in title  # the baseline of every row
    enough = {line.split("  ")[0]: line.split()[-1] for line in rows}
    assert enough["joint: one counter"] == "64"
    assert enough["local: Gaussian reports"] == "these"
    differences = study.differences(results).splitlines()[2]
    assert numbers(differences.replace(",", ""))[1] < 0  # after the dimensions
    assert " - " in study.table(results, 2).splitlines()[2]
    alone = results.sel(learner=["joint"], epsilon=[1.0, 4.0], dim=[2])
    assert "published constants / regret" not in study.report(alone)


@pytest.mark.parametrize(("chosen", "panels"), [({}, 3), ({"dim": [5]}, 2), ({"epsilon": [math.inf]}, 3)])
def test_the_figure(chosen, panels):
    figure = study.figure(made_up(3).sel(chosen))
    FigureCanvasAgg(figure).draw()
    assert len(figure.axes) == panels


def test_uniform_play_is_that_of_simulated_arms():
    for num_arms, dim in ((4, 1), (3, 2), (20, 5)):
        points = np.random.default_rng(0).normal(size=(20_000, num_arms, dim))
        points /= np.linalg.norm(points, axis=2, keepdims=True)
        largest = points[:, :, 0].max(axis=1) / 2
        error = 5 * largest.std() / math.sqrt(len(largest))
        assert study.uniform_regret(num_arms, dim) == pytest.approx(largest.mean(), abs=error + 1e-3)


def test_a_small_run():
    results = study.ldp_linear(
        learner=["paper", "joint"],
        epsilon=[4.0, math.inf],
        dim=[2],
        num_arms=3,
        horizon=100,
        num_seeds=2,
        key=jax.random.key(5),
    )
    assert results.pseudo_regret.dims == ("dim", "learner", "epsilon", "round", "seed")
    missing = np.isnan(results.pseudo_regret)
    assert missing.sel(learner="paper", epsilon=4.0).all()
    assert not missing.sel(learner="joint").any()
    assert study.report(results)


# ---- data of a user's ------------------------------------------------------------------------------------------------
def own_data(is_logged, rounds=60):
    """Makes data in which the first of two arms has the larger rewards."""
    generator = np.random.default_rng(1)
    contexts = np.broadcast_to([[0.8, 0.0], [0.0, 0.8]], (rounds, 2, 2)).astype(np.float32)
    rewards = np.stack([np.full(rounds, 0.9), np.full(rounds, -0.9)], axis=1)
    if not is_logged:
        return {"contexts": contexts, "rewards": rewards}
    actions = generator.integers(0, 2, rounds)
    return {"contexts": contexts, "rewards": rewards[np.arange(rounds), actions], "actions": actions}


@pytest.mark.parametrize("is_logged", [False, True])
def test_data_of_a_user(is_logged, tmp_path):
    path = tmp_path / "own.npz"
    np.savez(path, **own_data(is_logged))
    made = study.STUDY.bind(learner=["joint"], epsilon=[1.0, math.inf], num_seeds=2, path=path)
    assert isinstance(made, BoundStudy)
    results = made.simulate()
    assert results.reward.dims == ("learner", "epsilon", "seed")
    free = results.sel(epsilon=math.inf)
    assert (free.reward > 0.5).all(), "without privacy the better arm is found"
    assert (free.played < 60).all() if is_logged else (free.played == 60).all()
    text = made.report(results)
    assert ("rounds that count" in text) == is_logged
    assert ("over the logged rounds that count" in text) == is_logged
    assert "not private" in text
    FigureCanvasAgg(made.figure(results)).draw()


def test_the_interval_of_a_log_holds_its_sampling_error(tmp_path):
    """Seeds of a learner without randomness, nor ties, agree; which rewards were logged is chance all the same."""
    rounds, generator = 400, np.random.default_rng(3)
    data = logged.Data(
        np.broadcast_to(np.array([[0.8], [0.4]], np.float32), (rounds, 2, 1)),
        generator.integers(0, 2, rounds).astype(np.float32),
        generator.integers(0, 2, rounds),
    )
    results = logged.ldp_linear_logged(
        data, learner=["joint"], epsilon=[math.inf], delta=1e-5, num_seeds=3, key=jax.random.key(5)
    )
    assert float(results.reward.std("seed").squeeze()) == 0
    played, mean = float(results.played[0, 0, 0]), float(results.reward[0, 0, 0])
    error = math.sqrt(mean * (1 - mean) / (played - 1))  # of zeros and ones
    np.testing.assert_allclose(results.round_error, error, rtol=1e-4)
    half = scipy.stats.t.ppf(0.975, played - 1) * error
    assert f"{mean:.4f} +- {half:.4f}" in logged.report(results)
    assert f"{mean:.4f} +- {half:.4f}" in logged.report(results.isel(seed=[0]))


def test_logs_that_are_not_uniform_are_refused():
    """Chooses by arm; by an arm's own context; by a trait of all arms, in a circle. Planted: uniform."""
    rounds, generator = 4000, np.random.default_rng(4)
    contexts = generator.uniform(-0.5, 0.5, (rounds, 3, 2)).astype(np.float32)
    trait = generator.integers(3, size=rounds)
    contexts[:, :, 1] = (trait[:, None] - 1) / 2
    uniform = generator.integers(3, size=rounds)
    follows = generator.random(rounds) < 0.2
    rewards = np.zeros(rounds, np.float32)
    for actions, said in (
        (np.where(follows, 0, uniform), r"p = \de-\d+, chi-square by arm: shares of 4\d"),
        (np.where(follows, contexts[:, :, 0].argmax(1), uniform), "score test of arms against their contexts"),
        (np.where(follows, trait, uniform), "against the contexts of all arms"),
    ):
        with pytest.raises(ValueError, match=f"contexts must come from a log with uniformly drawn arms: .*{said}"):
            logged.ldp_linear_logged(
                logged.Data(contexts, rewards, actions), epsilon=[1.0], delta=1e-5, num_seeds=1, key=jax.random.key(5)
            )
        with pytest.warns(RuntimeWarning, match="replay is biased") as caught:
            logged_contexts(contexts, actions, rewards)
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logged_contexts(contexts, uniform, rewards)


def log_by_trait(rounds=4000):
    """Makes a log whose policy prefers the arm that a trait pays: the reward is the trait, whatever the arm."""
    generator = np.random.default_rng(6)
    trait = generator.integers(2, size=rounds)
    propensities = np.array([[0.8, 0.2], [0.4, 0.6]])[trait]
    actions = (generator.random(rounds) < propensities[:, 1]).astype(int)
    contexts = np.broadcast_to([[0.8, 0.0], [0.0, 0.8]], (rounds, 2, 2)).astype(np.float32)
    return {"contexts": contexts, "rewards": trait.astype(float), "actions": actions, "propensities": propensities}


@pytest.mark.parametrize("is_1d", [False, True])
def test_a_log_with_propensities(is_1d, tmp_path):
    path, data = tmp_path / "log.npz", log_by_trait()
    if is_1d:
        data["propensities"] = data["propensities"][np.arange(4000), data["actions"]]
        data["min_propensity"] = 0.2
    np.savez(path, **data)
    made = study.STUDY.bind(learner=["joint"], epsilon=[math.inf], num_seeds=4, path=path)
    assert isinstance(made, BoundStudy)
    results = made.simulate()
    mean, half = float(results.reward.mean()), float(logged._half_width(results).squeeze())
    assert abs(mean - 0.5) < 2 * half
    assert half < 0.05
    assert float(results.played.mean()) == pytest.approx(0.2 * 4000, rel=0.2)
    assert (results.shared_error < results.round_error).all()
    text = made.report(results)
    assert "a public coin keeps it with probability (smallest propensity) / (propensity of the arm)" in text
    own, shared, played = (float(results[name].mean()) for name in ("round_error", "shared_error", "played"))
    effective = played * own**2 / (shared**2 + (own**2 - shared**2) / 4)  # four seeds
    assert played < effective < 4 * played
    assert f"{effective:,.0f}" in text.split("effective sample size")[1]
    assert "with the log's propensities" in text
    del data["propensities"]
    data.pop("min_propensity", None)
    with pytest.raises(ValueError, match=r"uniformly drawn arms: .* give the propensities"):
        logged.ldp_linear_logged(logged.Data(**data), epsilon=[1.0], delta=1e-5, num_seeds=1, key=jax.random.key(5))


def test_wrong_propensities_of_a_log_are_refused():
    data = log_by_trait()
    cases = (
        (data["propensities"][:, ::-1], "propensities must be the probabilities with which arms were drawn: "),
        (data["propensities"][:9], r"propensities must be \[4000, 2\]"),
        (np.where(data["propensities"] == 0.8, np.nan, data["propensities"]), "propensities must be finite"),
        (2 * data["propensities"], r"propensities must be in \(0, 1\]"),
    )
    for propensities, said in cases:
        with pytest.raises(ValueError, match=said):
            logged.ldp_linear_logged(
                logged.Data(**{**data, "propensities": propensities}),
                epsilon=[1.0],
                delta=1e-5,
                num_seeds=1,
                key=jax.random.key(5),
            )


def test_p_values_of_uniform_logs_are_uniform():
    """Checks that columns of other units, sums of other columns, and constants are no fault of the log."""
    generator, values = np.random.default_rng(5), []
    for _ in range(200):
        contexts = generator.normal(size=(300, 2, 4)) * [1, 1e-3, 1, 0]
        contexts[..., 1] = contexts[..., 0] + contexts[..., 2]
        actions = generator.integers(2, size=300)
        values.append((_by_own_context(contexts, actions), _by_all_contexts(contexts, actions)))
    for column in np.transpose(values):
        assert scipy.stats.kstest(column, "uniform").pvalue > 1e-3
        assert scipy.stats.kstest(column / 2, "uniform").pvalue < 1e-6, "planted: a test of half the level"


def test_contexts_alone(tmp_path):
    """Checks that arms pay as a linear model says; planted: rewards that do not follow one."""
    path, drawn = tmp_path / "contexts.npy", np.random.default_rng(2).normal(size=(60, 2, 2))
    contexts = (drawn / np.linalg.norm(drawn, axis=2, keepdims=True) * 0.9).astype(np.float32)
    np.save(path, contexts)
    data = logged.read_contexts(path)
    np.testing.assert_array_equal(data.contexts, contexts)
    flat, paid = contexts.reshape(-1, contexts.shape[2]), data.rewards.ravel()

    def distance(paid):
        theta, *_ = np.linalg.lstsq(flat, paid, rcond=None)
        return np.abs(flat @ theta - paid).max()

    assert distance(paid) < 1e-5
    assert distance(np.sign(paid) + paid**2) > 1e-3
    assert data.actions is None
    made = study.STUDY.bind(learner=["joint"], epsilon=[math.inf], num_seeds=1, path=path)
    assert isinstance(made, BoundStudy)
    results = made.simulate()
    assert float(results.mean_reward) < float(results.reward.squeeze()) <= float(results.best_reward) + 1e-6
    assert "not private" in made.report(results)
    for wrong, said in ((contexts[0], "got shape"), (contexts.astype(str), "got shape"), (contexts[:0], "got shape")):
        np.save(path, wrong)
        with pytest.raises(ValueError, match=said):
            logged.read_contexts(path)


def test_errors(tmp_path):
    cases: Any = (
        ({"learner": ["ucb"]}, "learner must be one of paper, gaussian, ball, joint, got 'ucb'"),
        ({"dim": []}, "dim must have at least one value"),
        ({"dim": [0]}, "dim must be"),
        ({"horizon": 10}, "horizon must be"),
    )
    for wrong, said in cases:
        with pytest.raises(ValueError, match=said):
            study.ldp_linear(key=jax.random.key(5), **wrong)
    good, files = own_data(True), {}
    files["rewards must be among its arrays"] = {"contexts": good["contexts"]}
    files[r"contexts must be \[T, K, d\]"] = {**good, "contexts": good["contexts"][0]}
    files["propensities must come with logged actions, got none"] = {**own_data(False), "propensities": np.ones(60)}
    files["min_propensity must be one number, got shape"] = {**good, "min_propensity": np.ones(60)}
    files["arrays must be contexts, rewards, actions, propensities, min_propensity, got 'action'"] = {
        **good,
        "action": good["actions"],
    }
    files["not a readable npz or npy file"] = None
    for number, (said, arrays) in enumerate(files.items()):
        path = tmp_path / f"{number}.npz"
        if arrays is None:
            path.write_text("contexts")
        else:
            np.savez(path, **arrays)
        with pytest.raises(ValueError, match=said):
            logged.read_contexts(path)
    with pytest.raises(FileNotFoundError):
        logged.read_contexts(tmp_path / "none.npz")
    given: list[tuple[str, Any]] = [("dim", [3]), ("num_arms", 4), ("horizon", 500)]
    for name, value in given:
        with pytest.raises(ValueError, match=f"{name} must be left out with contexts"):
            study.ldp_linear(contexts=logged.Data(**good), key=jax.random.key(5), **{name: value})


def test_means_of_rewards_in_small_types():
    """Checks that means of float16 rewards have the precision that learners get."""
    rewards = np.full((2001, 2), 0.3, np.float16)
    rewards[0] = 1.0
    data = logged.Data(np.full((2001, 2, 1), 0.5, np.float16), rewards)
    results = logged.ldp_linear_logged(
        data, learner=["ball"], epsilon=[1.0], delta=1e-5, num_seeds=1, key=jax.random.key(5)
    )
    exact = rewards.astype(float).mean()
    for found in (results.mean_reward, results.best_reward, results.reward.squeeze()):
        np.testing.assert_allclose(float(found), exact, rtol=1e-5)
