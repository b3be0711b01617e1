"""Tokenizer declarations, their verified files and chat templates. Nothing is counted here."""
