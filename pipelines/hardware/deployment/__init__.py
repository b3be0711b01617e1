"""How a model is served: number formats and the GPUs on which weights and KV pool fit, out of numbers. No rows."""
