# %% [markdown]
# # Any model on private labels
# People compare two responses to a prompt, and only the winner is private. Each label is randomized once. This notebook
# trains a linear reward head, a net and a policy on the same reports. Training is post-processing, so each of them has
# the claim of the reports, and all of them together have it, too.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

from jaxdp.estimation import debiased_rr
from jaxdp.preferences import debiased_loss, private_labels

# %% tags=["parameters"] small={"num_pairs": 2000, "num_steps": 50, "epsilons": [1.0]}
num_prompts, num_responses, dim = 2_000, 8, 8
num_pairs, num_steps, batch_size = 20_000, 2_000, 512
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
    prompts, first = random.integers(low, high, count), random.integers(num_responses, size=count)
    return prompts, first, (first + random.integers(1, num_responses, count)) % num_responses


prompts, first, second = draw_pairs(0, num_train, num_pairs)
margins = reward(responses[prompts, first]) - reward(responses[prompts, second])
labels = random.random(num_pairs) < 1 / (1 + np.exp(-margins))  # True: the first was preferred

test_prompts, test_first, test_second = draw_pairs(num_train, num_prompts, 10_000)
first_is_better = reward(responses[test_prompts, test_first]) > reward(responses[test_prompts, test_second])


def accuracy(scores):
    """Returns how often scores of all responses order held-out pairs as the reward does."""
    scores = np.asarray(scores)
    return np.mean((scores[test_prompts, test_first] > scores[test_prompts, test_second]) == first_is_better)


# %% [markdown]
# ## Private labels
# The claim of each release is for one label. If persons give several labels, pass `persons=`, and ε is a person's.
# We compare several ε here, in a simulation. With real labels make one release: the budgets of several would add up.

# %%
released = {
    epsilon: private_labels(labels, epsilon, key=jax.random.fold_in(jax.random.key(1), number))
    for number, epsilon in enumerate(epsilons)
}
print(*(private.claim for private in released.values()), sep="\n")
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
    head = estimator.fit(
        jax.random.key(2), estimator.params(epsilon=epsilon, radius=5.0), features, jnp.asarray(private.reports)
    )
    linear[epsilon] = accuracy(responses @ np.asarray(head.theta))

# %% [markdown]
# ## A net and a policy
# Both are trained by `debiased_loss`, which is unbiased for the loss of the labels. The net's margin is the difference
# of two rewards. The policy's margin is the one of DPO: β times the difference of two log ratios of the policy to its
# reference, which is uniform here.


# %%
def net(weights, x):
    return jnp.tanh(x @ weights["in"] + weights["bias"]) @ weights["out"]


def net_margin(weights, prompt, one, other):
    scores = net(weights, prompt)
    return scores[one] - scores[other]


def dpo_margin(weights, prompt, one, other):
    log_ratios = jax.nn.log_softmax(net(weights, prompt)) + jnp.log(num_responses)
    return beta * (log_ratios[one] - log_ratios[other])


def trainer(margin):
    """Returns a function of ε and the reports: the weights after `num_steps` steps of AdamW on batches of reports."""
    start = {"in": jax.random.normal(jax.random.key(3), (dim, 64)) / dim**0.5}
    start |= {"bias": jnp.zeros(64), "out": jnp.zeros(64)}
    optimizer = optax.adamw(1e-3, weight_decay=1e-2)
    table = jnp.asarray(responses), jnp.asarray(prompts), jnp.asarray(first), jnp.asarray(second)

    @jax.jit
    def steps(epsilon, reports, table):
        texts, *columns = table

        def loss(weights, rows):
            prompt, one, other = (column[rows] for column in columns)
            values = jax.vmap(margin, (None, 0, 0, 0))(weights, texts[prompt], one, other)
            return debiased_loss(values, reports[rows], epsilon).mean()

        def step(carry, key):
            rows = jax.random.randint(key, (batch_size,), 0, num_pairs)
            updates, state = optimizer.update(jax.grad(loss)(carry[0], rows), carry[1], carry[0])
            return (optax.apply_updates(carry[0], updates), state), None

        keys = jax.random.split(jax.random.key(4), num_steps)
        return jax.lax.scan(step, (start, optimizer.init(start)), keys)[0][0]

    return lambda epsilon, reports: steps(jnp.float32(epsilon), jnp.asarray(reports), table)


train_net, train_policy = trainer(net_margin), trainer(dpo_margin)  # each compiles once, for every ε
nets = {epsilon: train_net(epsilon, private.reports) for epsilon, private in released.items()}
policies = {epsilon: train_policy(epsilon, private.reports) for epsilon, private in released.items()}

# %% [markdown]
# ## The cost of privacy
# For the policy we show the mean reward of its responses to held-out prompts. The reference has the mean of all
# responses.

# %%
held_out = responses[num_train:]


def mean_reward(weights):
    return float(np.mean(np.sum(np.asarray(jax.nn.softmax(net(weights, held_out))) * reward(held_out), axis=1)))


rewards = [mean_reward(weights) for weights in policies.values()]
names = ["∞" if np.isinf(epsilon) else f"{epsilon:g}" for epsilon in epsilons]
figure, (left, right) = plt.subplots(1, 2, figsize=(8.75, 3.5), layout="constrained")
left.plot(names, list(linear.values()), "s-", label="linear head")
left.plot(names, [accuracy(net(weights, responses)) for weights in nets.values()], "o-", label="net")
left.plot(names, [accuracy(net(weights, responses)) for weights in policies.values()], "^-", label="policy, by DPO")
left.set(xlabel="ε, one label", ylabel="held-out pairs in the true order")
left.legend()
right.plot(names, rewards, "^-", color="C2", label="policy, by DPO")
right.axhline(reward(held_out).mean(), color="grey", linestyle=":", label="reference")
right.axhline(reward(held_out).max(axis=1).mean(), color="grey", linestyle="--", label="best responses")
right.legend()
_ = right.set(xlabel="ε, one label", ylabel="mean reward")
