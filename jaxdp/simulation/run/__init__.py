"""One lane: the loop over rounds, its engines, what is recorded, and the checks that learner and environment fit."""
