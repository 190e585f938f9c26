"""Double Thompson sampling, from local reports or from noisy totals of blocks."""

from jaxdp.dueling._double_thompson._double_thompson import double_thompson as double_thompson
