"""Commands of a user's own workloads and tokenizers: add, profile, workloads, remove, add-tokenizer. No counting."""
