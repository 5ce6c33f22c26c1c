"""Topics: the grammar of both dialects, the subscription trie, the route cache, filter algebra."""
