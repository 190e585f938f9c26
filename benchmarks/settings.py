"""The problems that rows and their floors share."""

import numpy as np

ARMS, EPSILON = 10, 1.0
MEANS = np.linspace(0.2, 0.8, ARMS)
SMALL = MEANS.astype(np.float32)
KEEP = 1 / (1 + np.exp(-EPSILON))  # probability of a true report
SHIFTS, GAP, OTHERS = 5, 0.4, 0.5  # of experts' losses: changes of the good expert, its lead, the others' mean
BATCH, EVERY = 19, 16  # rounds of a batch, and from one question to the next
