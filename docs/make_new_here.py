"""Makes the figures of explanation/new_here.md: `python docs/make_new_here.py`, or with the names of some of them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from jaxdp import experts, plotting
from jaxdp.audit import UserData, full_information, grey_box
from jaxdp.estimation import gaussian_rewards
from jaxdp.plotting import Figure
from jaxdp.simulation import estimation_run, sweep
from jaxdp.studies import dueling_regret, ldp_linear, reward_estimation
from jaxdp.studies.tracking_regret import tracking_regret

FOLDER = Path(__file__).parent / "figures" / "new_here"
KEY = jax.random.key(0)
BUDGETS = (0.3, 1.0, 3.0, 10.0, float("inf"))


def simulate_tracking(*learners: str) -> xr.Dataset:
    """Simulates dynamic regret of learners; the best of ten experts shifts three times in 20,000 rounds."""
    return tracking_regret(
        epsilon=BUDGETS,
        learner=learners,
        horizon=(20_000,),
        num_switches=(3,),
        num_seeds=8,
        key=KEY,
    ).isel(setting=0)


def counter_weights() -> Figure:
    """Compares weights on one noisy counter with the paper's forms."""
    labels = {
        "counter_weights": "counter_weights, (ε, δ)",
        "svt_restarts": "svt_restarts (Algorithm 2, corrected), ε",
        "mirror_descent_intervals": "mirror_descent_intervals (order of Thm 5.2), (ε, δ)",
    }
    regret = simulate_tracking(*labels).dynamic_regret
    figure = plotting.panels(1, 1, width=5.0)
    plotting.cost_of_privacy(
        regret, hue="learner", ax=figure.axes[0], labels=labels, yscale="log", ylabel="dynamic regret"
    )
    figure.explain(
        title="Exponential weights on noisy losses from one counter",
        note="N = 10, S = 3, T = 20,000, δ = 10⁻⁶, all central.",
    )
    return figure


def meta_experts() -> Figure:
    """Compares the reduction over all sequences with the same learner on single experts."""
    labels = {
        "lazy_weights": "lazy_weights on all sequences of 3 switches",
        "lazy_weights_static": "lazy_weights on single experts",
    }
    regret = simulate_tracking(*labels).dynamic_regret
    figure = plotting.panels(1, 1, width=5.0)
    plotting.cost_of_privacy(
        regret, hue="learner", ax=figure.axes[0], labels=labels, yscale="log", ylabel="dynamic regret"
    )
    figure.explain(
        title="A class of 10¹⁶ sequences, in 40 numbers", note="N = 10, S = 3, T = 20,000, δ = 10⁻⁶, central."
    )
    return figure


def blocks() -> Figure:
    """Compares duels released by doubling blocks with DP-EBS."""
    labels = {
        "double_thompson_blocks": "double Thompson by blocks",
        "ebs_phased": "ebs_phased (Algorithm 1, by phases)",
        "ebs_elimination": "ebs_elimination (Algorithm 1, corrected)",
    }
    results = dueling_regret.dueling_regret(
        epsilon=(0.3, 1.0), learner=tuple(labels), num_seeds=8, horizon=50_000, key=KEY
    )
    return plotting.facets(
        results.pseudo_regret,
        x="round",
        hue="learner",
        col="epsilon",
        labels=labels,
        yscale="log",
        ylabel="regret (in utility)",
        title="Duels by blocks and as in the paper (pure ε, central)",
        note="Three arms of utilities 2, 1, 0.",
    )


def ball_report() -> Figure:
    """Compares contextual reports on a sphere with Gaussian ones."""
    results = ldp_linear.ldp_linear(
        learner=("paper", "gaussian", "ball"), epsilon=(0.5, 1.0), dim=(5,), num_seeds=8, horizon=50_000, key=KEY
    )
    labels = {
        "paper": "Gaussian, as published, (ε, δ)",
        "gaussian": "Gaussian, tight, (ε, δ)",
        "ball": "ball report, pure ε",
    }

    def uniform(ax: Axes, values: xr.DataArray) -> None:
        of_all = results.uniform_regret.isel(dim=0)
        plotting.bound(ax, values["round"].values, of_all.values, label="uniform play")

    return plotting.facets(
        results.pseudo_regret.isel(dim=0),
        x="round",
        hue="learner",
        col="epsilon",
        labels=labels,
        also=uniform,
        yscale="log",
        ylabel="regret",
        title="Local privacy of contexts and rewards, without δ",
        note="d = 5, 20 arms, δ = 10⁻⁵ for Gaussian reports. As published, regret is the regret of uniform play.",
    )


def public_weights() -> Figure:
    """Compares central estimates with and without weights from public features."""
    names = ("mle", "objective_perturbation", "objective_perturbation_cut", "objective_perturbation_cut_k_norm")
    known = reward_estimation.estimators("exact")
    results = sweep(
        lambda num_samples: estimation_run(
            {name: known[name] for name in names}, gaussian_rewards(num_samples=num_samples, dim=5)
        ),
        axes={"epsilon": [0.1, 0.5, 1.0], "delta": [1e-3]},
        static_axes={"num_samples": [1000, 4000]},
        num_seeds=100,
        key=KEY,
        tile_size=16,
    ).squeeze("delta", drop=True)
    return plotting.facets(
        results.l2_error,
        x="num_samples",
        hue="estimator",
        col="epsilon",
        labels=reward_estimation.LABELS,
        xscale="log",
        yscale="log",
        xlabel="comparisons n",
        ylabel="l2 error",
        title="Label privacy with weights from public features",
        note="d = 5, δ = 10⁻³ for Gaussian noise.",
    )


def audits() -> Figure:
    """Measures, by a grey box, the cost of one loss vector in the published and in the corrected Algorithm 3."""
    sizes, found = [2, 4, 8, 16], {"as published": [], "corrected": []}
    for size in sizes:
        about: dict[str, Any] = {"num_experts": size, "horizon": 40, "num_switches": 1}

        def user(key: jax.Array, size: int = size) -> UserData:
            return UserData(jnp.full(size, jax.random.bernoulli(key), float))  # all losses 0, or all 1

        forms = {
            "as published": (experts.mirror_descent(**about, constants="paper"), {"epsilon": 1.0}),
            "corrected": (
                experts.mirror_descent(**about, form="noisy_losses", noise="laplace"),
                {"epsilon": 1.0},
            ),
        }
        for name, (learner, values) in forms.items():
            box = grey_box(KEY, learner, values, user, rounds=4, answer=full_information, num_neighbours=64)
            found[name].append(box.spent)
    values = xr.DataArray(
        np.asarray(list(found.values()))[..., None],
        coords={"form": list(found), "num_experts": sizes},
        dims=("form", "num_experts", "seed"),
        name="ε of one loss vector",
    )
    figure = plotting.panels(1, 1, width=5.0)
    plotting.curves(
        values,
        x="num_experts",
        hue="form",
        band=None,
        ax=figure.axes[0],
        xscale="log",
        yscale="log",
        xlabel="experts N",
    )
    plotting.bound(figure.axes[0], sizes, np.ones(len(sizes)), label="claimed: ε = 1")
    figure.explain(
        title="Cost of the releases of Algorithm 3",
        note="Laplace noise on loss vectors; the largest of 64 neighbours, by a grey box.",
    )
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "counter_weights": counter_weights,
    "blocks": blocks,
    "ball_report": ball_report,
    "public_weights": public_weights,
    "meta_experts": meta_experts,
    "audits": audits,
}


if __name__ == "__main__":
    for name in sys.argv[1:] or FIGURES:
        FOLDER.mkdir(parents=True, exist_ok=True)
        FIGURES[name]().savefig(FOLDER / f"{name}.png", dpi=90)
        print(name, flush=True)
