"""FLOP of attention over a cached context, one pure function per formula. Each is also an SQL macro of the same name.

A pair is one new token attending to one token, itself included; T new tokens after K cached ones make
T K + T (T + 1) / 2 pairs. Token counts are whole numbers below 2^53, given as numbers or as arrays of one shape.
A source "derivation" is our own, given in one line.
"""

from __future__ import annotations

from warehouse.formulas.macros import formula
from warehouse.formulas.numbers import Value, least


@formula("prefill_tokens::DOUBLE * cached_tokens + prefill_tokens::DOUBLE * (prefill_tokens + 1) / 2")
def attended_pairs(cached_tokens: Value, prefill_tokens: Value) -> Value:
    """Return the pairs of full attention, dimensionless: T K + T (T + 1) / 2.

    Source: derivation: new token i attends to K + i tokens, itself included; summed over i = 1 .. T.

    >>> attended_pairs(10, 3)
    36.0
    """
    return prefill_tokens * cached_tokens + prefill_tokens * (prefill_tokens + 1) / 2


@formula(
    "least(window_tokens::DOUBLE - least(cached_tokens, window_tokens), prefill_tokens) * cached_tokens + "
    "least(window_tokens::DOUBLE - least(cached_tokens, window_tokens), prefill_tokens) * "
    "(least(window_tokens::DOUBLE - least(cached_tokens, window_tokens), prefill_tokens) + 1) / 2 + "
    "(prefill_tokens - least(window_tokens::DOUBLE - least(cached_tokens, window_tokens), prefill_tokens)) * "
    "window_tokens"
)
def windowed_pairs(cached_tokens: Value, prefill_tokens: Value, window_tokens: float) -> Value:
    """Return the pairs of a rolling window of W tokens: the sum of min(K + i, W) over i = 1 .. T.

    The first n = min(max(W - K, 0), T) new tokens see the whole context: n K + n (n + 1) / 2; each later one sees W.
    Source: Mistral 7B, arXiv 2310.06825, section 2.

    >>> windowed_pairs(10, 3, 12)
    35.0
    """
    room = window_tokens - least(cached_tokens, window_tokens)
    growing = least(room, prefill_tokens)
    seen: Value = growing * cached_tokens + growing * (growing + 1) / 2 + (prefill_tokens - growing) * window_tokens
    return seen


@formula(
    "(floor((cached_tokens::DOUBLE + prefill_tokens) / chunk_tokens) * (chunk_tokens::DOUBLE * (chunk_tokens + "
    "1) / 2) + ((cached_tokens::DOUBLE + prefill_tokens) % chunk_tokens) * ((cached_tokens::DOUBLE + "
    "prefill_tokens) % chunk_tokens + 1) / 2) - (floor(cached_tokens::DOUBLE / chunk_tokens) * "
    "(chunk_tokens::DOUBLE * (chunk_tokens + 1) / 2) + (cached_tokens::DOUBLE % chunk_tokens) * "
    "(cached_tokens::DOUBLE % chunk_tokens + 1) / 2)"
)
def chunked_pairs(cached_tokens: Value, prefill_tokens: Value, chunk_tokens: float) -> Value:
    """Return the pairs of attention inside fixed chunks of C tokens: the token at position p sees p mod C + 1 tokens.

    The sum is G(K + T) - G(K); the first m tokens have G(m) = (m // C) C (C + 1) / 2 + r (r + 1) / 2, r = m mod C.
    Source: chunked local layers of Llama 4, its config's attention_chunk_size.

    >>> chunked_pairs(2, 3, 4)
    8.0
    """
    end = cached_tokens + prefill_tokens
    return _pairs_in_chunks(end, chunk_tokens) - _pairs_in_chunks(cached_tokens, chunk_tokens)


def _pairs_in_chunks(tokens: Value, chunk_tokens: float) -> Value:
    rest = tokens % chunk_tokens
    return tokens // chunk_tokens * (chunk_tokens * (chunk_tokens + 1) / 2) + rest * (rest + 1) / 2


@formula("2 * layers::DOUBLE * heads * (head_dim + v_head_dim)")
def attention_flops_per_pair(layers: float, heads: float, head_dim: float, v_head_dim: float) -> float:
    """Return alpha in FLOP per pair: 2 L n_h (d_qk + d_v); with d_qk = d_v = d_h it is 4 L n_h d_h.

    The score and the weighted sum each take one multiplication and one addition per element.
    Source: derivation: 2 d_qk for a score, 2 d_v for its part of the sum, in each head of each layer.

    >>> attention_flops_per_pair(80, 64, 128, 128)
    2621440
    """
    return 2 * layers * heads * (head_dim + v_head_dim)


@formula("2 * layers::DOUBLE * heads * (2 * kv_lora_rank::DOUBLE + qk_rope_head_dim)")
def absorbed_flops_per_pair(layers: float, heads: float, kv_lora_rank: float, qk_rope_head_dim: float) -> float:
    """Return alpha of MLA computed on the latent, in FLOP per pair: 2 L n_h (2 r + d_rope).

    Source: DeepSeek-V2, arXiv 2405.04434, section 2.1 (the up-projections are absorbed).

    >>> absorbed_flops_per_pair(61, 128, 512, 64)
    16990208
    """
    return 2 * layers * heads * (2 * kv_lora_rank + qk_rope_head_dim)


@formula("2 * layers::DOUBLE * kv_lora_rank * heads * (nope_head_dim + v_head_dim)")
def upprojection_flops_per_token(
    layers: float, heads: float, kv_lora_rank: float, nope_head_dim: float, v_head_dim: float
) -> float:
    """Return FLOP/token to expand one cached latent to keys and values: 2 L r n_h (d_nope + d_v).

    Source: DeepSeek-V2, arXiv 2405.04434, section 2.1.

    >>> upprojection_flops_per_token(61, 128, 512, 128, 128)
    2046820352
    """
    return 2 * layers * kv_lora_rank * heads * (nope_head_dim + v_head_dim)


@formula("flops_per_pair::DOUBLE * pairs")
def attention_flops(pairs: Value, flops_per_pair: float) -> Value:
    """Return FLOP of attention: alpha x pairs.

    Source: derivation: each pair costs the same.
    """
    return float(flops_per_pair) * pairs


@formula(
    "least( expanded_flops_per_pair::DOUBLE * (prefill_tokens::DOUBLE * cached_tokens + prefill_tokens::DOUBLE * "
    "(prefill_tokens + 1) / 2) + upprojection_flops_per_token::DOUBLE * cached_tokens, "
    "absorbed_flops_per_pair::DOUBLE * (prefill_tokens::DOUBLE * cached_tokens + prefill_tokens::DOUBLE * "
    "(prefill_tokens + 1) / 2) )"
)
def mla_attention_flops(
    cached_tokens: Value,
    prefill_tokens: Value,
    expanded_flops_per_pair: float,
    upprojection_flops_per_token: float,
    absorbed_flops_per_pair: float,
) -> Value:
    """Return FLOP of MLA in the cheaper of its two forms, for the same cache.

    Expanded: alpha x pairs + K x the up-projection of a cached latent (that of new tokens is in the parameters).
    Absorbed: alpha' x pairs, without an up-projection. Few new tokens favour the absorbed form.
    Source: DeepSeek-V2, arXiv 2405.04434, section 2.1.
    """
    pairs = attended_pairs(cached_tokens, prefill_tokens)
    expanded = expanded_flops_per_pair * pairs + float(upprojection_flops_per_token) * cached_tokens
    cheaper: Value = least(expanded, float(absorbed_flops_per_pair) * pairs)
    return cheaper


@formula("2 * layers::DOUBLE * index_heads * (index_head_dim + 1)")
def indexer_flops_per_pair(layers: float, index_heads: float, index_head_dim: float) -> float:
    """Return FLOP of an indexer's score of one pair: 2 L H_I (d_I + 1).

    Source: DeepSeek-V3.2, transformers 5.24.0 models/deepseek_v32: the score is the sum over heads of w ReLU(q k), that
    is 2 d_I for the product and 2 for its weighted sum.

    >>> indexer_flops_per_pair(61, 64, 128)
    1007232
    """
    return 2 * layers * index_heads * (index_head_dim + 1)


@formula(
    "least( expanded_flops_per_pair::DOUBLE * picked_pairs + upprojection_flops_per_token::DOUBLE * "
    "cached_tokens, absorbed_flops_per_pair::DOUBLE * picked_pairs ) + indexer_flops_per_pair::DOUBLE * "
    "attended_pairs"
)
def sparse_mla_flops(  # noqa: PLR0913, PLR0917 - two counts of pairs, and what a pair costs in each part
    cached_tokens: Value,
    attended_pairs: Value,
    picked_pairs: Value,
    expanded_flops_per_pair: float,
    upprojection_flops_per_token: float,
    absorbed_flops_per_pair: float,
    indexer_flops_per_pair: float,
) -> Value:
    """Return FLOP of sparse MLA: the indexer scores every pair, and MLA computes the pairs that it picked.

    Picked pairs are the sum of min(K + i, k) over i = 1 .. T, as in a window of k tokens, at any positions. MLA takes
    the cheaper of its two forms, as in `mla_attention_flops`; the expanded form expands at most all K.
    Source: DeepSeek-V3.2, transformers 5.24.0 models/deepseek_v32, index_topk.

    >>> sparse_mla_flops(10, 36.0, 24.0, 4, 2, 5, 1)
    152.0
    """
    expanded = float(expanded_flops_per_pair) * picked_pairs + float(upprojection_flops_per_token) * cached_tokens
    cheaper: Value = least(expanded, float(absorbed_flops_per_pair) * picked_pairs)
    return cheaper + float(indexer_flops_per_pair) * attended_pairs


@formula("2 * layer_params::DOUBLE * prefill_tokens + 2 * head_params::DOUBLE + attention_flops")
def prefill_flops(prefill_tokens: Value, layer_params: float, head_params: float, attention_flops: Value) -> Value:
    """Return F(T given K) in FLOP: 2 N_layers T + 2 N_head + attention.

    The embedding is a look-up, and the head is computed only for the last token.
    Source: derivation: 2 FLOP for each parameter that multiplies a token, plus attention.

    >>> prefill_flops(10.0, 100, 50, 7.0)
    2107.0
    """
    return 2.0 * layer_params * prefill_tokens + 2.0 * head_params + attention_flops
