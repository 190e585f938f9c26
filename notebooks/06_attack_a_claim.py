# %% [markdown]
# # Attack a claim
#
# A right Laplace mechanism, and planted mistakes: what each detector sees, and what it cannot.
#
# **Passing is no proof.** An audit's lower bound is true with 95% confidence; that nothing was found proves nothing.

# %%
import time

import jax
import jax.numpy as jnp

import jaxdp
from jaxdp.audit import Attack, UserData, audit, feedback_of_action, grey_box, leaks
from jaxdp.core import Guarantee, State

start = time.perf_counter()

# %% tags=["parameters"] small={"trials": 20000, "num_keys": 2, "budgets": [0.3, 1.0, 4.0], "searched": false}
trials, num_keys, budgets = 200_000, 4, [0.1, 0.3, 1.0, 2.0, 4.0]
searched = True  # whether inputs that tell more are searched for

# %% [markdown]
# ## The black box: outputs under two neighbouring inputs
#
# A count that one person moves by 1 is released with Laplace noise of scale 1/ε. The auditor draws outputs for two
# counts that differ by 1, learns which outputs tell them apart, and counts that on fresh outputs.


# %%
def right(key, epsilon, count):
    return jaxdp.mechanisms.laplace(key, count, epsilon, l1_sensitivity=1.0)


def half_the_noise(key, epsilon, count):  # the sensitivity is 2, and 1 is declared
    return jaxdp.mechanisms.laplace(key, 2 * count, epsilon, l1_sensitivity=1.0)


def beside(key, epsilon, count):  # a coarse total goes out beside the noisy one
    return jnp.stack([right(key, epsilon, count), jnp.floor(count / 8)])


found = {}
for name, mechanism in {"right": right, "half the noise": half_the_noise, "released beside": beside}.items():
    found[name] = []
    for epsilon in budgets:
        claim = Guarantee.pure(epsilon, trust_model="central", privacy_unit="one record", argument="Laplace noise")
        attack = Attack(mechanism, jnp.float32(epsilon), (jnp.float32(7), jnp.float32(8)), claim)
        found[name].append([audit(jax.random.key(seed), attack, trials=trials) for seed in range(num_keys)])
    bounds = [f"{each[0].lower_bound:.2f}" for each in found[name]]
    print(f"{name:16} {bounds} {[each[0].verdict for each in found[name]]}")

# %% [markdown]
# A picture says what was claimed, and what was found: the mean lower bound of several audits, each with a key of its
# own.

# %%
import xarray as xr

lower = xr.DataArray(
    [[[each.lower_bound for each in audits] for audits in own] for own in found.values()],
    coords={"mechanism": list(found), "epsilon": budgets},
    dims=("mechanism", "epsilon", "seed"),
    name="lower bound on ε",
)
ax = jaxdp.plotting.curves(lower, x="epsilon", hue="mechanism", xscale="linear")
jaxdp.plotting.bound(ax, budgets, budgets, label="claimed ε")
ax

# %% [markdown]
# The true ε of each is known here. A bound exceeds it once in twenty audits at most, so the mean of several lies below;
# with the right noise it reaches most of ε from 1 on; half the noise costs 2ε exactly; what is released beside the
# noise has no finite ε.

# %%
claimed = xr.DataArray(budgets, dims="epsilon")
mean = lower.mean("seed")
assert bool((mean.sel(mechanism="right") <= claimed).all())
assert bool((mean.sel(mechanism="half the noise") <= 2 * claimed).all())
assert bool((lower.sel(mechanism="half the noise", epsilon=1.0) > 1.0).all())  # violated

# %% [markdown]
# ## The grey box: what is noised, and how far one user moves it
#
# A learner noises many things along a run. The grey box plays a run whose releases are forced, changes one user, and
# reads from the library's mechanisms what moved, and what sensitivity was declared. It needs few runs, and sees
# mistakes whose effect on outputs is tiny.

# %%
learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=8)


def twice(key, params, state, report):  # a planted mistake: each reward enters the totals twice
    once = learner.update(key, params, state, report)
    return learner.update(key, params, state._replace(private=once.private), report)


def draw_user(key):  # what one user would answer to either arm
    return UserData(jax.random.bernoulli(key, shape=(2,)).astype(jnp.int32))


for name, each in {
    "right": learner,
    "each reward twice": learner._replace(update=twice, blocks=(), counts=None),
}.items():
    box = grey_box(jax.random.key(0), each, {"epsilon": 1.0}, draw_user, rounds=9)
    print(f"{name:18} {box.verdict:11} {box.sites}")

# %% [markdown]
# ## Leaks: what is released beside the noise
#
# A released state that follows raw data without any noise shows at once: with every key equal, one user's change must
# not move anything that is public except through noised numbers.


# %%
def careless(key, params, state, report):  # a planted mistake: the first reward is left in the public state
    new, (_, reward) = learner.update(key, params, state, report), report
    return State(
        new.private, new.public._replace(best_arm=jnp.where(new.public.round == 1, reward, new.public.best_arm))
    )


zeros = UserData(jnp.zeros((9, 2), jnp.int32))
ones = UserData(zeros.answers.at[0].set(1))
for name, each in {"right": learner, "careless": learner._replace(update=careless, blocks=(), counts=None)}.items():
    leak = leaks(jax.random.key(0), each, {"epsilon": 1.0}, (zeros, ones), answer=feedback_of_action)
    print(f"{name:10} {leak.verdict}")

# %% [markdown]
# ## All registered claims
#
# `python -m jaxdp audit` takes black and grey boxes to every registered algorithm, on every path it can run. What
# such audits cannot see is in `help(jaxdp.audit)`.
#
# What not to conclude: "consistent" does not mean private. The proof is the claim's; an audit finds mistakes.

# %%
attacks = jaxdp.registry.attacks(["randomized_response", "laplace"])
rows = list(jaxdp.audit.scoreboard(jax.random.key(0), attacks, trials=trials, searched=searched))
print("\n".join([jaxdp.audit.format_header(attacks), *(jaxdp.audit.format_row(row, attacks) for row in rows)]))
for target in attacks.values():
    print(target.guarantee)

# %%
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {time.perf_counter() - start:.0f} s")
