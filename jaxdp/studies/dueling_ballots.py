"""Find the winner of an election by private duels, and the number of voters needed.

Every voter answers one duel, or a few, from their ballot. Reports how often
each learner names the winner, on these ballots and in larger electorates
with the same distribution of ballots, and how often the estimators of
private-ranking name it on these ballots. This simulation is for people who
may see the ballots.
"""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import dueling, plotting
from jaxdp.core import Environment, Interface, Learner, Space, pairs
from jaxdp.dueling import ballot_matrix
from jaxdp.preferences import Ballots, read_ballots, sample_rankings
from jaxdp.preferences.ballots import UNRANKED
from jaxdp.registry import LEARNERS, LearnerEntry
from jaxdp.simulation import Run, Snapshot, simulator
from jaxdp.simulation.run.values import parameters
from jaxdp.studies.arguments import Key, NumSeeds, fixed_delta, grid
from jaxdp.studies.ballots_report import NONE, NOT_PRIVATE, ONE_COIN, SURELY, fewest_seeds, report, winner_of
from jaxdp.studies.comparison import compare, learner_labels, resize
from jaxdp.studies.declared import Derived, Study
from jaxdp.studies.private_ranking import UNKNOWN, private_ranking
from jaxdp.studies.seeds import TooFewSeeds, warn_of_few_seeds
from jaxdp.validation import check_choice, check_count, check_delta, check_positive

EPSILONS = (0.5, 1.0, 2.0, 4.0, float("inf"))
NUM_SEEDS = 160  # with nine learners and one miss, the lower limit is still above 95%
DELTA = 1e-6
STEPS = (1, 2, 5)  # electorate sizes are the number of voters times these factors times powers of ten
LARGEST = 1e7  # maximum electorate size, as a multiple of the number of voters
ROUNDS = 10_000  # maximum number of rounds in a resampled electorate for a learner without counts
MOST_ROUNDS = 2**31 - 1
TILE_SIZE = 50
NOT_PLAYED = -2
SYNTHETIC_VOTERS = 1_000
ABILITIES = {"ann": 0.8, "bob": 0.3, "cem": 0.0, "dee": -0.3, "eve": -0.8}


def synthetic_election() -> Ballots:
    """Returns 1,000 synthetic ballots for five candidates; every call returns the same ballots.

    Voters rank by the Plackett-Luce model; a third of the voters rank only their first three candidates.
    """
    names, abilities = zip(*ABILITIES.items(), strict=True)
    utilities = jnp.tile(jnp.asarray(abilities, jnp.float32), (SYNTHETIC_VOTERS, 1))
    ranked = np.asarray(sample_rankings(jax.random.key(2003), utilities)).tolist()
    orders = [order[:3] if voter % 3 == 0 else order for voter, order in enumerate(ranked)]
    counts: dict[tuple[tuple[int, ...], ...], int] = {}
    for order in orders:
        groups = tuple((item,) for item in order)
        counts[groups] = counts.get(groups, 0) + 1
    return Ballots(names, tuple(counts), tuple(counts.values()))


def naming_learners() -> dict[str, LearnerEntry]:
    """Returns the dueling bandits for which `named_arm` can find a winner in the releases, keyed by name."""
    learners = {}
    for name, entry in LEARNERS.items():
        num_arms, learner = entry.sizes.get("num_arms", 0), entry.make()
        if num_arms < 2 or learner.interface is None:
            continue
        if learner.interface._replace(recommendation=None) != Interface(pairs(num_arms), Space("integers", (), 0, 1)):
            continue
        state = jax.eval_shape(learner.init, jax.random.key(0), learner.params(**entry.values))
        if hasattr(state.public, "active") or leads_of(state.public) is not None:
            learners[name] = entry
    return learners


def default_learners(known: Mapping[str, LearnerEntry]) -> list[str]:
    """Returns the names in `known`, but only the first of several learners that differ only in their noise."""
    firsts: dict[Any, str] = {}
    for name, entry in known.items():
        firsts.setdefault((entry.factory, entry.variant.get("release")), name)
    return list(firsts.values())


def make_learner(name: str, entry: LearnerEntry, num_arms: int, horizon: int) -> Learner:
    """Makes a learner for `num_arms` alternatives and `horizon` rounds; features, if required, are np.eye(num_arms)."""
    factory = getattr(dueling, name, None)
    if factory is not None and "features" in parameters(factory):
        return factory(features=np.eye(num_arms), **entry.variant)
    return resize(entry, horizon, num_arms=num_arms).make()


def leads_of(public: Any) -> Any:
    """Returns M ([num_arms, num_arms]), where M[i, j] - M[j, i] is arm i's public lead over arm j.

    Returns None if the leads are not public.
    """
    return getattr(public, "wins", getattr(getattr(public, "released", None), "lead", None))


def named_arm(snapshot: Snapshot) -> jax.Array:
    """Returns the arm that a learner's releases name as the winner, [] int32; -1 if the releases name no arm.

    If the learner eliminates arms, the winner is the only active arm. Otherwise the winner is the arm that leads
    against the largest number of other arms, by reported or released wins; among several such arms, the arm with the
    largest sum of leads.
    """
    public = snapshot.public
    if hasattr(public, "active"):
        is_decided = jnp.sum(public.active, dtype=jnp.int32) == 1
        return jnp.where(is_decided, jnp.argmax(public.active), NONE).astype(jnp.int32)
    leads = leads_of(public)
    assert leads is not None
    leads = leads - leads.T
    beaten = jnp.sum(leads > 0, axis=1, dtype=jnp.int32)
    total_leads = jnp.where(beaten == beaten.max(), jnp.sum(leads, axis=1), jnp.sum(jnp.minimum(leads, 0)) - 1)
    return jnp.where(beaten.max() > 0, jnp.argmax(total_leads), NONE).astype(jnp.int32)


def votes(
    ballots: Annotated[
        Path | None,
        typer.Option(
            help="PrefLib file of ranked ballots, of type soc, soi, toc or toi. Default: a synthetic election."
        ),
    ] = None,
) -> Ballots:
    """Reads the ballots of a file; makes synthetic ballots if `ballots` is None."""
    return synthetic_election() if ballots is None else read_ballots(ballots)


def dueling_ballots(
    ballots: Annotated[Ballots, Derived(votes)],
    *,
    epsilon: Annotated[
        Sequence[float], grid("Privacy budget of one answer, > 0; inf for no privacy. Repeat for several.")
    ] = EPSILONS,
    learner: Annotated[
        Sequence[str],
        grid(
            "Learner, by its name in `list`. Repeat for several. Default: all that name a winner, each with one kind "
            "of noise."
        ),
    ] = (),
    num_seeds: NumSeeds = NUM_SEEDS,
    answers: Annotated[
        int, typer.Option(help="Duels that each voter answers. A voter's ε is this number times the ε of one answer.")
    ] = 1,
    largest: Annotated[
        float, typer.Option(help="Size of the largest resampled electorate, as a multiple of the number of voters.")
    ] = LARGEST,
    rounds: Annotated[
        int, typer.Option(help="Largest number of rounds for learners that play round by round.")
    ] = ROUNDS,
    unranked: Annotated[
        str,
        typer.Option(
            help="A voter's answer in a duel between a ranked alternative and an alternative that the ballot leaves "
            "out. unknown: a fair coin. last: the ranked alternative, as elections count ballots. The report names "
            "both winners."
        ),
    ] = UNKNOWN,
    delta: Annotated[float, typer.Option(help="Delta of learners with Gaussian noise, in (0, 1).")] = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Simulates the winners that private duels and private estimators name, for every budget and seed.

    Duels are simulated for every learner, in all electorates with few enough rounds for it. Estimators get only the
    ballots of the first electorate.

    Seeds differ in the privacy noise, the order of voters, the voters' coins and, in larger electorates, the sample of
    voters.

    In the first electorate, every voter of the ballots answers `answers` duels (`ballot_duels`). Larger electorates are
    resampled: for each answer, a new voter is drawn from the ballots with replacement. Therefore the answers come from
    `matrix_duels` on the matrix of the ballots, as totals if the learner supports counts. Larger electorates show the
    results for more voters who vote like these voters, but contain no more information about the voters' opinions. The
    budget of a voter is `answers` times the budget of one answer. The estimators' privacy unit is a ballot, and their
    budget is a voter's budget.

    Returns:
        A dataset with `named` (learner, epsilon, voters, seed), the index of the named alternative (-1 if no
        alternative is named, NaN where nothing was simulated); `correct`, whether the named alternative is the winner
        of the ballots (NaN where `named` is NaN); and `first` (estimator, epsilon, seed), the index of the alternative
        that each estimator of `private_ranking` ranks first on the ballots (NaN if its fit fails). The dataset has the
        coordinates `voters` and `item`, `voter_epsilon` and the estimators' `noise` along epsilon, `trust_model` along
        learner, and the scalars `winner`, `rule`, `answers`, `delta` and `estimator_delta`.

    Raises:
        ValueError: if a value is out of range.
    """
    check_delta(delta)
    known = naming_learners()
    names = list(learner) or default_learners(known)
    for name in names:
        check_choice("learner", name, tuple(known))
    answers, rounds = check_count("answers", answers), check_count("rounds", rounds)
    if not check_positive("largest", largest) >= 1:
        raise ValueError(f"largest must be >= 1, got {largest}")
    if check_choice("unranked", unranked, UNRANKED) == "last":
        ballots = ballots.with_unranked_last()
    ballot_world = dueling.ballot_duels(ballots, answers_per_voter=answers)
    matrix = ballot_matrix(ballots)
    winner, rule = winner_of(ballots)
    resampled_world = dueling.matrix_duels(matrix, regret="strong" if rule == "Condorcet" else "borda")
    voters = electorates(ballots.num_ballots, answers, largest)
    warn_of_few_seeds(
        num_seeds, fewest_seeds(len(names)), f"which budgets name the winner in {SURELY:.0%} of the repetitions"
    )

    def build(learner: str) -> Run:
        return _run(learner, known[learner], ballot_world, resampled_world, len(matrix), answers, voters, rounds, delta)

    results = compare(
        build, {"learner": names}, epsilon=epsilon, num_seeds=num_seeds, key=key, tile=TILE_SIZE, **scheduling
    )
    results["named"] = results.named.where(results.named != NOT_PLAYED)
    claims = [known[name].make().guarantee(**known[name].values) for name in names]
    with warnings.catch_warnings(action="ignore", category=TooFewSeeds):  # the warning is about an unused verdict
        ranked = private_ranking(
            ballots, epsilon=[answers * budget for budget in epsilon], num_seeds=num_seeds, key=key
        )
    first = ranked["rank"].fillna(np.inf).argmin("item").where(ranked["rank"].notnull().all("item"))
    results["correct"] = (results.named == winner).astype(float).where(results.named.notnull())
    results["first"] = first.assign_coords(epsilon=results.epsilon.values).reset_coords(drop=True)
    return results.assign_coords(
        noise=("epsilon", ranked.noise.values),
        voter_epsilon=("epsilon", answers * np.asarray(results.epsilon.values, float)),
        trust_model=("learner", [claim.trust_model for claim in claims]),
        item=("item", list(ballots.items)),
        winner=ballots.items[winner],
        rule=rule,
        answers=answers,
        delta=delta,
        estimator_delta=float(ranked.delta),
    ).transpose("learner", "epsilon", "voters", "seed", ...)


def electorates(num_voters: int, answers: int, largest: float) -> list[int]:
    """Returns the sizes of electorates: 1, 2, 5, 10, ... times `num_voters`.

    Factors above 1 are at most `largest`, and so small that the voters, who give `answers` answers each, give at most
    `MOST_ROUNDS` answers in total. The factor 1 is always included.
    """
    factors = [step * 10**power for power in range(10) for step in STEPS]
    limit = min(largest, MOST_ROUNDS / (answers * num_voters))
    return [factor * num_voters for factor in factors if factor == 1 or factor <= limit]


def _run(
    name: str,
    entry: LearnerEntry,
    ballot_world: Environment,
    resampled_world: Environment,
    num_arms: int,
    answers: int,
    voters: Sequence[int],
    rounds: int,
    delta: float,
) -> Run:
    """Returns a run with the output `named` [len(voters)], the arm that a learner names for each electorate size.

    For the first size, the learner plays in `ballot_world`. For a larger size, it plays in `resampled_world` if the
    learner supports counts, or if the size needs at most `rounds` rounds. Otherwise the output is `NOT_PLAYED`.
    """
    fixed = fixed_delta(entry.values, delta, voters[0])
    record = {"named": named_arm}

    def make(horizon: int) -> Learner:
        return make_learner(name, entry, num_arms, horizon)

    size = answers * voters[0]
    has_counts = make(size).counts is not None
    checkpoints = [answers * count for count in voters[1:] if has_counts or answers * count <= rounds]
    runs = {"ballots": simulator(make(size), ballot_world, size, record=record, outcomes=[])}
    if checkpoints:
        engine = "counts" if has_counts else "auto"
        runs["resampled"] = simulator(
            make(checkpoints[-1]),
            resampled_world,
            checkpoints[-1],
            checkpoints=checkpoints,
            record=record,
            outcomes=[],
            engine=engine,
        )

    def simulate(key: jax.Array, params: Mapping[str, Any]) -> dict[str, jax.Array]:
        keys = jax.random.split(key)
        values = jnp.concatenate(
            [run.simulate(keys[index], params[part])["named"] for index, (part, run) in enumerate(runs.items())]
        )
        return {"named": jnp.concatenate([values, jnp.full(len(voters) - len(values), NOT_PLAYED, jnp.int32)])}

    return Run(
        simulate=simulate,
        params=lambda *, epsilon: {part: run.params(epsilon=epsilon, **fixed) for part, run in runs.items()},
        guarantee=lambda *, epsilon: runs["ballots"].guarantee(epsilon=epsilon, **fixed),
        dims={"named": ("voters",)},
        coords={"voters": list(voters)},
    )


def figure(results: xr.Dataset) -> Figure:
    """Draws how often the winner is named against the number of voters, with one panel for every budget."""
    winner = str(results.winner.values).replace("$", r"\$")
    return plotting.facets(
        results.correct.drop_vars(
            ("winner", "rule", "answers", "delta", "estimator_delta", "voter_epsilon", "noise", "trust_model")
        ),
        x="voters",
        hue="learner",
        col="epsilon",
        labels=learner_labels(results.trust_model),
        abreast=3,
        band="share",
        xscale="log",
        ylabel=f"how often {winner} is named",
        title=f"The winner of an election by private duels ({NOT_PRIVATE})",
        note=f"First mark: the voters of the ballots. Other marks: electorates resampled from them. {ONE_COIN}",
    )


STUDY = Study(
    dueling_ballots,
    figure,
    report,
    quick={"num_seeds": 10, "learner": ("rucb", "rucb_blocks")},
    minutes=2,
)
