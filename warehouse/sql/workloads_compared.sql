-- Two workloads counted the same way; each pair is listed in both directions.
CREATE VIEW workloads_compared AS
WITH series AS (
    SELECT s.workload, s.counting, s.reuse, s.tokenizer, p.value AS p50
    FROM summary s
    LEFT JOIN percentiles p
        ON p.workload = s.workload AND p.counting = s.counting AND p.reuse = s.reuse AND p.tokenizer = s.tokenizer
        AND p.metric = 'kappa_ratio' AND p.population = 'reused' AND p.block_tokens = 1 AND p.percentile = 50
)
SELECT
    a.tokenizer, a.counting, a.reuse, a.workload,
    b.workload AS other_workload,
    a.p50 AS kappa_ratio_p50,
    b.p50 AS other_kappa_ratio_p50,
    b.p50 / a.p50 AS kappa_ratio_p50_ratio
FROM series a
JOIN series b ON a.tokenizer = b.tokenizer AND a.counting = b.counting AND a.reuse = b.reuse AND a.workload <> b.workload
