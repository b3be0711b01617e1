-- The share of prompt tokens that were cached: sum(K) / (sum(K) + sum(T)).
CREATE VIEW cached_share AS
SELECT
    workload, tokenizer, counting, reuse, cached_tokens_sum, prefill_tokens_sum,
    cached_tokens_sum / (cached_tokens_sum + prefill_tokens_sum) AS cached_share
FROM summary
