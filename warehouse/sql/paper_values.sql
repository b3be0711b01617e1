-- Every number that the paper prints, and the value that reproduces it. A workload's figure needs its full set.
-- `worked` holds values that no table has: shares, tokens an iteration, and values to compare with a measurement.
CREATE VIEW paper_values AS
WITH on_paper AS (SELECT * FROM kappa_crit WHERE basis = 'paper' AND kv_dtype = 'bf16'),
crit_at_15 AS (
    SELECT kappa_crit AS crit FROM on_paper WHERE model = 'qwen3-235b-a22b' AND link = 'vllm-0.10.1-lmcache-0.3.5'
),
tokens AS (
    SELECT
        max(value) FILTER (workload = 'sharegpt' AND metric = 'cached_tokens' AND statistic = 'mean') AS sharegpt_k,
        max(value) FILTER (workload = 'sharegpt' AND metric = 'prefill_tokens' AND statistic = 'mean') AS sharegpt_t,
        max(value) FILTER (workload = 'narrativeqa' AND metric = 'cached_tokens' AND statistic = 'p50') AS narrativeqa_k,
        max(value) FILTER (workload = 'narrativeqa' AND metric = 'prefill_tokens' AND statistic = 'mean') AS narrativeqa_t
    FROM published WHERE starts_with(source, 'arXiv 2601.19910')
),
power AS (
    SELECT workload, max(value) AS mean_w FROM published
    WHERE metric = 'power_w' AND statistic = 'mean at 70 requests/s' GROUP BY workload
),
-- The paper prints no idle power. `idle` solves for it from NarrativeQA's average power: a turn loads K at 15 GB/s at
-- idle power, and computes T at the TDP of 700 W.
transfers AS (
    SELECT 'sharegpt' AS workload, transfer_share(pcie_overhead(kappa_ratio(sharegpt_k, sharegpt_t), crit)) AS share
    FROM tokens, crit_at_15 WHERE sharegpt_t IS NOT NULL
    UNION ALL SELECT 'narrativeqa', transfer_share(pcie_overhead(kappa_ratio(narrativeqa_k, narrativeqa_t), crit))
    FROM tokens, crit_at_15 WHERE narrativeqa_t IS NOT NULL
),
idle AS (
    SELECT (mean_w - 700 * (1 - share)) / share AS idle_w
    FROM power JOIN transfers USING (workload) WHERE workload = 'narrativeqa'
),
powers AS (
    SELECT 'mean' AS kind, workload, average_power_w(idle_w, 700, share, 1) AS value FROM transfers, idle
    UNION ALL SELECT 'max', workload, 700 FROM transfers
),
worked AS (
    SELECT 'attention_share' AS metric, model || '//' AS statistic, NULL AS workload,
        attention_flops(attended_pairs(0, 65536), attention_flops_per_token_pair) / (65536 * flops_per_token(printed_params))
            AS value
    FROM models JOIN (
        VALUES ('llama-3.1-70b', 70e9), ('llama-3.1-405b', 405e9), ('qwen3-235b-a22b', 22e9)
    ) AS paper(model, printed_params) USING (model)
    -- With 15 GB/s shared by the eight GPUs of the node and every part of t_GPU at the rate that is sustained.
    UNION ALL SELECT 'pcie_overhead', NULL, NULL, predicted FROM validation WHERE point = 'v30'
    UNION ALL SELECT 'transfer_share', '65K', NULL,
        transfer_share(pcie_overhead(kappa_ratio(65536, 64), crit)) FROM crit_at_15
    UNION ALL SELECT 'transfer_share', '8K', NULL,
        transfer_share(pcie_overhead(kappa_ratio(8192, 128), crit)) FROM crit_at_15
    UNION ALL SELECT 'tokens_per_iteration', NULL, 'sharegpt',
        scheduled_tokens(479150, kappa_ratio(sharegpt_k, sharegpt_t)) FROM tokens WHERE sharegpt_t IS NOT NULL
    UNION ALL SELECT 'tokens_per_iteration', NULL, 'narrativeqa',
        scheduled_tokens(479150, kappa_ratio(narrativeqa_k, narrativeqa_t)) FROM tokens WHERE narrativeqa_t IS NOT NULL
    UNION ALL SELECT 'tdp_share', workload, NULL, mean_w / 700 FROM power
    UNION ALL SELECT 'power_w', kind || ' at ' || rate || ' requests/s', workload, value
    FROM powers, (VALUES (70), (130)) AS rates(rate)
),
printed AS (
    SELECT
        c.*,
        p.printed_digit,
        p.why,
        coalesce(w.value, CASE WHEN c.is_full_set THEN c.ours END) AS reproduced
    FROM paper_comparison c
    JOIN published p USING (quantity, source)
    LEFT JOIN worked w
        ON c.metric = w.metric AND c.workload IS NOT DISTINCT FROM w.workload
        AND (w.statistic IS NULL OR w.statistic = c.statistic
             OR (c.metric = 'transfer_share' AND contains(c.quantity, 'K = ' || w.statistic)))
    WHERE starts_with(c.source, 'arXiv 2601.19910')
)
SELECT
    quantity, workload, metric, statistic,
    value AS printed,
    reproduced,
    reproduced / value - 1 AS residual,
    CASE
        WHEN reproduced IS NULL THEN 'not reproduced'
        WHEN abs(reproduced / value - 1) <= 0.01 THEN 'within 1 %'
        WHEN abs(reproduced - value) <= printed_digit / 2 THEN 'equal when rounded'
        ELSE 'differs'
    END AS verdict,
    is_asserted,
    why
FROM printed
ORDER BY workload NULLS FIRST, quantity
