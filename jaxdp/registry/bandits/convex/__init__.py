"""Registry entries of convex bandits."""
