"""The sourced CSV rows of models, machines and links, and a user's own: read and checked. No computing of answers."""
