"""K by prefix: identities of blocks, which of them earlier requests left, sessions by chain. No text, no engine."""
