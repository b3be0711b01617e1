"""Reads a model's config.json: keys, kinds of layers, parameters. Nothing of a repository is executed."""
