"""Types of learners, environments, offline estimators, local randomizers and privacy claims.

An algorithm is a NamedTuple of pure functions. A factory makes it; the factory's arguments fix shapes and loop bounds.
Values that a sweep may vary (epsilon, a learning rate) are leaves of the algorithm's frozen `Params` dataclass, which
is a pytree, so one compiled program works for every value. The docstring of each function's type documents the
function's task and the arguments that the function may read. These conventions apply everywhere:

* **Keys come first.** A key has no default, and is never stored or used twice. A function that needs no key still takes
  one.
* **The types state the trust boundary.** `act` sees only `State.public`; `update` sees only the state and the output of
  `privatize`.
* **`epsilon=inf` is the non-private algorithm**, in the same compiled program.
* **`params(**values)` runs on the host**: it takes the Python numbers of one grid point, checks them, and calibrates
  noise in float64. No noise scale is computed inside a compiled loop.
"""

from jaxdp.core.claims import guarantee_for
from jaxdp.core.delays import batched, delayed
from jaxdp.core.environment import (
    BlockFn,
    ContextFn,
    ContextsFn,
    Delays,
    Environment,
    EvaluateFn,
    FeedbackFn,
    FeedbackTotalsFn,
    HindsightFn,
    MeansFn,
    Outcome,
    UnheardFn,
    UserLevel,
    WorldFn,
    repeat_outcome,
)
from jaxdp.core.estimator import (
    CheckDataFn,
    CovarianceFn,
    Estimator,
    FitFn,
    LabelsPrivatizeFn,
    LargeFitFn,
    MetricsFn,
    NoiseFn,
    Problem,
    Sample,
    SampleFn,
)
from jaxdp.core.guarantee import Guarantee
from jaxdp.core.interface import Interface, Probe, Space, arms, ball, check_interfaces, pairs
from jaxdp.core.learner import (
    ActFn,
    BestActionFn,
    BlockPlan,
    BlockPlanFn,
    Blocks,
    BlockUpdateFn,
    ClipFn,
    CountPlan,
    CountPlanFn,
    CountPrivatizeFn,
    Counts,
    CountUpdateFn,
    DoneFn,
    InitFn,
    Learner,
    PrivatizeFn,
    RecommendFn,
    SlotRoundsFn,
    State,
    SwitchWhenFn,
    UpdateFn,
)
from jaxdp.core.ledger import Ledger
from jaxdp.core.local_randomizer import EstimateFn, LocalRandomizer, ReportFn, TotalFn
from jaxdp.core.made_by import MadeBy, factory, reusing_factory
from jaxdp.core.params import Scalar, default_float, interval_leaves, leaf_rounded_down, only, scalar_leaf
from jaxdp.core.visited import add_visits
from jaxdp.core.visits import Visit, Visits

__all__ = [
    "ActFn",
    "BestActionFn",
    "BlockFn",
    "BlockPlan",
    "BlockPlanFn",
    "BlockUpdateFn",
    "Blocks",
    "CheckDataFn",
    "ClipFn",
    "ContextFn",
    "ContextsFn",
    "CountPlan",
    "CountPlanFn",
    "CountPrivatizeFn",
    "CountUpdateFn",
    "Counts",
    "CovarianceFn",
    "Delays",
    "DoneFn",
    "Environment",
    "EstimateFn",
    "Estimator",
    "EvaluateFn",
    "FeedbackFn",
    "FeedbackTotalsFn",
    "FitFn",
    "Guarantee",
    "HindsightFn",
    "InitFn",
    "Interface",
    "LabelsPrivatizeFn",
    "LargeFitFn",
    "Learner",
    "Ledger",
    "LocalRandomizer",
    "MadeBy",
    "MeansFn",
    "MetricsFn",
    "NoiseFn",
    "Outcome",
    "PrivatizeFn",
    "Probe",
    "Problem",
    "RecommendFn",
    "ReportFn",
    "Sample",
    "SampleFn",
    "Scalar",
    "SlotRoundsFn",
    "Space",
    "State",
    "SwitchWhenFn",
    "TotalFn",
    "UnheardFn",
    "UpdateFn",
    "UserLevel",
    "Visit",
    "Visits",
    "WorldFn",
    "add_visits",
    "arms",
    "ball",
    "batched",
    "check_interfaces",
    "default_float",
    "delayed",
    "factory",
    "guarantee_for",
    "interval_leaves",
    "leaf_rounded_down",
    "only",
    "pairs",
    "repeat_outcome",
    "reusing_factory",
    "scalar_leaf",
]
