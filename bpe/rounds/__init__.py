"""Exact training in merge rounds over sequences of tokens that are spread over shards.

A round has two halves. In the first, shards count pairs (`shard_steps`, `bucket_sums`), and the
driver ranks them (`pair_ranking`) and chooses the heavy ones (`heavy_set`). In the second, shards
cut their tokens by these and send the distinct parts; the driver trains on them, takes the
merges that are certain, and works out what becomes of the shards' ends (`round_driver`,
`boundaries`, `chain_merging`). `local_rounds` does all of it in one process;
`pipelines.training.rounds` does it in a pipeline.
"""
