"""Attacks on privacy claims, by the programs that make them.

* `audit`, black box: draws outputs under two neighbouring inputs and looks for outputs that one input makes likelier
  than the claim allows. It reports a lower bound in the currency of the claim, true with a stated confidence: on
  epsilon at the claimed delta by guesses of the input, on mu by events, on rho by a Rényi divergence of cells of
  outputs. `learner_attack` makes a learner's transcript such an output. `Target` is a claim with all attacks on it.
  `scoreboard` is a table of targets, each attacked by all paths, between inputs that `search` finds in a `Domain`, and
  at other values. `python_release` makes a plain Python sampler such a release.
* `grey_box`: records the values that mechanisms inside a learner noise, and measures how far one user moves them along
  a forced transcript. It finds exceeded sensitivities, overspent budgets, paths around the noise, noise used twice, and
  noise whose distribution is not the recorded one. Its `loss` is the exact privacy loss of the transcripts that it
  played, for additive noise. `grey_box_of_paths` does so for rounds, blocks and counts.
* `leaks`: at a tiny budget, values that still follow the data never met the noise. Data that are added to a noised
  number drown in it too, and are not found; `grey_box` finds them.
* `exact_delta`, `exact_epsilon`, `exact_mu`, `exact_rho`: exact budgets from written distributions over few outputs.
  `exact_budget` picks the currency of a claim; `transcript_distribution` enumerates the distribution of a learner on a
  tiny world. Such a distribution is that of the definition: `g_test` and the black box check that the program follows
  it.

An adversary may choose users adaptively: `UserData` are drawn, and answer, by a `History` that holds everything that
the claim lets the adversary see. A learner is attacked on every path by which a simulator plays it.

**Passing is no proof.** "consistent" says that this attack, with these inputs and this many trials, found nothing. A
black-box audit cannot see:

* *Other inputs.* `audit` looks at the two neighbours given. `scoreboard` searches a domain where an entry has one, from
  special numbers (ends, ties, powers of two, 20, 127, 255, NaN, infinities) and random ones (users of learners only
  with `thorough`: their grey box sees most of that, and sooner). A leak at one other particular number, or after a run
  that few random ones resemble, stays hidden. By default a search looks at about 100 to 400 pairs, 1000 outputs each
  (500 for learners), which shows an excess of a factor; `thorough` looks at 600, 2000 each. Learners whose users react
  to the past are attacked by these users alone, estimators between the given data sets.
* *Other values and sizes.* `scoreboard` attacks a second point, where caps, budgets and phases bind that the first one
  leaves unbound, and one of the others that an entry names, by turns; with `thorough` all of them. A mistake that needs
  two of them together, a longer run or more entries than named stays hidden.
* *Rare events.* An event of probability q is seen q times the number of trials. 10^6 trials find Laplace noise that
  fails once in 10^4 releases; where it fails once in 2 * 10^4, they usually do not. A mechanism that reveals everything
  once in 10^9 releases passes them, and an excess of delta below about 1 / trials cannot be distinguished from none. An
  audit of a large epsilon meets this early: an event that is e^epsilon times rarer under one input must still be
  counted there.
* *The tails of a zCDP or Gaussian claim.* Both bounds come from events as frequent as those that are observed. They
  reach nearly all of a Gaussian mechanism's rho or mu, but less where rho is above 4, or where so few outputs
  distinguish the inputs that chance hides them (10^6 trials: below 0.005 of rho).
* *Floating-point holes.* The lowest bits of textbook floating-point noise can reveal the exact value (Mironov 2012).
  The events here are thresholds on scores of the output's magnitude, and ignore such bits, except where whole outputs
  repeat. `audit(..., low_bits=True)` looks at the power of two that divides a float, and then flags noise in floats.
  Noise of this library's mechanisms is an integer on a grid.
* *Timing, memory, the seed.* Only the output is examined, and keys are taken to be secret and random.
* *Shapes that the scores cannot express.* Outputs that repeat are distinguished one by one. Others are ordered by
  single coordinates (of up to 8), by sums of a linear function, a piecewise linear one or a histogram of each
  coordinate, and by a network of 16 units with quadratic terms, with NaN and either infinity as additional coordinates;
  where the attack gives `exact`, also by distances from it. A likelihood ratio unlike all of them is found in part. If
  there are more than 85 coordinates, those whose histograms differ most are summed.
* *Noise that is seldom missing.* A number without noise, among many, is found by its value if that value occurs four
  times in the tenth of the trials that shapes the scores, or if the attack gives `exact`.
* *Large alphabets without order.* An outcome counts by itself only if it occurs several times in the tenth of the
  trials that shapes the histogram. Of rarer outcomes, such as labels among millions, only the order of their numbers is
  used.
* *Middle digits of long integers.* Beyond 2^24 (2^53 under x64) the leading digits and the lowest 16 bits are used, but
  not random digits between them.

The exact budgets have none of these sampling limits, if outputs are few enough to write down their distribution. A
proof remains the author's task.
"""

from jaxdp.audit._grey_box import grey_box, grey_box_of_paths
from jaxdp.audit._leaks import Leaks, leaks
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
    "python_release",
    "replace_one_row",
    "scoreboard",
    "search",
    "to_json",
    "transcript_distribution",
]
