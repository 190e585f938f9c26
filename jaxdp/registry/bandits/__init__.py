"""Registry entries of bandits."""
