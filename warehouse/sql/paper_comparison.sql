-- Every published figure compared with ours. A hardware figure is compared on the `paper` basis.
CREATE VIEW paper_comparison AS
WITH full_sizes AS (
    SELECT
        p.workload,
        (SELECT sum(s.records) FROM sources s WHERE s.workload = p.workload AND NOT s.is_sample) >= p.value AS is_full_set
    FROM published p
    WHERE p.metric = 'records' AND p.statistic = 'count'
),
-- Only series with published figures, which are of reuse `history`; the others have nothing to compare with.
published_turns AS NOT MATERIALIZED (
    SELECT * FROM turns SEMI JOIN published USING (workload, tokenizer, counting) WHERE reuse = 'history'
),
per_turn AS (
    SELECT *, 'all' AS population FROM published_turns
    UNION ALL
    SELECT *, 'reused' AS population FROM published_turns WHERE cached_tokens > 0
),
extremes AS (
    SELECT
        workload, tokenizer, counting, population,
        avg((kappa_ratio > 1000)::INTEGER) AS share_above_1000,
        max(cached_tokens)::DOUBLE AS max_cached_tokens,
        max(prefill_tokens)::DOUBLE AS max_prefill_tokens,
        max(cached_tokens + prefill_tokens)::DOUBLE AS max_context_tokens,
        min(cached_tokens)::DOUBLE AS min_cached_tokens
    FROM per_turn GROUP BY ALL
),
history AS (SELECT * FROM summary WHERE reuse = 'history'),
measured AS (
    SELECT workload, tokenizer, counting, population, block_tokens, metric, 'p' || format('{:g}', percentile) AS statistic, value
    FROM percentiles WHERE reuse = 'history'
    UNION ALL SELECT workload, tokenizer, counting, 'all', 1, 'cached_tokens', 'mean', cached_tokens_mean FROM history
    UNION ALL SELECT workload, tokenizer, counting, 'all', 1, 'prefill_tokens', 'mean', prefill_tokens_mean FROM history
    UNION ALL SELECT workload, tokenizer, counting, 'all', 1, 'kappa_ratio', 'pooled', pooled_kappa_ratio FROM history
    UNION ALL SELECT workload, tokenizer, counting, 'all', 1, 'kappa_ratio', 'mean', kappa_ratio_mean FROM history
    UNION ALL SELECT workload, tokenizer, counting, 'all', 1, 'sessions', 'count', sessions FROM history
    UNION ALL SELECT workload, tokenizer, counting, 'all', 1, 'turns', 'count', turns FROM history
    UNION ALL SELECT workload, tokenizer, counting, population, 1, 'kappa_ratio', 'share_above_1000', share_above_1000 FROM extremes
    UNION ALL SELECT workload, tokenizer, counting, population, 1, 'cached_tokens', 'max', max_cached_tokens FROM extremes
    UNION ALL SELECT workload, tokenizer, counting, population, 1, 'cached_tokens', 'min', min_cached_tokens FROM extremes
    UNION ALL SELECT workload, tokenizer, counting, population, 1, 'prefill_tokens', 'max', max_prefill_tokens FROM extremes
    UNION ALL SELECT workload, tokenizer, counting, population, 1, 'context_tokens', 'max', max_context_tokens FROM extremes
    UNION ALL SELECT workload, NULL, NULL, NULL, NULL, 'records', 'count', sum(records) FROM sources GROUP BY workload
),
on_paper AS (SELECT * FROM kappa_crit WHERE basis = 'paper' AND kv_dtype = 'bf16'),
-- The text of the paper computes these two from other inputs than its tables.
of_text AS (
    SELECT 'llama-3.1-405b/h100-sxm/' || link AS statistic, kappa_crit(kappa_m(810e9, 516e3), kappa_hw(rate, 2000e12)) AS value
    FROM (VALUES ('pcie5-x16', 64e9), ('vllm-0.10.1-lmcache-0.3.5', 15e9)) AS links(link, rate)
),
computed AS (
    SELECT 'kappa_crit' AS metric, model || '/' || accelerator || '/' || link AS statistic, kappa_crit AS value FROM on_paper
    WHERE model || '/' || accelerator || '/' || link NOT IN (SELECT statistic FROM of_text)
    UNION ALL SELECT 'kappa_crit', statistic, value FROM of_text
    UNION ALL SELECT DISTINCT 'kappa_m_flop_per_byte', model || '//', kappa_m_flop_per_byte FROM on_paper
    UNION ALL SELECT 'kv_bytes_per_token', model || '//', kv_bytes_per_token FROM models
    UNION ALL SELECT DISTINCT 'kappa_hw_byte_per_flop', '/' || accelerator || '/' || link, kappa_hw_byte_per_flop FROM on_paper
),
compared AS (
    SELECT
        p.* EXCLUDE (printed_digit, why, retrieved),
        coalesce(m.value, c.value) AS ours,
        CASE WHEN p.workload IS NULL THEN TRUE ELSE coalesce(f.is_full_set, FALSE) END AS is_full_set
    FROM published p
    LEFT JOIN measured m
        ON p.workload = m.workload AND p.metric = m.metric AND p.statistic = m.statistic
        AND (m.metric = 'records' OR (p.tokenizer = m.tokenizer AND p.counting = m.counting
             AND p.population = m.population AND p.block_tokens = m.block_tokens))
    LEFT JOIN computed c ON p.workload IS NULL AND p.metric = c.metric AND p.statistic = c.statistic
    LEFT JOIN full_sizes f ON p.workload = f.workload
)
SELECT
    * EXCLUDE (is_full_set),
    ours / value AS ratio,
    is_full_set,
    CASE WHEN is_full_set AND is_asserted AND ours IS NOT NULL THEN abs(ours - value) <= tolerance * abs(value) END
        AS within_tolerance
FROM compared
ORDER BY workload NULLS LAST, quantity, source
