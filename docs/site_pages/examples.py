"""Writes one short program for each registered factory. `python docs/site_pages/examples.py` records their outputs."""

import contextlib
import io
import json
import re
import sys
from pathlib import Path

OUTPUTS = Path(__file__).with_name("example_outputs.json")
LONGEST = 12  # lines

LEARNER = """
import jax
import jaxdp
from {source} import {module}

learner = {module}.{name}({arguments})
run = jaxdp.simulator(learner, {module}.{world}, horizon={horizon})
outputs = run(jax.random.key(0), run.params({values}))
print(run.guarantee({values})["learner"])
print(f"regret: {{outputs['pseudo_regret'][-1]:.0f}}")
"""
ESTIMATOR = """
import jax
from jaxdp import estimation, preferences

data = preferences.{data}
estimator = estimation.{name}()
found = estimation.estimate(estimator, data.features, data.labels, key=jax.random.key(1){values})
print(estimator.guarantee({claim}))
print(f"error: {{jax.numpy.linalg.norm(found.theta - data.parameter):.2f}}")
"""
BANDIT = "bernoulli_bandit([0.9, 0.7, 0.5])"
BALL = "quadratic_losses(dim=2)"
PAIRS = 'quadratic_losses(dim=2, feedback="difference")'
CONTEXTS = "linear_contexts(num_arms=5, dim=2)"
DUELS = "utility_duels([2.0, 1.0, 0.0])"
LOSSES = "stochastic_losses([0.2, 0.5, 0.5])"
EXPERTS = "num_experts=3, horizon=2_000"
FIXED = "dim=2, horizon=2_000"
APPROXIMATE = "epsilon=1.0, delta=1e-6"
PURE = "epsilon=1.0"
# Arguments, world, values; the horizon is 2,000 rounds unless it is given.
LEARNERS: dict[str, dict[str, tuple[str, ...]]] = {
    "bandits": {
        **dict.fromkeys(
            (
                "tsallis_inf",
                "ucb",
                "thompson",
                "thompson_central",
                "imed_central",
                "adap_klucb",
                "ucb_central",
                "successive_elimination_central",
            ),
            ("num_arms=3", BANDIT, PURE),
        ),
        **dict.fromkeys(
            (
                "lil_ucb",
                "successive_elimination",
                "pairwise_elimination",
                "pairwise_elimination_central",
            ),
            ("num_arms=3", BANDIT, PURE, "50_000"),
        ),
        "explore_then_commit": ("num_arms=3, explore_rounds=60", BANDIT, PURE),
        "exp3": ("num_arms=3, horizon=2_000", BANDIT, PURE),
        "noisy_argmax": ("num_arms=3, num_rounds=600", BANDIT, PURE),
    },
    "bandits.convex": {
        **dict.fromkeys(
            (
                "fkm",
                "strongly_convex_one_point",
                "barrier_smooth",
                "barrier_strongly_convex",
            ),
            (FIXED, BALL, PURE),
        ),
        "two_point": (FIXED, PAIRS, PURE),
        "stochastic_1d": ("horizon=2_000", "quadratic_losses(dim=1)", PURE),
    },
    "bandits.contextual": {
        "linear_ucb": (f"num_arms=5, {FIXED}", CONTEXTS, APPROXIMATE),
        "linear_ucb_joint": (f"num_arms=5, {FIXED}", CONTEXTS, APPROXIMATE),
        "greedy_sgd": ("num_arms=5, dim=2", CONTEXTS, PURE),
        "generalized_linear": (
            f"num_arms=5, {FIXED}",
            "generalized_linear_contexts(num_arms=5, dim=2)",
            APPROXIMATE,
        ),
    },
    "experts": {
        **dict.fromkeys(
            (
                "exponential_weights",
                "limited_updates_oblivious",
                "svt_restarts",
                "svt_lazy",
            ),
            (EXPERTS, LOSSES, PURE),
        ),
        **dict.fromkeys(
            (
                "lazy_weights",
                "counter_weights",
            ),
            (EXPERTS, LOSSES, APPROXIMATE),
        ),
        "limited_updates": ("num_experts=3", LOSSES, PURE),
        "mirror_descent": (f"{EXPERTS}, num_switches=2", LOSSES, APPROXIMATE),
        "fixed_share": (f"{EXPERTS}, num_switches=2", LOSSES, ""),
        "hedge": (EXPERTS, LOSSES, ""),
    },
    "dueling": {
        **dict.fromkeys(
            (
                "ebs_phased",
                "rucb",
                "double_thompson",
                "versatile_sparring",
            ),
            ("num_arms=3", DUELS, PURE),
        ),
        **dict.fromkeys(
            (
                "ebs_elimination",
                "ebs_local",
            ),
            ("num_arms=3, horizon=2_000", DUELS, PURE),
        ),
        "ebs_shuffle": ("num_arms=3", DUELS, APPROXIMATE),
        "g_optimal_elimination": (
            "features=[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]",
            "linear_duels([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], [0.9, -0.3])",
            PURE,
        ),
    },
}
COMPARISONS = "gaussian_comparisons(jax.random.key(0), num_samples=2_000, dim=3)"
CHOICES = "gaussian_choices(jax.random.key(0), num_samples=2_000, num_actions=4, dim=3)"
LABEL = f", {PURE}", PURE
# Data, values of `estimate`, values of `guarantee`.
ESTIMATORS: dict[str, tuple[str, str, str]] = {
    **dict.fromkeys(("mle", "sgd"), (COMPARISONS, "", "")),
    **dict.fromkeys(("mle_rr", "debiased_rr", "sgd_rr"), (COMPARISONS, *LABEL)),
    "thurstone_rr": (COMPARISONS.replace("dim=3", "dim=3, link=preferences.probit"), f", {PURE}, radius=2.0", PURE),
    **dict.fromkeys(
        ("objective_perturbation", "sgd_objective_perturbation"), (COMPARISONS, f", {APPROXIMATE}", APPROXIMATE)
    ),
    "literal_objective_perturbation": (COMPARISONS, f", {APPROXIMATE}", APPROXIMATE),
    "objective_perturbation_full": (
        COMPARISONS,
        f", {APPROXIMATE}, feature_norm=4.0",
        f"{APPROXIMATE}, feature_norm=4.0",
    ),
    "plackett_luce_mle": (CHOICES, "", ""),
    **dict.fromkeys(("plackett_luce_debiased_krr", "sgd_krr"), (CHOICES, *LABEL)),
    "plackett_luce_objective_perturbation": (CHOICES, f", {APPROXIMATE}", APPROXIMATE),
}
BALLOTS: dict[str, tuple[str, str]] = {
    "ballot_mle": ("", ""),
    "ballot_rr": (", epsilon=8.0", "epsilon=8.0"),
    "ballot_objective_perturbation": (f", {APPROXIMATE}", APPROXIMATE),
}
BALLOT = """
import jax
import numpy as np
from jaxdp import estimation, preferences

orders = [[[0], [1], [3]], [[1], [0], [2], [3]], [[3], [1]], [[2], [1], [0]]]
ballots = preferences.Ballots(("noodles", "curry", "salad", "pizza"), orders, counts=(90, 52, 46, 32))
estimator = estimation.{name}()
key = jax.random.key(0)
found = estimation.estimate(estimator, *ballots.design(), key=key{values}, radius=6.0)
print(estimator.guarantee({claim}))
print(np.asarray(found.theta).round(2))
"""
RANDOMIZER = """
import jax
from jaxdp import mechanisms

randomizer = mechanisms.{name}({arguments})
params = randomizer.params({values})
reports = jax.vmap(lambda key: randomizer.report(key, params, {value}))(jax.random.split(jax.random.key(0), 1000))
estimates = jax.vmap(lambda report: randomizer.estimate(params, report))(reports)
print(randomizer.guarantee({values}))
print(jax.tree.map(lambda leaf: leaf.mean(axis=0).round(1), estimates))
"""
RANDOMIZERS: dict[str, tuple[str, str, str]] = {
    "scalar_randomizer": ('"rr"', "epsilon=1.0", "0.8"),
    "label_randomizer": ("3", "epsilon=1.0", "1"),
    "vector_randomizer": ('(2,), "l2"', APPROXIMATE, "jax.numpy.array([0.6, -0.6])"),
    "moment_randomizer": ('2, "l2_ball"', "epsilon=4.0", "(jax.numpy.array([0.6, -0.8]), 1.0)"),
}
COUNTER = """
import jax
import jax.numpy as jnp
from jaxdp import mechanisms

counter = mechanisms.{name}(horizon=1000)
params = counter.params({values})
keys = jax.random.split(jax.random.key(0), 1000)
sums = counter.prefixes(keys, params, jnp.ones(1000, jnp.int32))
print(sums[jnp.array([9, 99, 999])].round())
print("standard deviation at the end:", round(float(counter.variance(params, 1000)) ** 0.5, 1))
"""
COUNTERS = {"tree_counter": PURE, "toeplitz_counter": APPROXIMATE, "doubling_counter": PURE}
CALL = """
import jax
import jax.numpy as jnp
{numpy}from jaxdp import mechanisms

{lines}
"""
CALLS: dict[str, str] = {
    "laplace": """counts = jnp.array([30, 12], jnp.int32)
noisy = mechanisms.laplace(jax.random.key(0), counts, 1.0, l1_sensitivity=1.0)
print(np.asarray(noisy).round(1))""",
    "gaussian": """stddev = mechanisms.analytic_gaussian(1.0, 1e-6, 1.0)
noisy = mechanisms.gaussian(jax.random.key(0), jnp.array([30.0, 12.0]), stddev, l2_sensitivity=1.0)
print(round(stddev, 3), np.asarray(noisy).round(1))""",
    "k_norm": """noisy = mechanisms.k_norm(jax.random.key(0), jnp.array([30.0, 12.0]), 1.0, sensitivity=1.0)
print(np.asarray(noisy).round(1))""",
    "randomized_response": """labels = jnp.ones(10_000, jnp.int32)
reports = mechanisms.randomized_response(jax.random.key(0), labels, 1.0)
print(f"share of ones: {reports.mean():.2f}")
print("debiased:", mechanisms.debias_labels(reports, 1.0).mean().round(1))""",
    "randomize_scalar": """rewards = jnp.full(10_000, 0.5)
bits = mechanisms.randomize_scalar(jax.random.key(0), rewards, 1.0, bound=1.0)
print(f"mean of bits: {bits.mean():.2f}")
print("debiased:", mechanisms.debias_scalar(bits, 1.0, bound=1.0).mean().round(1))""",
    "noisy_max": """votes = jnp.array([30, 90, 42], jnp.int32)
print("winner:", mechanisms.noisy_max(jax.random.key(0), votes, 1.0))""",
    "noisy_leads": """votes = jnp.array([30, 90, 42], jnp.int32)
leads = mechanisms.noisy_leads(jax.random.key(0), votes, 1.0, l1_sensitivity=1.0)
print(np.asarray(leads).round(1))""",
    "above_threshold": """queries = jnp.array([10.0, 20.0, 5.0, 400.0])
above = mechanisms.above_threshold(jax.random.key(0), queries, 1.0, threshold=200.0)
print(above)""",
    "shuffled_ones": """ones = mechanisms.shuffled_ones(jax.random.key(0), 600, 2.0, batch=1000)
delta = mechanisms.shuffle_delta(0.5, 2.0, 1000)
print("reported ones:", ones)
print(f"delta at epsilon = 0.5: {delta:.1e}")""",
}


def examples() -> dict[str, str]:
    """Returns the program of each registered factory, by the factory's name."""
    found = {}
    for name, lines in CALLS.items():
        numpy = "import numpy as np\n" if re.search(r"\bnp\.", lines) else ""
        found[name] = CALL.format(numpy=numpy, lines=lines)
    found |= {name: COUNTER.format(name=name, values=values) for name, values in COUNTERS.items()}
    for name, (arguments, values, value) in RANDOMIZERS.items():
        found[name] = RANDOMIZER.format(name=name, arguments=arguments, values=values, value=value)
    for name, (data, values, claim) in ESTIMATORS.items():
        found[name] = ESTIMATOR.format(name=name, data=data, values=values, claim=claim)
    for name, (values, claim) in BALLOTS.items():
        found[name] = BALLOT.format(name=name, values=values, claim=claim)
    for path, learners in LEARNERS.items():
        package, _, module = path.rpartition(".")
        source = f"jaxdp.{package}" if package else "jaxdp"
        for name, (arguments, world, values, *horizon) in learners.items():
            found[name] = LEARNER.format(
                source=source,
                module=module,
                name=name,
                arguments=arguments,
                world=world,
                values=values,
                horizon=(horizon or ["2_000"])[0],
            )
    return {name: program.strip() for name, program in found.items()}


def output_of(program: str) -> str:
    """Runs a program, and returns its output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "example", "exec"), {"__name__": "example"})
    return printed.getvalue().strip()


def outputs() -> dict[str, str]:
    """Returns the recorded output of each program."""
    return json.loads(OUTPUTS.read_text(encoding="utf-8"))


def main() -> int:
    """Runs the named programs, or all, and records their outputs; removes outputs without a program.

    Returns 1 if a program fails.
    """
    programs = examples()
    recorded, failed = outputs() if OUTPUTS.exists() else {}, 0
    for name in sys.argv[1:] or programs:
        if name not in programs:
            if recorded.pop(name, None) is None:
                print(f"{name}: no program has this name")
                failed = 1
                continue
            print(f"{name}: removed its output, as it has no program")
        else:
            try:
                recorded[name] = output_of(programs[name])
            except Exception as error:
                print(f"{name}: {error!r}")
                failed = 1
                continue
            print(name, recorded[name], sep="\n", flush=True)
        kept = {each: recorded[each] for each in sorted(programs) if each in recorded}
        OUTPUTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
