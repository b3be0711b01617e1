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
populations AS (
    SELECT *, 'all' AS population FROM metrics
    UNION ALL
    SELECT *, 'reused' AS population FROM metrics WHERE is_reused
),
-- One aggregate a metric: a row for each turn, block size and population, not five, and no text to group by.
grouped AS (
    SELECT
        any_value(workload) AS workload, any_value(tokenizer) AS tokenizer, any_value(counting) AS counting,
        population, block_tokens,
        quantile_cont(
            COLUMNS(['cached_tokens', 'prefill_tokens', 'context_tokens', 'output_tokens', 'kappa_ratio']),
            list_transform($percentiles, lambda p: p / 100)
        ) AS 'between_\0',
        quantile_disc(
            COLUMNS(['cached_tokens', 'prefill_tokens', 'context_tokens', 'output_tokens', 'kappa_ratio']),
            list_transform($percentiles, lambda p: p / 100)
        ) AS 'neighbours_\0'
    FROM populations
    GROUP BY population, block_tokens
),
long AS (
    UNPIVOT grouped ON
        (between_cached_tokens, neighbours_cached_tokens) AS cached_tokens,
        (between_prefill_tokens, neighbours_prefill_tokens) AS prefill_tokens,
        (between_context_tokens, neighbours_context_tokens) AS context_tokens,
        (between_output_tokens, neighbours_output_tokens) AS output_tokens,
        (between_kappa_ratio, neighbours_kappa_ratio) AS kappa_ratio
    INTO NAME metric VALUE between, neighbours
),
rows AS (
    SELECT
        workload, tokenizer, counting, population, block_tokens, metric,
        unnest($percentiles)::DOUBLE AS percentile,
        unnest(between)::DOUBLE AS between,
        unnest(neighbours)::DOUBLE AS neighbour
    FROM long
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
