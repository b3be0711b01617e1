"""Tokens of whole prompts by the chat template, added up and compared with real prompts. No tables."""
