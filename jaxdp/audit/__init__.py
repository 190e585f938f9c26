"""Attacks on privacy claims: they run the code that makes the claim.

* `audit`, a black box, draws outputs under two neighbouring inputs and looks for events that one input makes likelier
  than the claim allows. It reports a lower bound, with a stated confidence, on the number that the claim states. The
  bound on epsilon, at the claimed delta, comes from guesses of the input; the bound on mu comes from events; the bound
  on rho comes from a Rényi divergence between histograms of a score. `learner_attack` builds an attack on the
  transcript of a learner, and `python_release` lets an attack call a plain Python sampler. A `Target` is a claim with
  all attacks on it. `scoreboard` attacks many targets: on all paths (rounds, blocks, counts), between inputs that
  `search` finds in a `Domain`, and at other parameter values.
* `grey_box` records the values to which mechanisms inside a learner add noise, and measures how far one user moves them
  while the transcript is held fixed. It finds exceeded sensitivities, overspent budgets, data that reach the output
  without noise, noise used twice, and noise that does not have its recorded distribution. Its `loss` is the exact
  privacy loss of the transcripts that it played, for additive noise. `grey_box_of_paths` audits rounds, blocks and
  counts.
* `leaks` runs a learner at a tiny budget, where noise hides the data. Values that still follow the data got no noise.
  `leaks` does not find data that are added to a noisy number, since the noise hides them; `grey_box` finds them.
* `exact_delta`, `exact_epsilon`, `exact_mu` and `exact_rho` compute exact budgets from two distributions over few
  outputs; `exact_budget` computes the budget that a claim states. `transcript_distribution` enumerates the distribution
  of a learner on a tiny world, from the algorithm's definition. `g_test` and `audit` check that the program follows it.

An adversary may choose users adaptively: the draw of a `UserData` and its answers may depend on a `History`, which
holds all that the claim lets the adversary see. A learner is attacked on every path that it has: rounds, blocks and
counts.

**Passing is no proof.** "consistent" says that this attack, with these inputs and this number of trials, found nothing.
A black-box audit cannot see:

* *Other inputs.* `audit` looks at the two neighbours given. If an entry has a domain, `scoreboard` searches it,
  starting from special numbers (ends, ties, powers of two, 20, 127, 255, NaN, infinities) and random numbers. It
  searches users of a learner only with `thorough`, since the grey box sees most of the same leaks sooner. A leak at one
  other particular number stays hidden, and so does a leak after a run that few random runs resemble. By default a
  search looks at about 100 to 400 pairs, with 1000 outputs for each pair (500 for learners). This shows a claim that is
  exceeded by a factor. `thorough` looks at 600 pairs, with 2000 outputs for each pair. There is no search for
  estimators, nor for learners if users react to the past.
* *Other values and sizes.* `scoreboard` attacks a second point, at which other caps, budgets and phases bind, and one
  of the other points that an entry names (the argument `turn` selects it). With `thorough` it attacks all of them. A
  mistake stays hidden if it needs two of these changes together, or a longer run or a larger size than the points have.
* *Rare events.* An event of probability q is seen q times the number of trials. 10^6 trials find Laplace noise that
  fails once in 10^4 releases, and usually miss noise that fails once in 2 * 10^4. A mechanism that reveals everything
  once in 10^9 releases passes, and a delta that is exceeded by less than about 1 / trials cannot be detected. A large
  epsilon needs many trials: an event that is e^epsilon times rarer under one input must still occur under that input.
* *The tails of a zCDP or Gaussian claim.* Both bounds come from events that are frequent enough to be observed. They
  reach nearly all of a Gaussian mechanism's rho or mu. They reach less if rho is above 4, or if so few outputs
  distinguish the inputs that chance hides them (with 10^6 trials: if rho is below 0.005).
* *Floating-point holes.* The lowest bits of textbook floating-point noise can reveal the exact value (Mironov 2012).
  The events here are thresholds on scores of the output's magnitude, and ignore such bits, except where whole outputs
  repeat. `audit(..., low_bits=True)` looks at the power of two that divides a float, and then flags noise in floats.
  The noise of this library's mechanisms is an integer on a grid.
* *Timing, memory, the seed.* Only the output is examined, and keys are taken to be secret and random.
* *Shapes that the scores cannot express.* Outputs that repeat are distinguished one by one. Other outputs are ordered
  by each coordinate (if there are at most 8), by sums over coordinates of a linear function, a piecewise linear
  function or a histogram, and by a network of 16 units with quadratic terms. Indicators of NaN, infinity and -infinity
  are additional coordinates. If the attack gives `exact`, distances from it also order outputs. If the likelihood ratio
  has none of these shapes, the bound is smaller than the true number. If there are more than 85 coordinates, the sum of
  piecewise linear functions uses only those with the most different histograms.
* *Noise that is seldom missing.* A number without noise, among many, is found by its value if that value occurs four
  times in the tenth of the trials that shapes the scores, or if the attack gives `exact`.
* *Large alphabets without order.* An outcome is a separate event only if it occurs several times in the tenth of the
  trials that shapes the histogram. Rarer outcomes, such as labels among millions, are only ordered by their numbers.
* *Middle digits of long integers.* Beyond 2^24 (2^53 under x64) the leading digits and the lowest 16 bits are used, but
  not the digits between them.

If outputs are few enough to write down their distribution, compute exact budgets: they have none of these sampling
limits. Only a proof shows that a claim is right.
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
