"""One lane: the loop over rounds, its engines, what is looked at, and the checks of what is put together."""
