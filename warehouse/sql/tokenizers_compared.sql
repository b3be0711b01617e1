-- The same turns counted by two tokenizers; each pair is listed in both directions.
CREATE VIEW tokenizers_compared AS
WITH series AS (
    SELECT s.workload, s.counting, s.reuse, s.tokenizer, s.cached_tokens_sum + s.prefill_tokens_sum AS context, p.value AS p50
    FROM summary s
    LEFT JOIN percentiles p
        ON p.workload = s.workload AND p.counting = s.counting AND p.reuse = s.reuse AND p.tokenizer = s.tokenizer
        AND p.metric = 'kappa_ratio' AND p.population = 'reused' AND p.block_tokens = 1 AND p.percentile = 50
)
SELECT
    a.workload, a.counting, a.reuse, a.tokenizer,
    b.tokenizer AS other_tokenizer,
    b.context / a.context AS context_tokens_ratio,
    a.p50 AS kappa_ratio_p50,
    b.p50 AS other_kappa_ratio_p50,
    b.p50 / a.p50 AS kappa_ratio_p50_ratio
FROM series a
JOIN series b ON a.workload = b.workload AND a.counting = b.counting AND a.reuse = b.reuse AND a.tokenizer <> b.tokenizer
