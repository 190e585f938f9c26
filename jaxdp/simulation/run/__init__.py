"""One lane: the loop over rounds, its engines, its outputs, and the checks that learner and environment fit."""
