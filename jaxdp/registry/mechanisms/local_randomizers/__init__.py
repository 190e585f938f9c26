"""Registry entries of local randomizers, as mechanisms with one user's value as input."""
