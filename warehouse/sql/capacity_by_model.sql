-- The curves of `capacity` over bytes: of the models that a series' tokenizer counts, and of all where the log counts.
CREATE VIEW capacity_by_model AS
SELECT
    c.* EXCLUDE (capacity_blocks, within_hit_tokens, across_hit_tokens, context_tokens_sum, hit_ratio),
    m.model, d.kv_dtype, c.capacity_blocks,
    c.capacity_blocks::DOUBLE * c.block_tokens * m.marginal_kv_bytes_per_token * d.element_bytes / 2 AS capacity_bytes,
    c.hit_ratio
FROM capacity AS c
    JOIN models AS m ON c.tokenizer IN (m.tokenizer, 'logged') AND m.marginal_kv_bytes_per_token > 0
    CROSS JOIN (VALUES ('bf16', 2), ('fp8', 1)) AS d(kv_dtype, element_bytes)
