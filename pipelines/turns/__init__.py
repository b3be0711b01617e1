"""K, T and kappa_ratio of every turn from token counts of messages. No text, no tokenizer."""
