"""Token counts of texts: engines, batches, and the check against Hugging Face. No sessions, no K and T."""
