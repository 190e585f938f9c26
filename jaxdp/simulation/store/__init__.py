"""Results on disk: chunks of lanes, what a store's contents are the results of, and who may write them."""
