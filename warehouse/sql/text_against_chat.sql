-- The effect of the chat template, from totals and percentiles. `template_overhead` gives it turn by turn.
CREATE VIEW text_against_chat AS
WITH medians AS (
    SELECT workload, tokenizer, counting, value FROM percentiles
    WHERE reuse = 'history' AND metric = 'kappa_ratio' AND population = 'reused' AND block_tokens = 1 AND percentile = 50
)
SELECT
    c.workload, c.tokenizer,
    (c.cached_tokens_sum + c.prefill_tokens_sum - t.cached_tokens_sum - t.prefill_tokens_sum) / c.turns
        AS template_tokens_mean,
    t.pooled_kappa_ratio AS text_pooled_kappa_ratio,
    c.pooled_kappa_ratio AS chat_pooled_kappa_ratio,
    mt.value AS text_kappa_ratio_p50,
    mc.value AS chat_kappa_ratio_p50
FROM summary c
JOIN summary t ON c.workload = t.workload AND c.tokenizer = t.tokenizer AND t.counting = 'text' AND t.reuse = c.reuse
LEFT JOIN medians mt ON mt.workload = c.workload AND mt.tokenizer = c.tokenizer AND mt.counting = 'text'
LEFT JOIN medians mc ON mc.workload = c.workload AND mc.tokenizer = c.tokenizer AND mc.counting = 'chat'
WHERE c.counting = 'chat' AND c.reuse = 'history'
