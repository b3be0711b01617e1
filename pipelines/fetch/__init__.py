"""Verified files of pinned repositories, from the Hub or a folder. Nothing here knows what a file means."""
