"""Registry entries of learners that predict from experts' advice."""
