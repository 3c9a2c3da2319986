"""Token shards: names, schemas in use, reading, writing, and the manifest."""
