"""Entries of convex bandits."""
