"""Registry entries of offline estimators."""
