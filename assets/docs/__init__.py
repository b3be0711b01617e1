"""Generates pages of docs/ from declarations."""
