"""Registry entries of mechanisms, as one release."""
