"""Results on disk: chunks of lanes, the identity of the sweep that they are of, and who may write them."""
