"""Double Thompson sampling, round by round and by blocks."""

from jaxdp.dueling._double_thompson._double_thompson import double_thompson as double_thompson
