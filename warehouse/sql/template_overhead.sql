-- Tokens that the chat template adds to a turn: `text` against `chat`, turn by turn.
CREATE VIEW template_overhead AS
SELECT
    c.workload, c.tokenizer, c.session_id, c.turn_index,
    coalesce(t.cached_tokens + t.prefill_tokens, 0) AS text_context_tokens,
    c.cached_tokens + c.prefill_tokens AS chat_context_tokens,
    c.cached_tokens + c.prefill_tokens - coalesce(t.cached_tokens + t.prefill_tokens, 0) AS template_tokens,
    t.kappa_ratio AS text_kappa_ratio,
    c.kappa_ratio AS chat_kappa_ratio
FROM (SELECT * FROM turns WHERE counting = 'chat' AND reuse = 'history') c
LEFT JOIN (SELECT * FROM turns WHERE counting = 'text' AND reuse = 'history') t USING (workload, tokenizer, session_id, turn_index)
