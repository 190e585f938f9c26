"""Mirror descent in three forms: "sampling", "noisy_losses" and "intervals"."""

from jaxdp.experts._mirror_descent._mirror_descent import mirror_descent as mirror_descent
