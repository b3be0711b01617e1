"""The common form of every workload: sessions, messages and rejects in files. No tokens."""
