-- Macros over `capacity`: exact at every whole number of blocks where a curve has all its bends (docs/cache.md).

CREATE MACRO capacity_size(blocks) AS
CASE WHEN blocks >= 0 THEN least(floor(blocks::DOUBLE), 1e18)::BIGINT
    ELSE error('a capacity is a number of blocks, and not below 0') END;

-- Hit tokens at `blocks` blocks, on the line between the rows of a curve next to it.
CREATE MACRO hits_between(lower_row, upper_row, blocks) AS
lower_row['hits'] + coalesce(
    (upper_row['hits'] - lower_row['hits'])::HUGEINT * (blocks - lower_row['blocks'])
        // (upper_row['blocks'] - lower_row['blocks']), 0
);

-- The hit ratio in tokens of a cache of `blocks` blocks, a row for each series, block size and interleaving.
CREATE MACRO hit_ratio_at_blocks(blocks) AS TABLE
SELECT
    workload, tokenizer, counting, reuse, block_tokens, interleaving, capacity_size(blocks) AS capacity_blocks,
    hits_between(lower_row, upper_row, capacity_size(blocks)) / greatest(context_tokens_sum, 1) AS hit_ratio
FROM (
    SELECT
        workload, tokenizer, counting, reuse, block_tokens, interleaving,
        any_value(context_tokens_sum) AS context_tokens_sum,
        max({'blocks': capacity_blocks, 'hits': within_hit_tokens + across_hit_tokens})
            FILTER (capacity_blocks <= capacity_size(blocks)) AS lower_row,
        min({'blocks': capacity_blocks, 'hits': within_hit_tokens + across_hit_tokens})
            FILTER (capacity_blocks > capacity_size(blocks)) AS upper_row
    FROM capacity GROUP BY workload, tokenizer, counting, reuse, block_tokens, interleaving
)
ORDER BY workload, tokenizer, counting, reuse, block_tokens, interleaving;

-- The same for bytes of keys and values of a model: the series that its tokenizer counts, and those of logs.
CREATE MACRO hit_ratio_at_bytes(bytes, model, kv_dtype) AS TABLE
SELECT
    workload, tokenizer, counting, reuse, block_tokens, interleaving, of_model AS model, kv_dtype AS kv_dtype,
    bytes::DOUBLE AS capacity_bytes, size AS capacity_blocks,
    hits_between(lower_row, upper_row, size) / greatest(context_tokens_sum, 1) AS hit_ratio
FROM (
    SELECT
        workload, tokenizer, counting, reuse, block_tokens, interleaving, of_model, size,
        any_value(context_tokens_sum) AS context_tokens_sum,
        max({'blocks': capacity_blocks, 'hits': within_hit_tokens + across_hit_tokens})
            FILTER (capacity_blocks <= size) AS lower_row,
        min({'blocks': capacity_blocks, 'hits': within_hit_tokens + across_hit_tokens})
            FILTER (capacity_blocks > size) AS upper_row
    FROM (
        SELECT
            c.*, m.model AS of_model,
            capacity_size(blocks_in(bytes, c.block_tokens, kv_token_bytes(m.marginal_kv_bytes_per_token, kv_dtype))) AS size
        FROM capacity AS c JOIN models AS m ON c.tokenizer IN (m.tokenizer, 'logged')
        WHERE m.model = model
    )
    GROUP BY workload, tokenizer, counting, reuse, block_tokens, interleaving, of_model, size
)
ORDER BY workload, tokenizer, counting, reuse, block_tokens, interleaving;

-- The fewest blocks with at least this hit ratio, a row for each curve; NULL where no cache has it.
CREATE MACRO capacity_for(hit_ratio) AS TABLE
SELECT
    workload, tokenizer, counting, reuse, block_tokens, interleaving, hit_ratio::DOUBLE AS hit_ratio,
    CASE
        WHEN upper_row IS NULL THEN NULL
        WHEN lower_row IS NULL THEN 0
        ELSE upper_row['blocks'] - (upper_row['hits'] - wanted)::HUGEINT
            * (upper_row['blocks'] - lower_row['blocks']) // (upper_row['hits'] - lower_row['hits'])
    END::BIGINT AS capacity_blocks
FROM (
    SELECT
        workload, tokenizer, counting, reuse, block_tokens, interleaving, any_value(wanted) AS wanted,
        max({'hits': hits, 'blocks': capacity_blocks}) FILTER (hits < wanted) AS lower_row,
        min({'hits': hits, 'blocks': capacity_blocks}) FILTER (hits >= wanted) AS upper_row
    FROM (
        SELECT
            *, within_hit_tokens + across_hit_tokens AS hits,
            ceil(hit_ratio::DOUBLE * context_tokens_sum - 1e-6)::BIGINT AS wanted
        FROM capacity
    )
    GROUP BY workload, tokenizer, counting, reuse, block_tokens, interleaving
)
ORDER BY workload, tokenizer, counting, reuse, block_tokens, interleaving;

COMMENT ON MACRO capacity_size IS 'whole blocks of a capacity, which is not below 0';
COMMENT ON MACRO hits_between IS 'hit tokens at a capacity between two rows of a curve';
COMMENT ON MACRO TABLE hit_ratio_at_blocks IS 'hit ratio in tokens of a cache of `blocks` blocks, for each series, block size and interleaving';
COMMENT ON MACRO TABLE hit_ratio_at_bytes IS 'the same for `bytes` bytes of keys and values of a model in a format';
COMMENT ON MACRO TABLE capacity_for IS 'the fewest blocks with a hit ratio of at least `hit_ratio`; NULL where no cache has it';
