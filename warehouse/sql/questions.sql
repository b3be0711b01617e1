-- Macros over the tables of this database, for questions with a number of your own.

-- The table `percentiles` at any block size. Name the metric and the series in WHERE: only these are read. Blocks move
-- tokens from K to T, so K + T and the outputs come from the table, as does everything at the block sizes it has.
CREATE MACRO percentiles_at(block) AS TABLE
SELECT workload, tokenizer, counting, reuse, population, block_tokens, metric, percentile, value
FROM percentiles_of_turns(block)
WHERE metric IN ('cached_tokens', 'prefill_tokens', 'kappa_ratio') AND block_size(block) NOT IN (1, 16, 256)
UNION ALL
SELECT workload, tokenizer, counting, reuse, population, block_size(block), metric, percentile, value
FROM percentiles
WHERE block_tokens = CASE WHEN block_size(block) IN (1, 16, 256) THEN block_size(block) ELSE 1 END
    AND (block_size(block) IN (1, 16, 256) OR metric IN ('context_tokens', 'output_tokens'));

-- Shares of each series that are memory bound if kappa_crit is `threshold`, as in `boundness` under `2n`.
CREATE MACRO memory_bound_at(threshold) AS TABLE
FROM (
    SELECT
        *,
        threshold::DOUBLE AS crit,
        cached_tokens + prefill_tokens AS tokens,
        -- t_PCIe : t_GPU of a turn is K : T x kappa_crit
        cached_tokens + prefill_tokens * crit AS seconds
    FROM turns
    WHERE CASE WHEN threshold < 0 OR isnan(threshold::DOUBLE) THEN error('a kappa_crit is a number, and not below 0')
        ELSE true END
)
SELECT
    workload, tokenizer, counting, reuse,
    count(*) AS turns,
    count(kappa_ratio > crit OR NULL) / nullif(count(crit), 0) AS memory_bound_turn_share,
    sum(CASE WHEN kappa_ratio > crit THEN tokens WHEN crit >= 0 THEN 0 END) / sum(tokens) AS memory_bound_token_share,
    sum(CASE WHEN kappa_ratio > crit THEN seconds WHEN crit >= 0 THEN 0 END) / sum(seconds) AS memory_bound_time_share,
    sum(cached_tokens) / sum(seconds) AS transfer_time_share
GROUP BY workload, tokenizer, counting, reuse;

-- The sessions of each series with the largest sum of K.
CREATE MACRO heaviest_sessions(most) AS TABLE
SELECT * FROM session_totals
QUALIFY row_number() OVER (
    PARTITION BY workload, tokenizer, counting, reuse ORDER BY cached_tokens_sum DESC, session_id
) <= most;

COMMENT ON MACRO TABLE percentiles_at IS 'percentiles of every series where K is rounded down to blocks of `block` tokens';
COMMENT ON MACRO TABLE memory_bound_at IS 'shares of turns, tokens and time that are memory bound where kappa_crit is `threshold`';
COMMENT ON MACRO TABLE heaviest_sessions IS 'the `most` sessions of each series with the largest sum of K';
