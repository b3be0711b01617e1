-- The formulae of `pipelines` as macros of the same names, arguments in the same order, equal to the last bit.
-- Each stands by itself, so that it also works in an attached database. What they mean: docs/kappa-crit.md.

-- kappa
CREATE MACRO kappa_ratio(cached_tokens, prefill_tokens) AS
    CASE WHEN prefill_tokens > 0 THEN cached_tokens / prefill_tokens
    ELSE error('prefill_tokens is not positive, a turn computes at least one token') END;
CREATE MACRO block_tokens(cached_tokens, prefill_tokens, block) AS {
    'cached_tokens': cached_tokens::BIGINT // block * block,
    'prefill_tokens': cached_tokens::BIGINT + prefill_tokens - cached_tokens::BIGINT // block * block
};
CREATE MACRO gqa_kv_bytes_per_token(layers, kv_heads, head_dim, v_head_dim, element_bytes) AS
    layers::DOUBLE * kv_heads * (head_dim + v_head_dim) * element_bytes;
CREATE MACRO mla_kv_bytes_per_token(layers, kv_lora_rank, qk_rope_head_dim, element_bytes) AS
    layers::DOUBLE * (kv_lora_rank + qk_rope_head_dim) * element_bytes;
CREATE MACRO flops_per_token(active_params) AS 2 * active_params::DOUBLE;
CREATE MACRO kappa_m(flops_per_token, kv_bytes_per_token) AS flops_per_token::DOUBLE / kv_bytes_per_token;
CREATE MACRO kappa_hw(bytes_per_s, flop_per_s) AS bytes_per_s::DOUBLE / flop_per_s;
CREATE MACRO kappa_crit(kappa_m_flop_per_byte, kappa_hw_byte_per_flop) AS
    kappa_m_flop_per_byte::DOUBLE * kappa_hw_byte_per_flop;
CREATE MACRO tensor_parallel_factor(tensor_parallel, kv_heads) AS
    (1 / tensor_parallel::DOUBLE) / greatest(1 / tensor_parallel::DOUBLE, 1 / kv_heads::DOUBLE);
CREATE MACRO pcie_overhead(kappa_ratio, kappa_crit) AS kappa_ratio::DOUBLE / kappa_crit;
CREATE MACRO transfer_share(pcie_overhead) AS pcie_overhead::DOUBLE / (1 + pcie_overhead);
CREATE MACRO transfer_s(cached_tokens, kv_bytes_per_token, bytes_per_s) AS
    cached_tokens::DOUBLE * kv_bytes_per_token / bytes_per_s;
CREATE MACRO compute_s(prefill_tokens, flops_per_token, flop_per_s) AS
    prefill_tokens::DOUBLE * flops_per_token / flop_per_s;
CREATE MACRO ttft_s(transfer_s, compute_s) AS transfer_s::DOUBLE + compute_s;
CREATE MACRO scheduled_tokens(pool_tokens, kappa_ratio) AS pool_tokens::DOUBLE / (1 + kappa_ratio);

-- attention
CREATE MACRO attended_pairs(cached_tokens, prefill_tokens) AS
    prefill_tokens::DOUBLE * cached_tokens + prefill_tokens::DOUBLE * (prefill_tokens + 1) / 2;
CREATE MACRO windowed_pairs(cached_tokens, prefill_tokens, window_tokens) AS
    least(window_tokens::DOUBLE - least(cached_tokens, window_tokens), prefill_tokens) * cached_tokens
    + least(window_tokens::DOUBLE - least(cached_tokens, window_tokens), prefill_tokens)
        * (least(window_tokens::DOUBLE - least(cached_tokens, window_tokens), prefill_tokens) + 1) / 2
    + (prefill_tokens - least(window_tokens::DOUBLE - least(cached_tokens, window_tokens), prefill_tokens))
        * window_tokens;
CREATE MACRO chunked_pairs(cached_tokens, prefill_tokens, chunk_tokens) AS
    (floor((cached_tokens::DOUBLE + prefill_tokens) / chunk_tokens) * (chunk_tokens::DOUBLE * (chunk_tokens + 1) / 2)
        + ((cached_tokens::DOUBLE + prefill_tokens) % chunk_tokens)
            * ((cached_tokens::DOUBLE + prefill_tokens) % chunk_tokens + 1) / 2)
    - (floor(cached_tokens::DOUBLE / chunk_tokens) * (chunk_tokens::DOUBLE * (chunk_tokens + 1) / 2)
        + (cached_tokens::DOUBLE % chunk_tokens) * (cached_tokens::DOUBLE % chunk_tokens + 1) / 2);
CREATE MACRO attention_flops_per_pair(layers, heads, head_dim, v_head_dim) AS
    2 * layers::DOUBLE * heads * (head_dim + v_head_dim);
CREATE MACRO absorbed_flops_per_pair(layers, heads, kv_lora_rank, qk_rope_head_dim) AS
    2 * layers::DOUBLE * heads * (2 * kv_lora_rank::DOUBLE + qk_rope_head_dim);
CREATE MACRO upprojection_flops_per_token(layers, heads, kv_lora_rank, nope_head_dim, v_head_dim) AS
    2 * layers::DOUBLE * kv_lora_rank * heads * (nope_head_dim + v_head_dim);
CREATE MACRO attention_flops(pairs, flops_per_pair) AS flops_per_pair::DOUBLE * pairs;
CREATE MACRO mla_attention_flops(
    cached_tokens, prefill_tokens, expanded_flops_per_pair, upprojection_flops_per_token, absorbed_flops_per_pair
) AS least(
    expanded_flops_per_pair::DOUBLE
        * (prefill_tokens::DOUBLE * cached_tokens + prefill_tokens::DOUBLE * (prefill_tokens + 1) / 2)
        + upprojection_flops_per_token::DOUBLE * cached_tokens,
    absorbed_flops_per_pair::DOUBLE
        * (prefill_tokens::DOUBLE * cached_tokens + prefill_tokens::DOUBLE * (prefill_tokens + 1) / 2)
);
CREATE MACRO indexer_flops_per_pair(layers, index_heads, index_head_dim) AS
    2 * layers::DOUBLE * index_heads * (index_head_dim + 1);
CREATE MACRO sparse_mla_flops(
    cached_tokens, attended_pairs, picked_pairs,
    expanded_flops_per_pair, upprojection_flops_per_token, absorbed_flops_per_pair, indexer_flops_per_pair
) AS least(
    expanded_flops_per_pair::DOUBLE * picked_pairs + upprojection_flops_per_token::DOUBLE * cached_tokens,
    absorbed_flops_per_pair::DOUBLE * picked_pairs
) + indexer_flops_per_pair::DOUBLE * attended_pairs;
CREATE MACRO prefill_flops(prefill_tokens, layer_params, head_params, attention_flops) AS
    2 * layer_params::DOUBLE * prefill_tokens + 2 * head_params::DOUBLE + attention_flops;

-- cache
CREATE MACRO quantised_element_bytes(bits, group_elements, group_bytes) AS
    bits::DOUBLE / 8 + group_bytes::DOUBLE / group_elements;
CREATE MACRO quantised_kv_bytes(bf16_bytes, element_bytes) AS bf16_bytes::DOUBLE * element_bytes / 2;
CREATE MACRO cached_kv_bytes(cached_tokens, kv_bytes_per_token) AS cached_tokens::DOUBLE * kv_bytes_per_token;
CREATE MACRO windowed_kv_bytes(cached_tokens, kv_bytes_per_token, window_bytes_per_token, window_tokens) AS
    cached_tokens::DOUBLE * kv_bytes_per_token
    + least(cached_tokens, window_tokens)::DOUBLE * window_bytes_per_token;
CREATE MACRO chunked_kv_bytes(cached_tokens, kv_bytes_per_token, chunk_bytes_per_token, chunk_tokens) AS
    cached_tokens::DOUBLE * kv_bytes_per_token + cached_tokens::DOUBLE % chunk_tokens * chunk_bytes_per_token;
CREATE MACRO stateful_kv_bytes(cached_tokens, kv_bytes_per_token, state_bytes) AS
    cached_tokens::DOUBLE * kv_bytes_per_token + least(cached_tokens, 1)::DOUBLE * state_bytes;
CREATE MACRO kv_share_of_gpu(tensor_parallel, kv_heads) AS
    greatest(1 / tensor_parallel::DOUBLE, 1 / kv_heads::DOUBLE);

-- weights
CREATE MACRO touched_params(total_params, active_params, experts, experts_per_token, prefill_tokens) AS
    active_params::DOUBLE
    - experts_per_token * ((total_params::DOUBLE - active_params) / greatest(experts - experts_per_token, 1))
    + experts * ((total_params::DOUBLE - active_params) / greatest(experts - experts_per_token, 1))
        * (1 - pow(1 - experts_per_token::DOUBLE / experts, prefill_tokens));
CREATE MACRO weights_s(params, weight_bytes, hbm_bytes_per_s) AS params::DOUBLE * weight_bytes / hbm_bytes_per_s;
CREATE MACRO floored_compute_s(compute_s, weights_s) AS greatest(compute_s::DOUBLE, weights_s);

-- serving
CREATE MACRO layerwise_ttft_s(transfer_s, compute_s, layers) AS
    greatest(transfer_s::DOUBLE, compute_s) + least(transfer_s::DOUBLE, compute_s) / layers;
CREATE MACRO write_back_s(new_tokens, kv_bytes_per_token, to_host_bytes_per_s) AS
    new_tokens::DOUBLE * kv_bytes_per_token / to_host_bytes_per_s;
CREATE MACRO tiered_bytes_per_s(link_bytes_per_s, tier_bytes_per_s, tier_share) AS
    1 / ((1 - tier_share::DOUBLE) / link_bytes_per_s
        + tier_share::DOUBLE / least(tier_bytes_per_s, link_bytes_per_s));
CREATE MACRO needed_bytes_per_s(kv_bytes, compute_s) AS kv_bytes::DOUBLE / compute_s;
CREATE MACRO requests_per_s(bytes_per_s, kv_bytes_per_request) AS
    CASE WHEN kv_bytes_per_request > 0 THEN bytes_per_s::DOUBLE / kv_bytes_per_request ELSE 'inf'::DOUBLE END;
CREATE MACRO recompute_flops_per_token(cached_tokens, layer_params, flops_per_pair) AS
    2 * layer_params::DOUBLE + flops_per_pair::DOUBLE * (cached_tokens + 1) / 2;
CREATE MACRO break_even_bytes_per_s(kv_bytes_per_token, recompute_flops_per_token, flop_per_s) AS
    kv_bytes_per_token::DOUBLE * flop_per_s / recompute_flops_per_token;
CREATE MACRO crossover_cached_tokens(kv_bytes_per_token, bytes_per_s, flop_per_s, layer_params, flops_per_pair) AS
    greatest(
        2 * (kv_bytes_per_token::DOUBLE * flop_per_s / bytes_per_s - 2 * layer_params::DOUBLE) / flops_per_pair - 1, 0
    );
CREATE MACRO energy_j(idle_w, busy_w, transfer_s, compute_s, tensor_parallel) AS
    (idle_w::DOUBLE * transfer_s + busy_w::DOUBLE * compute_s) * tensor_parallel;
CREATE MACRO average_power_w(idle_w, busy_w, transfer_share, tensor_parallel) AS
    (idle_w::DOUBLE * transfer_share + busy_w::DOUBLE * (1 - transfer_share)) * tensor_parallel;
