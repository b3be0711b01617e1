-- Loaded, computed and generated tokens of a whole session.
CREATE VIEW session_totals AS
SELECT
    workload, tokenizer, counting, reuse, session_id,
    count(*) AS turns,
    sum(cached_tokens)::BIGINT AS cached_tokens_sum,
    sum(prefill_tokens)::BIGINT AS prefill_tokens_sum,
    sum(output_tokens)::BIGINT AS output_tokens_sum,
    max(cached_tokens + prefill_tokens) AS longest_context_tokens
FROM turns
GROUP BY workload, tokenizer, counting, reuse, session_id
