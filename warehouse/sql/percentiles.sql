-- Exact percentiles of one series of turns, for both populations and every block size.
-- $turns: its Parquet file; $blocks: block sizes; $percentiles: 0 to 100.
WITH blocked AS (
    SELECT
        workload, tokenizer, counting,
        cached_tokens > 0 AS is_reused,
        block_tokens::INTEGER AS block_tokens,
        cached_tokens // block_tokens * block_tokens AS k,
        cached_tokens + prefill_tokens AS context,
        output_tokens
    FROM read_parquet($turns, hive_partitioning = false), unnest($blocks) AS b(block_tokens)
),
metrics AS (
    SELECT
        workload, tokenizer, counting, is_reused, block_tokens,
        k::DOUBLE AS cached_tokens,
        (context - k)::DOUBLE AS prefill_tokens,
        context::DOUBLE AS context_tokens,
        output_tokens::DOUBLE AS output_tokens,
        k / (context - k) AS kappa_ratio
    FROM blocked
),
long AS (
    UNPIVOT metrics ON cached_tokens, prefill_tokens, context_tokens, output_tokens, kappa_ratio
    INTO NAME metric VALUE value
),
populations AS (
    SELECT *, 'all' AS population FROM long
    UNION ALL
    SELECT *, 'reused' AS population FROM long WHERE is_reused
),
grouped AS (
    SELECT
        workload, tokenizer, counting, population, block_tokens, metric,
        quantile_cont(value, list_transform($percentiles, lambda p: p / 100)) AS between,
        quantile_disc(value, list_transform($percentiles, lambda p: p / 100)) AS neighbours
    FROM populations
    GROUP BY ALL
),
rows AS (
    SELECT
        workload, tokenizer, counting, population, block_tokens, metric,
        unnest($percentiles)::DOUBLE AS percentile,
        unnest(between)::DOUBLE AS between,
        unnest(neighbours)::DOUBLE AS neighbour
    FROM grouped
)
-- quantile_disc is one of the two values that quantile_cont goes between. Where both are equal, quantile_cont is off in
-- the last bit for some doubles, and so could fall from one percentile to the next: there the value itself is taken.
SELECT
    workload, tokenizer, counting, population, block_tokens, metric, percentile,
    max(CASE WHEN abs(between - neighbour) <= 1e-15 * abs(neighbour) THEN neighbour ELSE between END) OVER (
        PARTITION BY workload, tokenizer, counting, population, block_tokens, metric ORDER BY percentile
    ) AS value
FROM rows
ORDER BY ALL
