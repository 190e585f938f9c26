"""The winner of an election by private duels, and from how many voters on.

Every voter answers one duel, or a few, from their ballot. Says how often
each learner names the winner, beside the estimators of private-ranking on
the same ballots, and what a larger electorate that votes alike would
change. That is a simulation for whoever may see the ballots.
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
from jaxdp.simulation import Look, Run, simulator, sweep
from jaxdp.simulation.run.values import parameters
from jaxdp.studies.arguments import Key, NumSeeds, fixed_delta, grid
from jaxdp.studies.ballots_report import NONE, NOT_PRIVATE, ONE_COIN, SURELY, fewest_seeds, report, winner_of
from jaxdp.studies.declared import Made, Study
from jaxdp.studies.private_ranking import UNKNOWN, private_ranking
from jaxdp.studies.seeds import TooFewSeeds, warn_of_few_seeds
from jaxdp.studies.tiles import cpu_tile
from jaxdp.validation import check_choice, check_count, check_delta, check_positive

EPSILONS = (0.5, 1.0, 2.0, 4.0, float("inf"))
NUM_SEEDS = 160  # with nine learners one miss still leaves the lower limit above 95%
DELTA = 1e-6
STEPS = (1, 2, 5)  # of electorates, times powers of ten
LARGEST = 1e7  # times the voters that there are
ROUNDS = 10_000  # that are played one by one
MOST_ROUNDS = 2**31 - 1
TILE_SIZE = 50
NOT_PLAYED = -2
SYNTHETIC_VOTERS = 1_000
ABILITIES = {"ann": 0.8, "bob": 0.3, "cem": 0.0, "dee": -0.3, "eve": -0.8}


def synthetic_election() -> Ballots:
    """1,000 made-up ballots about five candidates, for whoever has none at hand.

    Voters rank by Plackett and Luce, and a third of them name their first three alone. The same ballots every time.
    """
    names, abilities = zip(*ABILITIES.items(), strict=True)
    utilities = jnp.tile(jnp.asarray(abilities, jnp.float32), (SYNTHETIC_VOTERS, 1))
    ranked = np.asarray(sample_rankings(jax.random.key(2003), utilities)).tolist()
    orders = [order[:3] if voter % 3 == 0 else order for voter, order in enumerate(ranked)]
    found: dict[tuple[tuple[int, ...], ...], int] = {}
    for order in orders:
        groups = tuple((item,) for item in order)
        found[groups] = found.get(groups, 0) + 1
    return Ballots(names, tuple(found), tuple(found.values()))


def naming_learners() -> dict[str, LearnerEntry]:
    """The registered dueling bandits whose releases name a winner, by name; see `named`.

    Learners of arms with features take each arm for a feature of its own.
    """
    found = {}
    for name, entry in LEARNERS.items():
        num_arms, made = entry.sizes.get("num_arms", 0), entry.make()
        if num_arms < 2 or made.interface is None:
            continue
        if made.interface._replace(answer=None) != Interface(pairs(num_arms), Space("integers", (), 0, 1)):
            continue
        state = jax.eval_shape(made.init, jax.random.key(0), made.params(**entry.values))
        if hasattr(state.public, "active") or leads_of(state.public) is not None:
            found[name] = entry
    return found


def usual(known: Mapping[str, LearnerEntry]) -> list[str]:
    """Those that play where none is chosen: of learners that differ in their noise alone, the first."""
    found: dict[Any, str] = {}
    for name, entry in known.items():
        found.setdefault((entry.factory, entry.variant.get("release")), name)
    return list(found.values())


def made_for(name: str, entry: LearnerEntry, num_arms: int, horizon: int) -> Learner:
    """The learner for so many alternatives and rounds; other sizes are for a tiny problem, and go to their defaults."""
    own = getattr(dueling, name, None)
    if own is not None and "features" in parameters(own):
        return own(features=np.eye(num_arms), **entry.variant)
    return entry.sized(**{**dict.fromkeys(entry.sizes), "num_arms": num_arms, "horizon": horizon}).make()


def leads_of(public: Any) -> Any:
    """[num_arms, num_arms], what less its transpose is how far each arm leads against the others; None if not told."""
    return getattr(public, "wins", getattr(getattr(public, "released", None), "lead", None))


def named(look: Look) -> jax.Array:
    """The arm that a learner's releases name the winner: [] int32, or -1 for none.

    Where arms are dropped for good, the one that is left alone. Else, by wins as reported or released, the arm that
    leads against the most others, and among equal ones the one of the largest leads together; none before any lead.
    """
    public = look.public
    if hasattr(public, "active"):
        alone = jnp.sum(public.active, dtype=jnp.int32) == 1
        return jnp.where(alone, jnp.argmax(public.active), NONE).astype(jnp.int32)
    leads = leads_of(public)
    assert leads is not None
    leads = leads - leads.T
    beaten = jnp.sum(leads > 0, axis=1, dtype=jnp.int32)
    together = jnp.where(beaten == beaten.max(), jnp.sum(leads, axis=1), jnp.sum(jnp.minimum(leads, 0)) - 1)
    return jnp.where(beaten.max() > 0, jnp.argmax(together), NONE).astype(jnp.int32)


def votes(
    ballots: Annotated[
        Path | None,
        typer.Option(
            help="PrefLib file of ranked ballots, of type soc, soi, toc or toi. Without it: a made-up election."
        ),
    ] = None,
) -> Ballots:
    """The ballots of a file, or made-up ones."""
    return synthetic_election() if ballots is None else read_ballots(ballots)


def dueling_ballots(
    ballots: Annotated[Ballots, Made(votes)],
    *,
    epsilon: Annotated[
        Sequence[float], grid("Budget for one answer, > 0; inf is no privacy. Repeat for several.")
    ] = EPSILONS,
    learner: Annotated[
        Sequence[str],
        grid(
            "Learner, by its name in `list`. Repeat for several; without it all that name a winner, with "
            "one noise each."
        ),
    ] = (),
    num_seeds: NumSeeds = NUM_SEEDS,
    answers: Annotated[
        int, typer.Option(help="Duels that each voter answers. A voter's ε is so many times that of one answer.")
    ] = 1,
    largest: Annotated[
        float, typer.Option(help="The largest electorate that is resampled, in times the voters that there are.")
    ] = LARGEST,
    rounds: Annotated[
        int, typer.Option(help="Rounds that are played one by one at most, by learners without totals.")
    ] = ROUNDS,
    unranked: Annotated[
        str,
        typer.Option(
            help="How a voter answers about a ranked alternative and one that the ballot leaves out: unknown, by a "
            "fair coin; or last, for the ranked one, as elections count ballots. The report names both winners."
        ),
    ] = UNKNOWN,
    delta: Annotated[float, typer.Option(help="Failure mass of learners with Gaussian noise, in (0, 1).")] = DELTA,
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Whom private duels and private estimators name the winner, for every budget, electorate and seed.

    Seeds differ in privacy's noise, in the order of voters, in their coins, and, in larger electorates, in who votes.

    The first electorate is that of the ballots: every voter answers `answers` duels (`ballot_duels`). Larger ones are
    resampled: their voters are drawn from the ballots with replacement, so that answers are those of `matrix_duels` on
    the ballots' matrix, drawn as totals where the learner has counts. Where a voter answers several duels, the voters
    of larger electorates are drawn anew for each answer. They say how an electorate would do that votes as this one;
    they hold no more information about these voters' opinions.

    Args:
        ballots: of at least two alternatives.
        epsilon: budgets for one answer, > 0; infinity is no privacy. A voter's is `answers` times as large, and so is
            that of the estimators, whose unit is a ballot.
        learner: names, of `naming_learners`; empty is all but those that differ from another one in their noise alone.
        num_seeds: repetitions.
        answers: of each voter, >= 1.
        largest: of the larger electorates, in times the voters that there are, >= 1.
        rounds: that learners without counts play in larger electorates at most, >= 1.
        unranked: "unknown" or "last", as for `Ballots.answers`.
        delta: of learners with Gaussian noise, in (0, 1).
        key: root key.
        **scheduling: as `sweep` takes it, such as `progress` and `store`.

    Returns:
        A dataset with `named` (learner, epsilon, voters, seed), the alternative that is named, -1 for none, NaN where
        nothing was simulated; `correct`, whether it is the ballots' winner, NaN as there; and `first` (estimator,
        epsilon, seed), the alternative that each estimator of `private_ranking` has in the first place, by the ballots
        alone. Coordinates `voters`, `voter_epsilon` by epsilon, `trust_model` by learner, `winner` and `rule`,
        `answers`, `delta` and `estimator_delta`.

    Raises:
        ValueError: if a value is out of range.
    """
    check_delta(delta)
    known = naming_learners()
    names = list(learner) or usual(known)
    for name in names:
        check_choice("learner", name, tuple(known))
    answers, rounds = check_count("answers", answers), check_count("rounds", rounds)
    if not check_positive("largest", largest) >= 1:
        raise ValueError(f"largest must be >= 1, got {largest}")
    if check_choice("unranked", unranked, UNRANKED) == "last":
        ballots = ballots.with_unranked_last()
    at_hand = dueling.ballot_duels(ballots, answers_per_voter=answers)
    matrix = ballot_matrix(ballots)
    winner, rule = winner_of(ballots)
    resampled = dueling.matrix_duels(matrix, regret="strong" if rule == "Condorcet" else "borda")
    voters = electorates(ballots.num_ballots, answers, largest)
    warn_of_few_seeds(
        num_seeds, fewest_seeds(len(names)), f"which budgets name the winner in {SURELY:.0%} of repetitions"
    )

    def build(learner: str) -> Run:
        return _run(learner, known[learner], at_hand, resampled, len(matrix), answers, voters, rounds, delta)

    results = sweep(
        build,
        axes={"epsilon": list(epsilon)},
        static_axes={"learner": names},
        num_seeds=num_seeds,
        key=key,
        tile_size=cpu_tile(TILE_SIZE),
        **scheduling,
    )
    results["named"] = results.named.where(results.named != NOT_PLAYED)
    claims = [known[name].make().guarantee(**known[name].values) for name in names]
    with warnings.catch_warnings(action="ignore", category=TooFewSeeds):  # its verdict is not asked for here
        ranked = private_ranking(ballots, epsilon=[answers * each for each in epsilon], num_seeds=num_seeds, key=key)
    first = ranked["rank"].argmin("item").where(ranked["rank"].notnull().all("item"))
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
    """The sizes of electorates: that of the ballots, and 2, 5, 10, ... times as many, within the range of rounds."""
    factors = [step * 10**power for power in range(10) for step in STEPS]
    most = min(largest, MOST_ROUNDS / (answers * num_voters))
    return [factor * num_voters for factor in factors if factor == 1 or factor <= most]


def _run(
    name: str,
    entry: LearnerEntry,
    at_hand: Environment,
    resampled: Environment,
    num_arms: int,
    answers: int,
    voters: Sequence[int],
    rounds: int,
    delta: float,
) -> Run:
    """One learner on the ballots, and then on larger electorates, of which it plays those that it can."""
    fixed = fixed_delta(entry.values, delta, voters[0])
    record = {"named": named}

    def made(horizon: int) -> Learner:
        return made_for(name, entry, num_arms, horizon)

    size = answers * voters[0]
    counted = made(size).counts is not None
    looks = [answers * each for each in voters[1:] if counted or answers * each <= rounds]
    runs = {"ballots": simulator(made(size), at_hand, size, record=record, outcomes=[])}
    if looks:
        engine = "counts" if counted else "auto"
        runs["resampled"] = simulator(
            made(looks[-1]), resampled, looks[-1], checkpoints=looks, record=record, outcomes=[], engine=engine
        )

    def simulate(key: jax.Array, params: Mapping[str, Any]) -> dict[str, jax.Array]:
        keys = jax.random.split(key)
        found = [run.simulate(keys[place], params[part])["named"] for place, (part, run) in enumerate(runs.items())]
        values = jnp.concatenate(found)
        return {"named": jnp.concatenate([values, jnp.full(len(voters) - len(values), NOT_PLAYED, jnp.int32)])}

    return Run(
        simulate=simulate,
        params=lambda *, epsilon: {part: run.params(epsilon=epsilon, **fixed) for part, run in runs.items()},
        guarantee=lambda *, epsilon: runs["ballots"].guarantee(epsilon=epsilon, **fixed),
        dims={"named": ("voters",)},
        coords={"voters": list(voters)},
    )


def figure(results: xr.Dataset) -> Figure:
    """The figure: how often the winner is named, against the number of voters, one panel for every budget."""
    winner = str(results.winner.values).replace("$", r"\$")
    return plotting.facets(
        results.correct.drop_vars(
            ("winner", "rule", "answers", "delta", "estimator_delta", "voter_epsilon", "noise", "trust_model")
        ),
        x="voters",
        hue="learner",
        col="epsilon",
        labels=plotting.prefixed(results.trust_model),
        abreast=3,
        band="share",
        xscale="log",
        ylabel=f"how often {winner} is named",
        title=f"The winner of an election by private duels ({NOT_PRIVATE})",
        note=f"The first mark is the voters that there are; all others are resampled from them. {ONE_COIN}",
    )


STUDY = Study(dueling_ballots, figure, report)
