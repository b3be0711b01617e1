-- Questions with a number of your own, as macros over the tables of the file that they stand in.

-- The table `percentiles` at any block size. Name the metric and the series in WHERE: only these are read.
CREATE MACRO percentiles_at(block) AS TABLE
WITH blocked AS (
    SELECT
        workload, tokenizer, counting, population,
        cached_tokens // block * block AS k,
        cached_tokens + prefill_tokens AS context,
        output_tokens
    FROM (
        SELECT *, 'all' AS population FROM turns
        UNION ALL
        SELECT *, 'reused' AS population FROM turns WHERE cached_tokens > 0
    )
),
metrics AS (
    SELECT workload, tokenizer, counting, population, 'cached_tokens' AS metric, k::DOUBLE AS x FROM blocked
    UNION ALL
    SELECT workload, tokenizer, counting, population, 'prefill_tokens', (context - k)::DOUBLE FROM blocked
    UNION ALL
    SELECT workload, tokenizer, counting, population, 'context_tokens', context::DOUBLE FROM blocked
    UNION ALL
    SELECT workload, tokenizer, counting, population, 'output_tokens', output_tokens::DOUBLE FROM blocked
    UNION ALL
    SELECT workload, tokenizer, counting, population, 'kappa_ratio', k / (context - k) FROM blocked
),
grouped AS (
    SELECT
        workload, tokenizer, counting, population, metric,
        quantile_cont(x, [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999]) AS found
    FROM metrics
    WHERE x IS NOT NULL
    GROUP BY workload, tokenizer, counting, population, metric
)
SELECT
    workload, tokenizer, counting, population,
    block::INTEGER AS block_tokens,
    metric,
    unnest([1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9])::DOUBLE AS percentile,
    unnest(found) AS value
FROM grouped;

-- Shares of each series that are memory bound where kappa_crit is `threshold`, as `boundness` has them by `2n`.
CREATE MACRO memory_bound_at(threshold) AS TABLE
SELECT
    workload, tokenizer, counting,
    count(*) AS turns,
    count(*) FILTER (WHERE kappa_ratio > threshold) / count(*) AS memory_bound_turn_share,
    coalesce(sum(cached_tokens + prefill_tokens) FILTER (WHERE kappa_ratio > threshold), 0)
        / sum(cached_tokens + prefill_tokens) AS memory_bound_token_share,
    -- t_PCIe : t_GPU of a turn is K : T x kappa_crit
    coalesce(sum(cached_tokens + prefill_tokens * threshold::DOUBLE) FILTER (WHERE kappa_ratio > threshold), 0)
        / sum(cached_tokens + prefill_tokens * threshold::DOUBLE) AS memory_bound_time_share,
    sum(cached_tokens) / sum(cached_tokens + prefill_tokens * threshold::DOUBLE) AS transfer_time_share
FROM turns
GROUP BY workload, tokenizer, counting;

-- The sessions of each series that load the most.
CREATE MACRO heaviest_sessions(most) AS TABLE
SELECT * FROM session_totals
QUALIFY row_number() OVER (
    PARTITION BY workload, tokenizer, counting ORDER BY cached_tokens_sum DESC, session_id
) <= most;

COMMENT ON MACRO TABLE percentiles_at IS 'percentiles of every series where K is rounded down to blocks of `block` tokens';
COMMENT ON MACRO TABLE memory_bound_at IS 'shares of turns, tokens and time that are memory bound where kappa_crit is `threshold`';
COMMENT ON MACRO TABLE heaviest_sessions IS 'the `most` sessions of each series with the largest sum of K';
