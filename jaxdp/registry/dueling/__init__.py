"""Registry entries of dueling bandits."""
