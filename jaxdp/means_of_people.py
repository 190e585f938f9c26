"""Elimination of arms in phases, based on one number for each person, the mean of the person's rewards."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import (
    Guarantee,
    Interface,
    Learner,
    Scalar,
    Space,
    State,
    Visit,
    Visits,
    arms,
    default_float,
    factory,
    guarantee_for,
    interval_leaves,
    leaf_rounded_down,
    only,
    scalar_leaf,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.core.person_values import PERSON
from jaxdp.core.visited import ANY_VISIT
from jaxdp.mechanisms import laplace
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.numerics import fixed_point
from jaxdp.random import ties
from jaxdp.random.key_bits import own_word
from jaxdp.validation import check_at_least, check_choice, check_count, check_list, check_number, check_probability

PRECISION = 1e-4  # upper bound on v / u, for v visits of a person in a phase, if the integer u represents a mean of 1
MOST_RANGES = 2**10  # maximum k; totals are stored in steps of 2^-20 / k, where k is larger if people have many visits
REWARDS = ("binary", "bounded")
ENDS = ("reward_low", "reward_high")


@pytree_dataclass
class Params:
    """Parameters of one lane. All lanes share the tables.

    Attributes:
        epsilon: [] float > 0, budget of one release; infinity is the non-private algorithm.
        low: [] float, lower end of the interval to which rewards are clipped.
        high: [] float, upper end of this interval.
        scale: [] float, 2^20 / (high - low); the difference of a reward and low is multiplied by it, and then rounded.
        log_chance: [] float > 0, ln(2 num_arms max(phases - 1, 1) / failure_prob).
        taste: [] float >= 0, bound on the standard deviation of people's mean rewards, divided by the range of rewards.
        rank: [num_people] int32, position of each person in the order of first visits.
        before: [phases + 1, num_people] int32, number of visits of each person before the start of each phase; in the
            last row, before the end of the last phase.
    """

    epsilon: Scalar
    low: Scalar
    high: Scalar
    scale: Scalar
    log_chance: Scalar
    taste: Scalar
    rank: np.ndarray
    before: np.ndarray


class Public(NamedTuple):
    """Public state: released values, public coins and public counts.

    Attributes:
        round: [] integer, number of rounds played.
        coins: [2] uint32, random words that determine the phases and the arms of people.
        active: [num_arms] bool, the arms that remain.
        best_arm: [] int32, the arm with the largest mean in the last release, among active arms with people in this
            phase; unchanged if there is no such arm. A random arm before the first release.
        people: [num_arms] integer, number of people with counted rewards for each arm in this phase.
        spread: [num_arms] float, the sum of 1 / v over these people, where v is the person's number of visits in the
            phase.
    """

    round: jax.Array
    coins: jax.Array
    active: jax.Array
    best_arm: jax.Array
    people: jax.Array
    spread: jax.Array


class PhaseVisit(NamedTuple):
    """A visit and its position in the phase. Both depend only on the schedule and on the public state.

    After the last phase, `nth` and `visits` are meaningless.

    Attributes:
        arm: [] int32, the person's arm in this phase if the reward counts, otherwise `best_arm`.
        is_heard: [] bool, whether the reward counts.
        nth: [] int32, number of the person's earlier visits in this phase.
        visits: [] int32 >= 1, number of all visits of the person in this phase.
    """

    arm: jax.Array
    is_heard: jax.Array
    nth: jax.Array
    visits: jax.Array


class Report(NamedTuple):
    """A round's report: the visit and the reward. A reward that does not count is replaced by 0."""

    visit: Visit
    reward: jax.Array


@factory
def person_means(
    *, num_arms: int, visits: Visits, phase_ends: Sequence[int], releases: int = 1, rewards: str = "binary"
) -> Learner:
    r"""Explores arms in phases, and uses only the mean of each person's rewards in a phase.

    In a phase each participant plays only one arm, and adds one number to this arm's mean. After each phase, noisy
    means over participants are released, and arms with means that are too low are dropped. After the last phase the
    best arm is played. With one phase everybody participates, and this is explore-then-commit. With several phases,
    each person participates in `releases` phases, which a public coin determines before the person's first visit. In
    each of these phases another public coin determines the arm that the person plays in all rounds of the phase. In all
    other rounds the best arm of the last release is played; before the first release this is a random arm.

    Args:
        num_arms: number of arms, >= 2.
        visits: the public schedule of visits; the environment must have the same schedule.
        phase_ends: rounds after which means are released, as increasing integers >= 1.
        releases: J, the number of phases in which each person participates, from 1 to the number of phases.
        rewards: "binary" ([] int32, clipped to {0, 1}) or "bounded" ([] float, clipped; NaN counts as `reward_low`).

    Returns:
        A learner that plays arms ([] int32) in environments with these visits, round by round.

    Raises:
        ValueError: if an argument is not as described, the last phase ends after the schedule, a person has more than
            107,374 visits in a phase, or there are too many people (2 million are always accepted). The result's
            `params` raises this error if a value is out of range, or 2^20 / (reward_high - reward_low) overflows.

    Values:
        epsilon: the privacy budget of a person, > 0.
        failure_prob: with several phases: in (0, 1), by default 0.05. With `releases` = 1 and people in random order,
            the probability that any phase before the last drops the best arm is at most this.
        taste: with several phases: a bound on the standard deviation of people's mean rewards, divided by the range of
            rewards; by default 0. Mean rewards are assumed to be normally distributed around the population's mean.
        reward_low, reward_high: the interval to which bounded rewards are clipped: finite, reward_low < reward_high; by
            default 0 and 1.

    Privacy:
        - Claim: epsilon-DP in the central model, for a person.
        - Unit: all data of a person; adjacency: replace one person, that is their answers in all their rounds. Who
          comes when is public.
        - Sensitivity: in one release a person changes one arm's total, by at most 1. Totals are integers in units of 1
          / u: each of v rewards r in [0, 1] adds floor(r * floor(u / v)). Each release has Laplace(J / epsilon) noise
          for each arm; the J releases of a person compose. Totals of other phases do not depend on the person.
        - Released: `best_arm` and `active`, which are post-processing of noisy totals.
        - Private: totals of the phase. Rewards that do not count (in phases in which the person does not participate,
          and after the last phase) do not reach the learner.
        - Proof: `docs/proofs/person.md`.

    Source:
        Own; the Laplace mechanism is Dwork & Roth (2014), Theorem 3.6.

    Deviations:
        Totals are integers. u is a multiple of 2^20, and so large that rounding makes a person's mean of binary rewards
        too small by less than 1e-4. Bounded rewards are first rounded to multiples of 2^-20 of their range; the error
        of a person's mean is then less than 2.01e-4 of the range.

    Math:
        Let person $i$ have $v_i$ visits in the phase. An arm $a$ of $n_a$ people has, for rewards $x_{i, t}$ scaled to
        $[0, 1]$, the released mean

        $$
        \hat \mu_a = \frac{1}{n_a} \Big( \sum_{i : a_i = a} \frac{1}{v_i} \sum_t x_{i, t} + Z_a \Big), \quad
        Z_a \sim \mathrm{Lap}(J / \varepsilon)
        $$

        After each phase, an arm is dropped if $\hat \mu_a + c_a < \max_b (\hat \mu_b - c_b)$. With $K$
        arms, $P \ge 2$ phases, $s_a = \sum_{i : a_i = a} 1 / v_i$ and $L = \ln(2 K (P - 1) / \beta)$, where $\beta$ is
        `failure_prob`,

        $$
        c_a = \frac{1}{n_a} \Big( \sqrt{2 L (s_a / 4 + n_a \, \mathrm{taste}^2)} + \frac{J L}{\varepsilon} \Big)
        $$

    Examples:
        >>> import jax, jaxdp
        >>> visits = jaxdp.Visits.random(people=500, each=20)
        >>> learner = jaxdp.person_means(num_arms=2, visits=visits, phase_ends=[1_000])
        >>> run = jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.9, 0.1], visits=visits), horizon=10_000)
        >>> print(run.guarantee(epsilon=1.0)["learner"])
        1-DP (rounding: delta 2e-10), central, one person
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> bool(outputs["pseudo_regret"][-1] < 500)
        True
    """
    num_arms = check_count("num_arms", num_arms, 2)
    if not isinstance(visits, Visits):
        raise ValueError(f"visits must be a jaxdp.Visits, got {type(visits).__name__}")
    ends = _checked_ends(phase_ends, len(visits))
    phases = len(ends)
    releases = check_count("releases", releases, maximum=phases)
    binary = check_choice("rewards", rewards, REWARDS) == "binary"
    rank, before = _order_of_people(visits), _visits_before(visits, (0, *ends))
    ranges = _ranges(int(np.diff(before, axis=0).max()))
    people_units = ranges * fixed_point.UNITS  # u
    if visits.num_people * ranges > jnp.iinfo(jnp.int32).max:
        raise ValueError(f"visits must have < 2^31 / {ranges} people who come this often, got {visits.num_people}")

    def params(
        *,
        epsilon: float,
        failure_prob: float = 0.05,
        taste: float = 0.0,
        reward_low: float = 0.0,
        reward_high: float = 1.0,
    ) -> Params:
        check_probability("failure_prob", failure_prob)
        check_at_least("taste", check_number("taste", taste), 0.0)
        lowest, highest = interval_leaves(reward_low, reward_high, names=ENDS)
        return Params(
            epsilon=leaf_rounded_down("epsilon", check_laplace(epsilon, numbers=num_arms, times=releases) / releases),
            low=lowest,
            high=highest,
            scale=scalar_leaf("scale", fixed_point.UNITS / (float(highest) - float(lowest))),
            log_chance=scalar_leaf("log_chance", math.log(2 * num_arms * max(phases - 1, 1) / failure_prob)),
            taste=scalar_leaf("taste", taste),
            rank=rank,
            before=before,
        )

    def claim(epsilon: float) -> Guarantee:
        how = "one release" if releases == 1 else f"{releases} releases at epsilon / {releases} each"
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit=PERSON,
            unit="person",
            argument=f"the mean of a person's rewards enters one total, at L1 sensitivity 1, in {how}",
            numerical_delta=laplace_delta(epsilon / releases, releases=releases, spread=num_arms),
        )

    def init(key, params: Params) -> State:
        del params
        key_phase, key_arm, key_best = jax.random.split(key, 3)
        coins = jnp.stack([own_word(key_phase), own_word(key_arm)])
        public = Public(
            round=jnp.zeros((), jnp.result_type(int)),
            coins=coins,
            active=jnp.ones(num_arms, bool),
            best_arm=jax.random.randint(key_best, (), 0, num_arms, jnp.int32),
            people=jnp.zeros(num_arms, jnp.result_type(int)),
            spread=jnp.zeros(num_arms, default_float()),
        )
        return State(fixed_point.zero(num_arms), public)

    def phase_visit_of(params: Params, public: Public, visit: Visit) -> PhaseVisit:
        """Returns the arm to play, whether the reward counts, and the visit's position in the phase."""
        phase = jnp.sum(public.round >= jnp.asarray(ends), dtype=jnp.int32)
        current = jnp.minimum(phase, phases - 1)
        person_rank = jnp.asarray(params.rank)[visit.person]
        before_phase, before_next = (jnp.asarray(params.before)[current + step, visit.person] for step in (0, 1))
        # In the order of first visits, each group of `phases` people starts in different phases.
        group = person_rank // phases
        first_phase = (person_rank % phases + ties.rank(public.coins[0], group) % phases) % phases
        later = (current - first_phase) % phases  # the person participates if this is below `releases`
        # In a phase, participants are numbered by `index`, and each group of `size` of them plays different arms.
        index, size = group * releases + later, jnp.sum(public.active, dtype=jnp.int32)
        slot = (index % size + ties.rank(public.coins[1], index // size) % size) % size
        arm = jnp.argsort(~public.active, stable=True)[slot].astype(jnp.int32)
        is_heard = (phase < phases) & (later < releases) & (before_phase <= visit.nth) & (visit.nth < before_next)
        return PhaseVisit(
            jnp.where(is_heard, arm, public.best_arm), is_heard, visit.nth - before_phase, before_next - before_phase
        )

    def act(key, params: Params, public: Public, context: Visit) -> jax.Array:
        del key
        return phase_visit_of(params, public, context).arm

    def privatize(key, params: Params, public: Public, context: Visit, action, feedback) -> Report:
        del key, action
        return Report(context, jnp.where(phase_visit_of(params, public, context).is_heard, feedback, 0))

    def units_of(params: Params, reward: jax.Array) -> jax.Array:
        """Returns a clipped reward as an integer in [0, 2^20]."""
        if binary:
            return jnp.clip(reward, 0, 1).astype(jnp.result_type(int)) * fixed_point.UNITS
        return fixed_point.units(reward - params.low, jnp.asarray(params.scale))

    @fixed_point.in_64_bits
    def contribution_of(units: jax.Array, visits_in_phase: jax.Array) -> jax.Array:
        """Returns the integer that one reward adds to a total. All rewards of a person in a phase add at most u."""
        weight = people_units // jnp.maximum(visits_in_phase, 1).astype(jnp.int64)
        return ((units.astype(jnp.int64) * weight) >> fixed_point.BITS).astype(units.dtype)

    def update(key, params: Params, state: State, report: Report) -> State:
        public: Public = state.public
        phase_visit = phase_visit_of(params, public, report.visit)
        is_played = (jnp.arange(num_arms, dtype=jnp.int32) == phase_visit.arm) & phase_visit.is_heard
        starts = (public.round == 0) | jnp.any(public.round == jnp.asarray(ends))
        contribution = contribution_of(units_of(params, report.reward), phase_visit.visits)
        totals = fixed_point.add(state.private, jnp.where(is_played, contribution, 0), restart=starts)
        is_new = is_played & (phase_visit.nth == 0)
        people = jnp.where(starts, 0, public.people) + is_new.astype(public.people.dtype)
        inverse = 1 / jnp.maximum(phase_visit.visits, 1).astype(default_float())
        spread = jnp.where(starts, 0, public.spread) + jnp.where(is_new, inverse, 0)
        after = public._replace(round=public.round + 1, people=people, spread=spread)
        after = branch(
            jnp.any(after.round == jnp.asarray(ends)), lambda: release(key, params, totals, after), lambda: after
        )
        return State(totals, after)

    def release(key, params: Params, totals: Any, public: Public) -> Public:
        """Releases means, and drops arms with means that are too low."""
        noisy = laplace(key, totals, params.epsilon, l1_sensitivity=float(ranges)) / ranges
        people = jnp.maximum(public.people, 1).astype(noisy.dtype)
        is_known = public.active & (public.people > 0)
        means = jnp.where(is_known, noisy / people, -jnp.inf)
        best_arm = ties.largest(means, ties.ranks(ties.word_beside(key), num_arms))
        variance = public.spread / 4 + params.taste**2 * people
        radius = (jnp.sqrt(2 * params.log_chance * variance) + params.log_chance / params.epsilon) / people
        is_low = is_known & (means + radius < jnp.max(means - radius))
        return public._replace(
            active=public.active & ~is_low, best_arm=jnp.where(is_known.any(), best_arm, public.best_arm)
        )

    names = ("epsilon", *(() if phases == 1 else ("failure_prob", "taste")), *(() if binary else ENDS))
    values = only(params, names)
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        interface=Interface(
            arms(num_arms), Space("integers", (), 0, 1) if binary else Space("numbers"), context=ANY_VISIT
        ),
        min_horizon=ends[-1] + 1,
        clip=None if binary else lambda params: (params.low, params.high),
        best_action=lambda params, public: public.best_arm,
        visits=visits,
    )


def _checked_ends(phase_ends: Any, rounds: int) -> tuple[int, ...]:
    ends = tuple(check_count("phase_ends", end, maximum=rounds) for end in check_list("phase_ends", phase_ends))
    if not ends:
        raise ValueError(f"phase_ends must be a list of at least one round, got {phase_ends!r}")
    if any(first >= second for first, second in itertools.pairwise(ends)):
        raise ValueError(f"phase_ends must increase, got {list(ends)}")
    return ends


def _order_of_people(visits: Visits) -> np.ndarray:
    """Returns the position ([num_people]) of each person in the order of first visits."""
    rank = np.empty(visits.num_people, np.int32)
    rank[visits.person[visits.nth == 0]] = np.arange(visits.num_people)
    return rank


def _visits_before(visits: Visits, rounds: Sequence[int]) -> np.ndarray:
    """Returns the number ([len(rounds), num_people]) of visits of each person before each of these rounds."""
    counts = [np.bincount(visits.person[:end], minlength=visits.num_people) for end in rounds]
    return np.stack(counts).astype(np.int32)


def _ranges(most_visits: int) -> int:
    """Returns k, the least power of two with most_visits / (k * 2^20) < `PRECISION`.

    A person's mean of 1 is then the integer k * 2^20 (u in the docstring of `person_means`).
    """
    ranges = 1
    while most_visits >= PRECISION * ranges * fixed_point.UNITS:
        ranges *= 2
    if ranges > MOST_RANGES:
        raise ValueError(
            f"visits must have at most {int(PRECISION * MOST_RANGES * fixed_point.UNITS)} visits of a person in a "
            f"phase, got {most_visits}"
        )
    return ranges
