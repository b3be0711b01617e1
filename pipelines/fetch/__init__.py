"""Verified files of pinned repositories, from the Hub or a folder. This package does not interpret a file."""
