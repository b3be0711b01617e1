-- kappa_ratio along a session: all turns with the same turn_index.
CREATE VIEW kappa_ratio_by_turn AS
SELECT
    workload, tokenizer, counting, reuse, turn_index,
    count(*) AS turns,
    sum(cached_tokens) / count(*) AS cached_tokens_mean,
    sum(prefill_tokens) / count(*) AS prefill_tokens_mean,
    quantile_cont(kappa_ratio, 0.25) AS kappa_ratio_p25,
    quantile_cont(kappa_ratio, 0.5) AS kappa_ratio_p50,
    quantile_cont(kappa_ratio, 0.75) AS kappa_ratio_p75,
    quantile_cont(kappa_ratio, 0.9) AS kappa_ratio_p90
FROM turns
GROUP BY workload, tokenizer, counting, reuse, turn_index
