"""Adds a tokenizer of the user's own: its source is read, proved and declared. Nothing of a workload."""
