"""The one stream that every workload becomes: sessions, messages and rejects at rest. No tokens."""
