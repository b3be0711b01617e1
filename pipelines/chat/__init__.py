"""Token counts of whole prompts by the chat template, summed and compared with real prompts. No tables."""
