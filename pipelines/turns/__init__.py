"""K, T and kappa_ratio of every turn, from counts of messages. No text, no tokenizer."""
