"""Registry entries of contextual bandits."""
