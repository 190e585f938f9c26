# %% [markdown]
# # Any model on private labels
# **Result:** from 20,000 labels at ε = 1 a net and a policy learn to order about 92% of held-out pairs, against 95%
# without privacy; a linear head orders 50%.
#
# People compare two responses to a prompt, and only the winner is private. Each label is randomized once. This notebook
# trains a linear reward head, a net and a policy on the same reports. Training is post-processing, so all three models
# together have the claim of the reports.

# %%
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd

import jaxdp
from jaxdp import plotting
from jaxdp.estimation import debiased_rr
from jaxdp.preferences import debiased_loss, private_labels

start = time.perf_counter()

# %% tags=["parameters"] small={"num_pairs": 2000, "num_steps": 50, "epsilons": [1.0]}
num_prompts, num_responses, dim = 2_000, 8, 8
num_pairs, num_steps, batch_size = 20_000, 1_000, 512
epsilons = [0.5, 1.0, 2.0, 4.0, float("inf")]
beta = 0.5  # of DPO

# %% [markdown]
# ## One data set
# The reward of a response is 2(|x₀| + |x₁| − |x₂|), so no linear model fits it. Responses and features are public. The
# last quarter of the prompts is held out.

# %%
random = np.random.default_rng(0)
responses = random.normal(size=(num_prompts, num_responses, dim)).astype(np.float32)
num_train = 3 * num_prompts // 4


def reward(x):
    return 2 * (abs(x[..., 0]) + abs(x[..., 1]) - abs(x[..., 2]))


def draw_pairs(low, high, count):
    """Returns prompts, and two different responses to each of them."""
    prompts = random.integers(low, high, count)
    first = random.integers(num_responses, size=count)
    second = (first + random.integers(1, num_responses, count)) % num_responses
    return prompts, first, second


prompts, first, second = draw_pairs(0, num_train, num_pairs)
margins = reward(responses[prompts, first]) - reward(responses[prompts, second])
# True: the first was preferred
labels = random.random(num_pairs) < 1 / (1 + np.exp(-margins))
held_out_pairs = draw_pairs(num_train, num_prompts, 10_000)


def first_wins(scores):
    prompts, first, second = held_out_pairs
    return scores[prompts, first] > scores[prompts, second]


def accuracy(scores):
    """Returns the share of held-out pairs that scores order as the reward does."""
    return np.mean(first_wins(np.asarray(scores)) == first_wins(reward(responses)))


# %% [markdown]
# ## Private labels
# The claim of each release is for one label. If persons give several labels, pass `persons=`, and ε is a person's.
# We compare several ε here, in a simulation. With real labels make one release: the budgets of several would add up.

# %%
keys = jax.random.split(jax.random.key(1), len(epsilons))
released = {
    epsilon: private_labels(labels, epsilon, key=key)
    for epsilon, key in zip(epsilons, keys, strict=True)
}
for epsilon, private in released.items():
    flip_prob = 1 / (1 + np.exp(epsilon))
    stderr = np.sqrt(flip_prob * (1 - flip_prob) / num_pairs)
    assert abs(np.mean(private.reports != labels) - flip_prob) < 5 * stderr + 1e-12

# %% [markdown]
# ## A linear head
# `debiased_rr` fits reports in `fit`. Its model is wrong here, and no ε helps.

# %%
features = jnp.asarray(responses[prompts, first] - responses[prompts, second])
estimator = debiased_rr()
linear = {}
for epsilon, private in released.items():
    params = estimator.params(epsilon=epsilon, radius=5.0)
    reports = jnp.asarray(private.reports)
    head = estimator.fit(jax.random.key(2), params, features, reports)
    linear[epsilon] = accuracy(responses @ np.asarray(head.theta))

# %% [markdown]
# ## A net and a policy
# Both are trained by `debiased_loss`, which is unbiased for the loss of the labels. The net's margin is the difference
# of two rewards. The policy's margin is DPO's: β times the difference of two log ratios of the policy to its reference,
# which is uniform here.


# %%
def net(weights, x):
    return jnp.tanh(x @ weights["in"] + weights["bias"]) @ weights["out"]


def net_margin(weights, prompt, one, other):
    scores = net(weights, prompt[jnp.array([one, other])])
    return scores[0] - scores[1]


def dpo_margin(weights, prompt, one, other):
    log_ratios = jax.nn.log_softmax(net(weights, prompt)) + jnp.log(num_responses)
    return beta * (log_ratios[one] - log_ratios[other])


def trainer(margin):
    """Returns a function of ε and reports, which trains by AdamW on batches."""
    start = {"in": jax.random.normal(jax.random.key(3), (dim, 64)) / dim**0.5}
    start |= {"bias": jnp.zeros(64), "out": jnp.zeros(64)}
    optimizer = optax.adamw(2e-3, weight_decay=1e-2)
    table = tuple(map(jnp.asarray, (responses, prompts, first, second)))

    @jax.jit
    def train(epsilon, reports, table):
        texts, *columns = table

        def loss(weights, rows):
            prompt, one, other = (column[rows] for column in columns)
            margins = jax.vmap(margin, (None, 0, 0, 0))
            values = margins(weights, texts[prompt], one, other)
            return debiased_loss(values, reports[rows], epsilon).mean()

        def step(carry, key):
            weights, state = carry
            rows = jax.random.randint(key, (batch_size,), 0, num_pairs)
            gradient = jax.grad(loss)(weights, rows)
            updates, state = optimizer.update(gradient, state, weights)
            return (optax.apply_updates(weights, updates), state), None

        keys = jax.random.split(jax.random.key(4), num_steps)
        return jax.lax.scan(step, (start, optimizer.init(start)), keys)[0][0]

    return lambda epsilon, reports: train(
        jnp.float32(epsilon), jnp.asarray(reports), table
    )


# each compiles once, for every ε
train_net, train_policy = trainer(net_margin), trainer(dpo_margin)
nets, policies = (
    {epsilon: train(epsilon, private.reports) for epsilon, private in released.items()}
    for train in (train_net, train_policy)
)

# %% [markdown]
# ## The cost of privacy
# For the policy we show the mean reward of its responses to held-out prompts. The reference has the mean of all
# responses.

# %% alt="Against ε. Left: held-out pairs in order, the linear head at one half. Right: the policy's reward."
held_out = responses[num_train:]
true_rewards = reward(held_out)


def mean_reward(weights):
    policy = np.asarray(jax.nn.softmax(net(weights, held_out)))
    return (policy * true_rewards).sum(axis=1).mean()


shares = pd.DataFrame(
    {
        "linear head": linear,
        "net": {e: accuracy(net(nets[e], responses)) for e in epsilons},
        "policy, by DPO": {e: accuracy(net(policies[e], responses)) for e in epsilons},
    }
)
rewards = [mean_reward(weights) for weights in policies.values()]
names = ["∞" if np.isinf(epsilon) else f"{epsilon:g}" for epsilon in epsilons]
figure = plotting.panels(1, 2)
left, right = figure.axes
for (name, values), style in zip(shares.items(), ("s-", "o-", "^-"), strict=True):
    left.plot(names, values, style, label=name)
left.set(xlabel="ε, one label", ylabel="held-out pairs in the true order")
left.legend()
right.plot(names, rewards, "^-", color="C2", label="policy, by DPO")
for value, line, name in (
    (true_rewards.mean(), ":", "reference"),
    (true_rewards.max(axis=1).mean(), "--", "best responses"),
):
    right.axhline(value, color="grey", linestyle=line, label=name)
right.set(xlabel="ε, one label", ylabel="mean reward")
right.legend()
figure

# %%
print(shares.round(3))
if num_steps >= 1_000:
    assert shares["linear head"][1.0] < 0.6 < 0.85 < shares["net"][1.0]

# %% [markdown]
# ## Claims, versions, seconds

# %%
print(*(private.claim for private in released.values()), sep="\n")

# %%
seconds = time.perf_counter() - start
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {seconds:.0f} s")

# %% [markdown]
# **What not to conclude:** that private labels cost as little elsewhere. Here 20,000 labels train small models, and
# prompts and responses are public: the claim is for labels only.

# %% [markdown]
# ## References
# * `debiased_loss`: Natarajan et al. (2013). Learning with Noisy Labels. [papers.nips.cc](https://papers.nips.cc/paper/2013/hash/3871bd64012152bfb53fdf04b401193f-Abstract.html)
# * `debiased_loss` for DPO: Chowdhury, Kini & Natarajan (2024). Provably Robust DPO: Aligning Language Models
#   with Noisy Feedback. [arXiv:2403.00409](https://arxiv.org/abs/2403.00409)
# * `debiased_rr`: Chowdhury, Zhou & Natarajan (2023). Differentially Private Reward Estimation with Preference
#   Feedback. [arXiv:2310.19733](https://arxiv.org/abs/2310.19733)
# * randomized response: Warner (1965). Randomized Response: A Survey Technique for Eliminating Evasive Answer
#   Bias. [doi:10.1080/01621459.1965.10480775](https://doi.org/10.1080/01621459.1965.10480775)
