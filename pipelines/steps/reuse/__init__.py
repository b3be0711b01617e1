"""Steps over requests with identities of their blocks: turns of logs, turns by prefix, reuse distances. No tables."""
