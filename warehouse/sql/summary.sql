-- Totals and means of one series of turns. $turns: its Parquet file; $special, $uncounted, $is_sample: from the counting step.
SELECT
    workload, tokenizer, counting, reuse,
    count(DISTINCT session_id) AS sessions,
    count(*) AS turns,
    count(*) FILTER (WHERE is_first_turn) AS first_turns,
    sum(cached_tokens)::BIGINT AS cached_tokens_sum,
    sum(prefill_tokens)::BIGINT AS prefill_tokens_sum,
    sum(output_tokens)::BIGINT AS output_tokens_sum,
    sum(cached_tokens) / count(*) AS cached_tokens_mean,
    sum(prefill_tokens) / count(*) AS prefill_tokens_mean,
    fsum(kappa_ratio) / count(*) AS kappa_ratio_mean,
    sum(cached_tokens) / sum(prefill_tokens) AS pooled_kappa_ratio,
    $special::BIGINT AS special_token_messages,
    $uncounted::BIGINT AS uncounted_parts,
    $is_sample::BOOLEAN AS is_sample
FROM read_parquet($turns, hive_partitioning = false)
GROUP BY workload, tokenizer, counting, reuse
