CREATE MACRO block_size(block) AS
CASE WHEN block >= 1 AND block = floor(block) THEN block::INTEGER
    ELSE error('a block is a whole number of tokens, at least one') END;

CREATE MACRO turns_in_blocks(block) AS TABLE
SELECT
    workload, tokenizer, counting, reuse,
    cached_tokens > 0 AS is_reused,
    cached_tokens // block_size(block) * block_size(block) AS k,
    cached_tokens + prefill_tokens - cached_tokens // block_size(block) * block_size(block) AS t,
    output_tokens
FROM turns WHERE block_size(block) > 0;

-- Exact percentiles of the turns in the table or view `turns`, for both populations, K rounded down to blocks.
-- Values are counted, not sorted: kappa_ratio by its whole part, with a list of the values in it, so that only the few
-- parts that hold a percentile are sorted. Filters on series, population and metric reach the scan of `turns`.
-- There is no WITH: DuckDB 1.4.0 and 1.4.1 cannot read it in a macro that a later one stored.
CREATE MACRO percentiles_of_turns(block) AS TABLE
FROM (FROM (FROM (FROM (FROM (FROM (
    SELECT
        workload, tokenizer, counting, reuse, 'cached_tokens' AS metric,
        k AS whole, count(*) AS n, count(*) FILTER (is_reused) AS reused, NULL::DOUBLE[] AS inside
    FROM turns_in_blocks(block) GROUP BY workload, tokenizer, counting, reuse, whole
    UNION ALL
    SELECT workload, tokenizer, counting, reuse, 'prefill_tokens', t AS whole, count(*), count(*) FILTER (is_reused), NULL
    FROM turns_in_blocks(block) GROUP BY workload, tokenizer, counting, reuse, whole
    UNION ALL
    SELECT workload, tokenizer, counting, reuse, 'context_tokens', k + t AS whole, count(*), count(*) FILTER (is_reused), NULL
    FROM turns_in_blocks(block) GROUP BY workload, tokenizer, counting, reuse, whole
    UNION ALL
    SELECT workload, tokenizer, counting, reuse, 'output_tokens', output_tokens AS whole, count(*), count(*) FILTER (is_reused), NULL
    FROM turns_in_blocks(block) WHERE output_tokens IS NOT NULL GROUP BY workload, tokenizer, counting, reuse, whole
    UNION ALL
    SELECT
        workload, tokenizer, counting, reuse, 'kappa_ratio',
        k // t AS whole, count(*), count(*) FILTER (is_reused), list(k / t) FILTER (is_reused)
    FROM turns_in_blocks(block) GROUP BY workload, tokenizer, counting, reuse, whole
)
SELECT
    *,
    sum(n) OVER below AS below, sum(n) OVER series AS total,
    sum(reused) OVER below AS reused_below, sum(reused) OVER series AS reused_total
WINDOW series AS (PARTITION BY workload, tokenizer, counting, reuse, metric),
    below AS (PARTITION BY workload, tokenizer, counting, reuse, metric ORDER BY whole ROWS UNBOUNDED PRECEDING)
),
    (VALUES ('all'), ('reused')) AS p(population),
    (SELECT unnest([1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9]::DOUBLE[]) AS percentile) AS l
-- `zeros`: turns without K, whose kappa_ratio is 0 and which `inside` leaves out.
SELECT
    workload, tokenizer, counting, reuse, metric, population, percentile, whole, inside,
    CASE WHEN population = 'all' THEN n ELSE reused END AS n,
    CASE WHEN population = 'all' THEN n - reused ELSE 0 END AS zeros,
    CASE WHEN population = 'all' THEN below - n ELSE reused_below - reused END::BIGINT AS before,
    (CASE WHEN population = 'all' THEN total ELSE reused_total END::BIGINT - 1) * (10 * percentile)::BIGINT AS rank
)
-- The rank of a percentile, in thousandths, falls on a value or between two: `low` and `high` count within the part.
SELECT *, rank // 1000 - before AS low, (rank + 999) // 1000 - before AS high
WHERE n > 0 AND rank // 1000 < before + n AND (rank + 999) // 1000 >= before
)
SELECT
    *,
    CASE WHEN metric <> 'kappa_ratio' THEN whole WHEN low < zeros THEN 0
        ELSE list_sort(inside)[low - zeros + 1] END::DOUBLE AS low_value,
    CASE WHEN metric <> 'kappa_ratio' THEN whole WHEN high < zeros THEN 0
        ELSE list_sort(inside)[high - zeros + 1] END::DOUBLE AS high_value
)
SELECT
    workload, tokenizer, counting, reuse, population, metric, percentile,
    any_value(rank % 1000) / 1000 AS share,
    max(low_value) FILTER (low >= 0) AS low_value,
    max(high_value) FILTER (high < n) AS high_value
GROUP BY workload, tokenizer, counting, reuse, population, metric, percentile
)
-- Linear between the neighbours, as in `quantile_cont`, and clamped to them, so percentiles cannot decrease.
SELECT
    workload, tokenizer, counting, reuse, population, block_size(block) AS block_tokens, metric, percentile,
    least(low_value + (high_value - low_value) * share, high_value) AS value;
COMMENT ON MACRO block_size IS 'tokens of a block: `block`, where it is a whole number of at least one, else an error';
COMMENT ON MACRO TABLE turns_in_blocks IS 'K and T of each turn of `turns` where K is rounded down to blocks of `block` tokens';
COMMENT ON MACRO TABLE percentiles_of_turns IS 'what `percentiles_at` is made from: every metric counted in `turns`';
