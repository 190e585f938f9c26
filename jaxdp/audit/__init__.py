"""Attacks on privacy claims, by the programs that make them.

* `audit`, black box: draws outputs under two neighbouring inputs and looks for what one input makes likelier than the
  claim allows. What it reports is a lower bound in the currency of the claim, true with a stated confidence: on epsilon
  at the claimed delta by guesses of the input, on mu by events, on rho by a Rényi divergence of cells of outputs.
  `learner_attack` makes a learner's transcript such an output. `Target` is a claim with all attacks on it, `scoreboard`
  a table of targets, each attacked by all paths, between inputs that `search` finds in a `Domain`, and at other values.
  `python_release` makes a plain Python sampler such a release.
* `grey_box`: reads what mechanisms inside a learner are asked to noise, and measures how far one user moves it along a
  forced transcript: sensitivities that are exceeded, budgets overspent, paths around the noise, noise used twice, noise
  of another law than is recorded. Its `loss` is the exact privacy loss of the transcripts that it played, of additive
  noise. `grey_box_of_paths` does so for rounds, blocks and counts.
* `leaks`: at a tiny budget, what still follows the data never met the noise. Data that are added to a noised number
  drown in it too, and are not found; `grey_box` finds them.
* `exact_delta`, `exact_epsilon`, `exact_mu`, `exact_rho`: from a written law of few outputs. `exact_budget` is the one
  in the currency of a claim; `transcript_law` the law of a learner on a tiny world, by enumeration. Such a law is
  that of the definition: that the program follows it is for `g_test` and the black box.

An adversary may choose users as they come: `Users` are drawn, and answer, by a `Past` that holds what the claim lets be
seen. A learner is attacked on every path by which a simulator plays it.

**Passing is no proof.** "consistent" says that this attack, with these inputs and this many trials, found nothing. A
black-box audit cannot see:

* *Other inputs.* `audit` looks at the two neighbours given. `scoreboard` searches a domain where an entry has one, from
  special numbers (ends, ties, powers of two, 20, 127, 255, NaN, infinities) and random ones (users of learners only
  with `thorough`: their grey box sees most of that, and sooner): a leak at one other number
  in particular, or after a run that few random ones resemble, stays hidden. By default a search looks at about 100 to
  400 pairs, 1000 outputs each (of learners 500), which shows an excess of a factor; `thorough` at 600, 2000 each.
  Learners whose users react to the past are attacked by these alone, estimators between the given data sets.
* *Other values and sizes.* A second point, where caps, budgets and phases bind that the first one leaves unbound; and
  one of the others that an entry names, by turns; all with `thorough`. A mistake that needs two of
  them together, a longer run or more entries than named stays hidden.
* *Rare events.* An event of probability q is seen q times the number of trials. 10^6 trials find Laplace noise that
  fails once in 10^4 releases; where it fails once in 2 * 10^4, they usually do not. A mechanism that gives everything
  away once in 10^9 releases passes them, and an excess of delta below about 1 / trials cannot be told from none. An
  audit of a large epsilon meets this early: what is e^epsilon times rarer under one input must still be counted there.
* *The tails of a zCDP or Gaussian claim.* Both bounds come from events as frequent as those that are seen: they reach
  nearly all of a Gaussian mechanism's rho or mu, less where rho is above 4 or so few outputs tell that chance hides
  them (10^6 trials: below 0.005 of rho).
* *Floating-point holes.* The lowest bits of textbook floating-point noise can reveal the exact value (Mironov 2012).
  The events here are thresholds on scores of the output's magnitude, and pass over such bits, except where whole
  outputs repeat. `audit(..., low_bits=True)` looks at the power of two that divides a float, and then flags noise in
  floats. Noise of this library's mechanisms is an integer on a grid.
* *Timing, memory, the seed.* Only the output is looked at, and keys are taken to be secret and random.
* *Shapes the scores cannot draw.* Outputs that repeat are told apart one by one. Others are ordered by single
  coordinates (of up to 8), by sums of a linear function, a piecewise linear one or a histogram of each coordinate, and
  by a network of 16 units with quadratic terms, with NaN and either infinity as coordinates of their own; where the
  attack tells what is `exact`, by distances from it as well. A likelihood ratio unlike all of them is found in part. Of
  more than 85 coordinates those whose histograms differ most are summed.
* *Noise that is seldom missing.* A number without noise, of many, is found by its value where that comes up four times
  in the tenth of the trials that shapes the scores, or where the attack tells what is `exact`.
* *Large alphabets without order.* An outcome counts by itself only if it comes up several times in the tenth of the
  trials that shapes the histogram. Of rarer ones, as labels of millions, only the order of their numbers is seen.
* *Middle digits of long integers.* Beyond 2^24 (2^53 under x64) the leading digits are seen and the lowest 16 bits, not
  what lies between random ones.

The exact budgets have none of the limits of sampling, where outputs are few enough to write down their law. A proof
remains the author's to give.
"""

from jaxdp.audit._grey_box import grey_box, grey_box_of_paths
from jaxdp.audit._leaks import Leaks, leaks
from jaxdp.audit._rows import Row, Tried, heading, line, remarks, to_json
from jaxdp.audit._scoreboard import expected_minutes, scoreboard
from jaxdp.audit._search import Effort, Found, search
from jaxdp.audit.adversary import Past, Users, by_action, by_pair, whole
from jaxdp.audit.black_box import Attack, AuditResult, audit
from jaxdp.audit.domains import Domain, moved_values, replaced_rows
from jaxdp.audit.enumeration import outcome, transcript_law
from jaxdp.audit.exact import exact_budget, exact_delta, exact_epsilon, exact_mu, exact_rho, g_test
from jaxdp.audit.findings import GreyBox, Measured
from jaxdp.audit.host import python_release
from jaxdp.audit.intervals import EpsilonBound, clopper_pearson, epsilon_lower_bound
from jaxdp.audit.play import Transcript
from jaxdp.audit.targets import Point, Space, Target
from jaxdp.audit.transcripts import learner_attack

__all__ = [
    "Attack",
    "AuditResult",
    "Domain",
    "Effort",
    "EpsilonBound",
    "Found",
    "GreyBox",
    "Leaks",
    "Measured",
    "Past",
    "Point",
    "Row",
    "Space",
    "Target",
    "Transcript",
    "Tried",
    "Users",
    "audit",
    "by_action",
    "by_pair",
    "clopper_pearson",
    "epsilon_lower_bound",
    "exact_budget",
    "exact_delta",
    "exact_epsilon",
    "exact_mu",
    "exact_rho",
    "expected_minutes",
    "g_test",
    "grey_box",
    "grey_box_of_paths",
    "heading",
    "leaks",
    "learner_attack",
    "line",
    "moved_values",
    "outcome",
    "python_release",
    "remarks",
    "replaced_rows",
    "scoreboard",
    "search",
    "to_json",
    "transcript_law",
    "whole",
]
