"""Mirror descent in three forms: by sampling, by noise and by intervals."""

from jaxdp.experts._mirror_descent._mirror_descent import mirror_descent as mirror_descent
