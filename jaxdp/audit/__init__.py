"""Attacks on privacy claims: they run the code that makes the claim.

* `audit`, a black box, draws outputs under two neighbouring inputs and looks for events that one input makes likelier
  than the claim allows. It reports a lower bound, with a stated confidence, on the true epsilon, rho or mu, whichever
  the claim states. The bound on epsilon, at the claimed delta, comes from guesses of the input; the bound on mu comes
  from events; the bound on rho comes from a Rényi divergence between histograms of a score. `learner_attack` builds an
  attack on the transcript of a learner, and `python_release` lets an attack call a plain Python sampler. A `Target` is
  a claim with all attacks on it. `scoreboard` attacks many targets: on all paths (rounds, blocks, counts), between
  inputs that `search` finds in a `Domain`, and at other parameter values.
* `grey_box` records the values to which mechanisms inside a learner add noise, and measures how much one user changes
  these values while the transcript is held fixed. It finds exceeded sensitivities, overspent budgets, data that reach
  the output without noise, noise used twice, and noise that does not have its recorded distribution. For additive
  noise, `loss` of the result is the exact privacy loss of the transcripts that were played. `grey_box_of_paths` audits
  rounds, blocks and counts.
* `leaks` runs a learner at a tiny budget, where noise hides the data. A value that still depends on the data got no
  noise. `leaks` does not find data that are added to a noisy number, since the noise hides them; `grey_box` finds them.
* `exact_delta`, `exact_epsilon`, `exact_mu` and `exact_rho` compute exact budgets from two distributions over few
  outputs; `exact_budget` computes the budget that a claim states. `transcript_distribution` enumerates the distribution
  of a learner on a tiny world, from the algorithm's definition. `g_test` tests whether outputs of the program follow
  this distribution.

An adversary may choose users adaptively: the drawn `UserData` and the answers of users may depend on a `History`, which
contains everything that the claim lets the adversary see.

**Passing is no proof.** "consistent" says that this attack, with these inputs and this number of trials, found nothing.
A leak can stay hidden between other inputs, at other values or sizes, in events rarer than about 1 / trials, in the
tails of a zCDP or Gaussian claim, in low bits of floats, in timing or memory, and in shapes that scores cannot express.
`docs/explanation/what_audits_cannot_see.md` gives these limits in numbers. If there are so few outputs that their
distribution can be written down, compute exact budgets: they have none of the limits of sampling. Only a proof shows
that a claim is right.
"""

from jaxdp.audit._grey_box import grey_box, grey_box_of_paths
from jaxdp.audit._leaks import Leaks, leaks
from jaxdp.audit._python_attack import PythonAuditResult
from jaxdp.audit._python_learner import PythonLearner, python_learner
from jaxdp.audit._rows import Attempt, ScoreboardRow, format_header, format_notes, format_row, to_json
from jaxdp.audit._scoreboard import expected_minutes, scoreboard
from jaxdp.audit._search import ScoredPair, SearchEffort, search
from jaxdp.audit.adversary import History, UserData, feedback_of_action, feedback_of_pair, full_information
from jaxdp.audit.black_box import Attack, AuditResult, audit
from jaxdp.audit.domains import Domain, perturb_entries, replace_one_row
from jaxdp.audit.enumeration import as_outcome, transcript_distribution
from jaxdp.audit.exact import exact_budget, exact_delta, exact_epsilon, exact_mu, exact_rho, g_test
from jaxdp.audit.findings import GreyBox, Measured
from jaxdp.audit.host import python_release
from jaxdp.audit.intervals import EpsilonBound, clopper_pearson, epsilon_lower_bound
from jaxdp.audit.play import Transcript
from jaxdp.audit.targets import AttackPoint, Space, Target
from jaxdp.audit.transcripts import learner_attack

__all__ = [
    "Attack",
    "AttackPoint",
    "Attempt",
    "AuditResult",
    "Domain",
    "EpsilonBound",
    "GreyBox",
    "History",
    "Leaks",
    "Measured",
    "PythonAuditResult",
    "PythonLearner",
    "ScoreboardRow",
    "ScoredPair",
    "SearchEffort",
    "Space",
    "Target",
    "Transcript",
    "UserData",
    "as_outcome",
    "audit",
    "clopper_pearson",
    "epsilon_lower_bound",
    "exact_budget",
    "exact_delta",
    "exact_epsilon",
    "exact_mu",
    "exact_rho",
    "expected_minutes",
    "feedback_of_action",
    "feedback_of_pair",
    "format_header",
    "format_notes",
    "format_row",
    "full_information",
    "g_test",
    "grey_box",
    "grey_box_of_paths",
    "leaks",
    "learner_attack",
    "perturb_entries",
    "python_learner",
    "python_release",
    "replace_one_row",
    "scoreboard",
    "search",
    "to_json",
    "transcript_distribution",
]
