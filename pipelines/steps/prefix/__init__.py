"""The step that derives turns by `prefix` from those by `history`. It computes nothing itself."""
