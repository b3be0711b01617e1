"""Tokenizer declarations, their verified files and chat templates. No counting here."""
