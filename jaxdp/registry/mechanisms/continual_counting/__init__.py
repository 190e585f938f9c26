"""Registry entries of continual counters, as one release of all prefix sums."""
