-- The length of sessions in turns that were not rejected.
CREATE VIEW turns_per_session AS
WITH counted AS (
    SELECT workload, tokenizer, counting, reuse, session_id, count(*) AS n FROM turns
    GROUP BY workload, tokenizer, counting, reuse, session_id
)
SELECT
    workload, tokenizer, counting, reuse,
    count(*) AS sessions,
    min(n) AS turns_min,
    sum(n) / count(*) AS turns_mean,
    quantile_cont(n::DOUBLE, 0.5) AS turns_p50,
    quantile_cont(n::DOUBLE, 0.9) AS turns_p90,
    quantile_cont(n::DOUBLE, 0.99) AS turns_p99,
    max(n) AS turns_max
FROM counted
GROUP BY workload, tokenizer, counting, reuse
