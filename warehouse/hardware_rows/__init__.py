"""Reads and checks the sourced CSV rows of models, machines and links, and a user's own rows."""
