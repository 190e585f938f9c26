# %% [markdown]
# # Attack a claim
# This notebook attacks a correct Laplace mechanism and mechanisms with planted mistakes, and shows which mistakes each
# detector finds.
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
trials, num_keys, budgets = 200_000, 3, [0.1, 0.3, 1.0, 2.0, 4.0]
searched = True  # whether the auditor searches for inputs that reveal more

# %% [markdown]
# ## The black box: outputs under two neighbouring inputs
# A count that one person changes by 1 is released with Laplace noise of scale 1/ε. The auditor draws outputs for two
# counts that differ by 1, learns which outputs distinguish them, and counts these outputs among fresh draws.


# %%
def right(key, epsilon, count):
    return jaxdp.mechanisms.laplace(key, count, epsilon, l1_sensitivity=1.0)


def half_the_noise(key, epsilon, count):  # the sensitivity is 2, and 1 is declared
    return jaxdp.mechanisms.laplace(key, 2 * count, epsilon, l1_sensitivity=1.0)


def beside(key, epsilon, count):  # a coarse exact total is released in addition to the noisy one
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
# The picture shows the claimed ε and the mean lower bound of several audits, each with a separate key.

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
# Here the true ε of each mechanism is known. A bound exceeds the true ε in at most one of twenty audits, so the mean of
# several bounds lies below it. With the right noise, bounds reach most of ε for ε of 1 or more. Half the noise costs
# exactly 2ε. With the additional exact total, no finite ε holds.

# %%
claimed = xr.DataArray(budgets, dims="epsilon")
mean = lower.mean("seed")
assert bool((mean.sel(mechanism="right") <= claimed).all())
assert bool((mean.sel(mechanism="half the noise") <= 2 * claimed).all())
assert bool((lower.sel(mechanism="half the noise", epsilon=1.0) > 1.0).all())  # violated

# %% [markdown]
# ## The grey box: the noised values, and how far one user changes them
# A learner adds noise to many values during a run. The grey box plays a run with prescribed releases, changes one user,
# and records, from the library's mechanisms, how far each value changed and which sensitivity was declared. It needs
# few runs, and finds mistakes that hardly affect outputs.

# %%
learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=8)


def twice(key, params, state, report):  # a planted mistake: each reward enters the totals twice
    once = learner.update(key, params, state, report)
    return learner.update(key, params, state._replace(private=once.private), report)


def draw_user(key):  # one user's answers, one for each arm
    return UserData(jax.random.bernoulli(key, shape=(2,)).astype(jnp.int32))


for name, each in {
    "right": learner,
    "each reward twice": learner._replace(update=twice, blocks=(), counts=None),
}.items():
    box = grey_box(jax.random.key(0), each, {"epsilon": 1.0}, draw_user, rounds=9)
    print(f"{name:18} {box.verdict:11} {box.sites}")

# %% [markdown]
# ## Leaks: values released without noise
# If a released state contains raw data, one comparison shows it: with all keys equal, a change of one user must change
# public values only through noised numbers.


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
# `python -m jaxdp audit` runs black-box and grey-box audits of every registered algorithm, on every engine that can run
# it. `help(jaxdp.audit)` lists the mistakes that such audits cannot find. What not to conclude: "consistent" does not
# mean private. Only a proof shows that a claim holds; an audit finds mistakes.

# %%
attacks = jaxdp.registry.attacks(["randomized_response", "laplace"])
rows = list(jaxdp.audit.scoreboard(jax.random.key(0), attacks, trials=trials, searched=searched))
print("\n".join([jaxdp.audit.format_header(attacks), *(jaxdp.audit.format_row(row, attacks) for row in rows)]))
for target in attacks.values():
    print(target.guarantee)

# %%
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {time.perf_counter() - start:.0f} s")
