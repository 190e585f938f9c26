"""Plans, compiles, computes and replays many lanes, for a grid of parameters and for many seeds."""
