"""Stores results on disk: chunks of lanes, the identity of their sweep, and locks for writers."""
