# mypy: ignore-errors
"""Scalar functions printed from the formulas by `python -m roofline._generated`; never edited by hand."""

DIGEST = "3492cb0281021b82"  # sha256 of what follows


def attention_flops(*, batch, head_dim, heads, pairs):
    return 4 * batch * head_dim * heads * pairs


def attention_vector_flops():
    return 0


def attention_exps(*, batch, heads, pairs):
    return batch * heads * pairs


def attention_bytes(*, batch, head_dim, heads, kv_row_bytes, q_len, rows_read, w_act):
    return (2 * head_dim * heads * q_len * w_act + kv_row_bytes * rows_read) * batch


def attention_intensity(*, head_dim, heads, kv_row_bytes, pairs, q_len, rows_read, w_act):
    return 4 * head_dim * heads * pairs / (2 * head_dim * heads * q_len * w_act + kv_row_bytes * rows_read)


def attention_tensor(*, batch, head_dim, heads, pairs, peak):
    return 4 * batch * head_dim * heads * pairs / peak


def attention_exp(*, batch, exp_rate, heads, pairs):
    return batch * heads * pairs / exp_rate


def attention_memory(*, bandwidth, batch, head_dim, heads, kv_row_bytes, q_len, rows_read, w_act):
    return (2 * head_dim * heads * q_len * w_act + kv_row_bytes * rows_read) * batch / bandwidth


def attention_default_kv_row_bytes(*, head_dim, kv_heads, w_kv):
    return 2 * head_dim * kv_heads * w_kv


def mla_mha_flops(*, batch, heads, nope, pairs, rope, value):
    return 2 * batch * heads * (nope + rope + value) * pairs


def mla_mha_vector_flops():
    return 0


def mla_mha_exps(*, batch, heads, pairs):
    return batch * heads * pairs


def mla_mha_bytes(*, batch, expanded_row_bytes, heads, nope, q_len, rope, rows_read, value, w_act):
    return batch * (expanded_row_bytes * rows_read + heads * nope * q_len * w_act + heads * q_len * rope * w_act + heads * q_len * value * w_act)


def mla_mha_intensity(*, expanded_row_bytes, heads, nope, pairs, q_len, rope, rows_read, value, w_act):
    return 2 * heads * (nope + rope + value) * pairs / (expanded_row_bytes * rows_read + heads * nope * q_len * w_act + heads * q_len * rope * w_act + heads * q_len * value * w_act)


def mla_mha_tensor(*, batch, heads, nope, pairs, peak, rope, value):
    return 2 * batch * heads * (nope + rope + value) * pairs / peak


def mla_mha_exp(*, batch, exp_rate, heads, pairs):
    return batch * heads * pairs / exp_rate


def mla_mha_memory(*, bandwidth, batch, expanded_row_bytes, heads, nope, q_len, rope, rows_read, value, w_act):
    return batch * (expanded_row_bytes * rows_read + heads * nope * q_len * w_act + heads * q_len * rope * w_act + heads * q_len * value * w_act) / bandwidth


def mla_mha_default_expanded_row_bytes(*, heads, nope, rope, value, w_expanded):
    return (heads * (nope + value) + rope) * w_expanded


def mla_mqa_flops(*, batch, kernel_heads, latent, pairs, rope):
    return 2 * (2 * latent + rope) * batch * kernel_heads * pairs


def mla_mqa_vector_flops():
    return 0


def mla_mqa_exps(*, batch, kernel_heads, pairs):
    return batch * kernel_heads * pairs


def mla_mqa_bytes(*, batch, heads, kv_row_bytes, latent, q_len, rope, rows_read, w_act):
    return (2 * heads * latent * q_len * w_act + heads * q_len * rope * w_act + kv_row_bytes * rows_read) * batch


def mla_mqa_intensity(*, heads, kernel_heads, kv_row_bytes, latent, pairs, q_len, rope, rows_read, w_act):
    return 2 * (2 * latent + rope) * kernel_heads * pairs / (2 * heads * latent * q_len * w_act + heads * q_len * rope * w_act + kv_row_bytes * rows_read)


def mla_mqa_tensor(*, batch, kernel_heads, latent, pairs, peak, rope):
    return 2 * (2 * latent + rope) * batch * kernel_heads * pairs / peak


def mla_mqa_exp(*, batch, exp_rate, kernel_heads, pairs):
    return batch * kernel_heads * pairs / exp_rate


def mla_mqa_memory(*, bandwidth, batch, heads, kv_row_bytes, latent, q_len, rope, rows_read, w_act):
    return (2 * heads * latent * q_len * w_act + heads * q_len * rope * w_act + kv_row_bytes * rows_read) * batch / bandwidth


def mla_mqa_default_kv_row_bytes(*, latent, rope, w_kv):
    return (latent + rope) * w_kv


def mla_up_projection_flops(*, batch, heads, latent, nope, rows_read, value):
    return 2 * batch * heads * latent * (nope + value) * rows_read


def mla_up_projection_vector_flops():
    return 0


def mla_up_projection_exps():
    return 0


def mla_up_projection_bytes(*, batch, expanded_row_bytes, heads, kv_row_bytes, latent, nope, rows_read, value, w_weight):
    return batch * expanded_row_bytes * rows_read + batch * kv_row_bytes * rows_read + heads * latent * nope * w_weight + heads * latent * value * w_weight


def mla_up_projection_intensity(*, batch, expanded_row_bytes, heads, kv_row_bytes, latent, nope, rows_read, value, w_weight):
    return 2 * batch * heads * latent * (nope + value) * rows_read / (batch * expanded_row_bytes * rows_read + batch * kv_row_bytes * rows_read + heads * latent * nope * w_weight + heads * latent * value * w_weight)


def mla_up_projection_tensor(*, batch, heads, latent, nope, peak, rows_read, value):
    return 2 * batch * heads * latent * (nope + value) * rows_read / peak


def mla_up_projection_memory(*, bandwidth, batch, expanded_row_bytes, heads, kv_row_bytes, latent, nope, rows_read, value, w_weight):
    return (batch * expanded_row_bytes * rows_read + batch * kv_row_bytes * rows_read + heads * latent * nope * w_weight + heads * latent * value * w_weight) / bandwidth


def mla_up_projection_default_kv_row_bytes(*, latent, rope, w_kv):
    return (latent + rope) * w_kv


def mla_up_projection_default_expanded_row_bytes(*, heads, nope, rope, value, w_expanded):
    return (heads * (nope + value) + rope) * w_expanded


def mla_absorption_flops(*, batch, heads, latent, nope, q_len):
    return 2 * batch * heads * latent * nope * q_len


def mla_absorption_vector_flops():
    return 0


def mla_absorption_exps():
    return 0


def mla_absorption_bytes(*, batch, heads, latent, nope, q_len, w_act, w_weight):
    return (batch * latent * q_len * w_act + batch * nope * q_len * w_act + latent * nope * w_weight) * heads


def mla_absorption_intensity(*, batch, latent, nope, q_len, w_act, w_weight):
    return 2 * batch * latent * nope * q_len / (batch * latent * q_len * w_act + batch * nope * q_len * w_act + latent * nope * w_weight)


def mla_absorption_tensor(*, batch, heads, latent, nope, peak, q_len):
    return 2 * batch * heads * latent * nope * q_len / peak


def mla_absorption_memory(*, bandwidth, batch, heads, latent, nope, q_len, w_act, w_weight):
    return (batch * latent * q_len * w_act + batch * nope * q_len * w_act + latent * nope * w_weight) * heads / bandwidth


def mla_unabsorption_flops(*, batch, heads, latent, q_len, value):
    return 2 * batch * heads * latent * q_len * value


def mla_unabsorption_vector_flops():
    return 0


def mla_unabsorption_exps():
    return 0


def mla_unabsorption_bytes(*, batch, heads, latent, q_len, value, w_act, w_weight):
    return (batch * latent * q_len * w_act + batch * q_len * value * w_act + latent * value * w_weight) * heads


def mla_unabsorption_intensity(*, batch, latent, q_len, value, w_act, w_weight):
    return 2 * batch * latent * q_len * value / (batch * latent * q_len * w_act + batch * q_len * value * w_act + latent * value * w_weight)


def mla_unabsorption_tensor(*, batch, heads, latent, peak, q_len, value):
    return 2 * batch * heads * latent * q_len * value / peak


def mla_unabsorption_memory(*, bandwidth, batch, heads, latent, q_len, value, w_act, w_weight):
    return (batch * latent * q_len * w_act + batch * q_len * value * w_act + latent * value * w_weight) * heads / bandwidth


def dsa_indexer_flops(*, batch, index_head_dim, index_heads, pairs):
    return 2 * batch * index_head_dim * index_heads * pairs


def dsa_indexer_vector_flops(*, batch, index_heads, pairs):
    return 2 * batch * index_heads * pairs


def dsa_indexer_exps():
    return 0


def dsa_indexer_bytes(*, batch, index_head_dim, index_heads, index_row_bytes, pairs, q_len, rows_read, w_index, w_logit):
    return (4 * index_heads * q_len + index_head_dim * index_heads * q_len * w_index + index_row_bytes * rows_read + pairs * w_logit) * batch


def dsa_indexer_intensity(*, index_head_dim, index_heads, index_row_bytes, pairs, q_len, rows_read, w_index, w_logit):
    return 2 * index_head_dim * index_heads * pairs / (4 * index_heads * q_len + index_head_dim * index_heads * q_len * w_index + index_row_bytes * rows_read + pairs * w_logit)


def dsa_indexer_tensor(*, batch, index_head_dim, index_heads, pairs, peak):
    return 2 * batch * index_head_dim * index_heads * pairs / peak


def dsa_indexer_vector(*, batch, index_heads, pairs, vector_peak):
    return 2 * batch * index_heads * pairs / vector_peak


def dsa_indexer_memory(*, bandwidth, batch, index_head_dim, index_heads, index_row_bytes, pairs, q_len, rows_read, w_index, w_logit):
    return (4 * index_heads * q_len + index_head_dim * index_heads * q_len * w_index + index_row_bytes * rows_read + pairs * w_logit) * batch / bandwidth


def dsa_indexer_default_index_row_bytes(*, index_head_dim):
    return index_head_dim + 4


def dsa_indexer_default_w_index():
    return 1


def dsa_indexer_default_w_logit():
    return 4


def dsa_topk_flops():
    return 0


def dsa_topk_vector_flops():
    return 0


def dsa_topk_exps():
    return 0


def dsa_topk_bytes(*, batch, pairs, q_len, topk, w_logit):
    return (4 * q_len * topk + pairs * w_logit) * batch


def dsa_topk_intensity():
    return 0


def dsa_topk_memory(*, bandwidth, batch, pairs, q_len, topk, w_logit):
    return (4 * q_len * topk + pairs * w_logit) * batch / bandwidth


def dsa_topk_default_w_logit():
    return 4


def dsa_mqa_flops(*, batch, kernel_heads, latent, pairs, rope):
    return 2 * (2 * latent + rope) * batch * kernel_heads * pairs


def dsa_mqa_vector_flops():
    return 0


def dsa_mqa_exps(*, batch, kernel_heads, pairs):
    return batch * kernel_heads * pairs


def dsa_mqa_bytes(*, batch, heads, kv_row_bytes, latent, q_len, rope, rows_read, w_act):
    return (2 * heads * latent * q_len * w_act + heads * q_len * rope * w_act + kv_row_bytes * rows_read) * batch


def dsa_mqa_intensity(*, heads, kernel_heads, kv_row_bytes, latent, pairs, q_len, rope, rows_read, w_act):
    return 2 * (2 * latent + rope) * kernel_heads * pairs / (2 * heads * latent * q_len * w_act + heads * q_len * rope * w_act + kv_row_bytes * rows_read)


def dsa_mqa_tensor(*, batch, kernel_heads, latent, pairs, peak, rope):
    return 2 * (2 * latent + rope) * batch * kernel_heads * pairs / peak


def dsa_mqa_exp(*, batch, exp_rate, kernel_heads, pairs):
    return batch * kernel_heads * pairs / exp_rate


def dsa_mqa_memory(*, bandwidth, batch, heads, kv_row_bytes, latent, q_len, rope, rows_read, w_act):
    return (2 * heads * latent * q_len * w_act + heads * q_len * rope * w_act + kv_row_bytes * rows_read) * batch / bandwidth


def dsa_mqa_default_kv_row_bytes(*, latent, rope, w_kv):
    return (latent + rope) * w_kv


def dsa_mqa_default_pairs(*, context, q_len, topk):
    t0_ = min(max(0, topk - context), q_len)
    return context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * topk


def dsa_mqa_default_rows_read(*, context, q_len, topk):
    t0_ = min(max(0, topk - context), q_len)
    return context * t0_ + t0_ * (t0_ + 1) / 2 + (q_len - t0_) * topk


def dsa_mha_flops(*, batch, heads, nope, pairs, rope, value):
    return 2 * batch * heads * (nope + rope + value) * pairs


def dsa_mha_vector_flops():
    return 0


def dsa_mha_exps(*, batch, heads, pairs):
    return batch * heads * pairs


def dsa_mha_bytes(*, batch, expanded_row_bytes, heads, nope, q_len, rope, rows_read, value, w_act):
    return batch * (expanded_row_bytes * rows_read + heads * nope * q_len * w_act + heads * q_len * rope * w_act + heads * q_len * value * w_act)


def dsa_mha_intensity(*, expanded_row_bytes, heads, nope, pairs, q_len, rope, rows_read, value, w_act):
    return 2 * heads * (nope + rope + value) * pairs / (expanded_row_bytes * rows_read + heads * nope * q_len * w_act + heads * q_len * rope * w_act + heads * q_len * value * w_act)


def dsa_mha_tensor(*, batch, heads, nope, pairs, peak, rope, value):
    return 2 * batch * heads * (nope + rope + value) * pairs / peak


def dsa_mha_exp(*, batch, exp_rate, heads, pairs):
    return batch * heads * pairs / exp_rate


def dsa_mha_memory(*, bandwidth, batch, expanded_row_bytes, heads, nope, q_len, rope, rows_read, value, w_act):
    return batch * (expanded_row_bytes * rows_read + heads * nope * q_len * w_act + heads * q_len * rope * w_act + heads * q_len * value * w_act) / bandwidth


def dsa_mha_default_expanded_row_bytes(*, heads, nope, rope, value, w_expanded):
    return (heads * (nope + value) + rope) * w_expanded


def dsa_mha_default_pairs(*, context, q_len):
    return context * q_len + q_len * (q_len + 1) / 2


def dsa_mha_default_rows_read(*, context, q_len):
    return context + q_len


def linear_flops(*, ffn, hidden, tokens):
    return 2 * ffn * hidden * tokens


def linear_vector_flops():
    return 0


def linear_exps():
    return 0


def linear_bytes(*, ffn, hidden, tokens, w_act, w_weight):
    return ffn * hidden * w_weight + ffn * tokens * w_act + hidden * tokens * w_act


def linear_intensity(*, ffn, hidden, tokens, w_act, w_weight):
    return 2 * ffn * hidden * tokens / (ffn * hidden * w_weight + ffn * tokens * w_act + hidden * tokens * w_act)


def linear_tensor(*, ffn, hidden, peak, tokens):
    return 2 * ffn * hidden * tokens / peak


def linear_memory(*, bandwidth, ffn, hidden, tokens, w_act, w_weight):
    return (ffn * hidden * w_weight + ffn * tokens * w_act + hidden * tokens * w_act) / bandwidth


def gated_linear_flops(*, ffn, hidden, tokens):
    return 4 * ffn * hidden * tokens


def gated_linear_vector_flops(*, ffn, tokens):
    return 2 * ffn * tokens


def gated_linear_exps(*, ffn, tokens):
    return ffn * tokens


def gated_linear_bytes(*, ffn, hidden, tokens, w_act, w_weight):
    return 2 * ffn * hidden * w_weight + ffn * tokens * w_act + hidden * tokens * w_act


def gated_linear_intensity(*, ffn, hidden, tokens, w_act, w_weight):
    return 4 * ffn * hidden * tokens / (2 * ffn * hidden * w_weight + ffn * tokens * w_act + hidden * tokens * w_act)


def gated_linear_tensor(*, ffn, hidden, peak, tokens):
    return 4 * ffn * hidden * tokens / peak


def gated_linear_vector(*, ffn, tokens, vector_peak):
    return 2 * ffn * tokens / vector_peak


def gated_linear_exp(*, exp_rate, ffn, tokens):
    return ffn * tokens / exp_rate


def gated_linear_memory(*, bandwidth, ffn, hidden, tokens, w_act, w_weight):
    return (2 * ffn * hidden * w_weight + ffn * tokens * w_act + hidden * tokens * w_act) / bandwidth


def moe_gated_flops(*, ffn, hidden, routed_tokens):
    return 4 * ffn * hidden * routed_tokens


def moe_gated_vector_flops(*, ffn, routed_tokens):
    return 2 * ffn * routed_tokens


def moe_gated_exps(*, ffn, routed_tokens):
    return ffn * routed_tokens


def moe_gated_bytes(*, distinct_experts, ffn, hidden, routed_tokens, tokens, w_act, w_weight):
    return 2 * distinct_experts * ffn * hidden * w_weight + ffn * routed_tokens * w_act + hidden * tokens * w_act


def moe_gated_intensity(*, distinct_experts, ffn, hidden, routed_tokens, tokens, w_act, w_weight):
    return 4 * ffn * hidden * routed_tokens / (2 * distinct_experts * ffn * hidden * w_weight + ffn * routed_tokens * w_act + hidden * tokens * w_act)


def moe_gated_tensor(*, ffn, hidden, peak, routed_tokens):
    return 4 * ffn * hidden * routed_tokens / peak


def moe_gated_vector(*, ffn, routed_tokens, vector_peak):
    return 2 * ffn * routed_tokens / vector_peak


def moe_gated_exp(*, exp_rate, ffn, routed_tokens):
    return ffn * routed_tokens / exp_rate


def moe_gated_memory(*, bandwidth, distinct_experts, ffn, hidden, routed_tokens, tokens, w_act, w_weight):
    return (2 * distinct_experts * ffn * hidden * w_weight + ffn * routed_tokens * w_act + hidden * tokens * w_act) / bandwidth


def moe_up_flops(*, ffn, hidden, routed_tokens):
    return 2 * ffn * hidden * routed_tokens


def moe_up_vector_flops(*, ffn, routed_tokens):
    return 2 * ffn * routed_tokens


def moe_up_exps():
    return 0


def moe_up_bytes(*, distinct_experts, ffn, hidden, routed_tokens, tokens, w_act, w_weight):
    return distinct_experts * ffn * hidden * w_weight + ffn * routed_tokens * w_act + hidden * tokens * w_act


def moe_up_intensity(*, distinct_experts, ffn, hidden, routed_tokens, tokens, w_act, w_weight):
    return 2 * ffn * hidden * routed_tokens / (distinct_experts * ffn * hidden * w_weight + ffn * routed_tokens * w_act + hidden * tokens * w_act)


def moe_up_tensor(*, ffn, hidden, peak, routed_tokens):
    return 2 * ffn * hidden * routed_tokens / peak


def moe_up_vector(*, ffn, routed_tokens, vector_peak):
    return 2 * ffn * routed_tokens / vector_peak


def moe_up_memory(*, bandwidth, distinct_experts, ffn, hidden, routed_tokens, tokens, w_act, w_weight):
    return (distinct_experts * ffn * hidden * w_weight + ffn * routed_tokens * w_act + hidden * tokens * w_act) / bandwidth


def moe_down_flops(*, ffn, hidden, routed_tokens):
    return 2 * ffn * hidden * routed_tokens


def moe_down_vector_flops(*, hidden, routed_tokens):
    return hidden * routed_tokens


def moe_down_exps():
    return 0


def moe_down_bytes(*, distinct_experts, ffn, hidden, routed_tokens, tokens, w_act, w_weight):
    return distinct_experts * ffn * hidden * w_weight + ffn * routed_tokens * w_act + hidden * tokens * w_act


def moe_down_intensity(*, distinct_experts, ffn, hidden, routed_tokens, tokens, w_act, w_weight):
    return 2 * ffn * hidden * routed_tokens / (distinct_experts * ffn * hidden * w_weight + ffn * routed_tokens * w_act + hidden * tokens * w_act)


def moe_down_tensor(*, ffn, hidden, peak, routed_tokens):
    return 2 * ffn * hidden * routed_tokens / peak


def moe_down_vector(*, hidden, routed_tokens, vector_peak):
    return hidden * routed_tokens / vector_peak


def moe_down_memory(*, bandwidth, distinct_experts, ffn, hidden, routed_tokens, tokens, w_act, w_weight):
    return (distinct_experts * ffn * hidden * w_weight + ffn * routed_tokens * w_act + hidden * tokens * w_act) / bandwidth


def delta_step_flops(*, batch, q_len, state_heads, state_key, state_value):
    return 6 * batch * q_len * state_heads * state_key * state_value


def delta_step_vector_flops(*, batch, q_len, state_heads, state_key, state_value):
    return batch * q_len * state_heads * state_key * state_value


def delta_step_exps():
    return 0


def delta_step_bytes(*, batch, q_len, state_heads, state_key, state_value, w_act, w_state):
    return 2 * batch * (q_len * state_key * w_act + q_len * state_value * w_act + state_key * state_value * w_state) * state_heads


def delta_step_intensity(*, q_len, state_key, state_value, w_act, w_state):
    return 3 * q_len * state_key * state_value / (q_len * state_key * w_act + q_len * state_value * w_act + state_key * state_value * w_state)


def delta_step_tensor(*, batch, peak, q_len, state_heads, state_key, state_value):
    return 6 * batch * q_len * state_heads * state_key * state_value / peak


def delta_step_vector(*, batch, q_len, state_heads, state_key, state_value, vector_peak):
    return batch * q_len * state_heads * state_key * state_value / vector_peak


def delta_step_memory(*, bandwidth, batch, q_len, state_heads, state_key, state_value, w_act, w_state):
    return 2 * batch * (q_len * state_key * w_act + q_len * state_value * w_act + state_key * state_value * w_state) * state_heads / bandwidth


def delta_block_flops(*, batch, chunk, q_len, state_heads, state_key, state_value):
    return 2 * (2 * chunk * state_key + 2 * chunk * state_value + 3 * state_key * state_value + 6 * chunk**2) * batch * q_len * state_heads


def delta_block_vector_flops():
    return 0


def delta_block_exps():
    return 0


def delta_block_bytes(*, batch, q_len, state_heads, state_key, state_value, w_act, w_state):
    return 2 * batch * (q_len * state_key * w_act + q_len * state_value * w_act + state_key * state_value * w_state) * state_heads


def delta_block_intensity(*, chunk, q_len, state_key, state_value, w_act, w_state):
    return (2 * chunk * state_key + 2 * chunk * state_value + 3 * state_key * state_value + 6 * chunk**2) * q_len / (q_len * state_key * w_act + q_len * state_value * w_act + state_key * state_value * w_state)


def delta_block_tensor(*, batch, chunk, peak, q_len, state_heads, state_key, state_value):
    return 2 * (2 * chunk * state_key + 2 * chunk * state_value + 3 * state_key * state_value + 6 * chunk**2) * batch * q_len * state_heads / peak


def delta_block_memory(*, bandwidth, batch, q_len, state_heads, state_key, state_value, w_act, w_state):
    return 2 * batch * (q_len * state_key * w_act + q_len * state_value * w_act + state_key * state_value * w_state) * state_heads / bandwidth


def ssm_step_flops(*, batch, q_len, state_heads, state_key, state_value):
    return 4 * batch * q_len * state_heads * state_key * state_value


def ssm_step_vector_flops(*, batch, q_len, state_heads, state_key, state_value):
    return batch * q_len * state_heads * state_key * state_value


def ssm_step_exps():
    return 0


def ssm_step_bytes(*, batch, q_len, state_groups, state_heads, state_key, state_value, w_act, w_state):
    return 2 * batch * (q_len * state_groups * state_key * w_act + q_len * state_heads * state_value * w_act + state_heads * state_key * state_value * w_state)


def ssm_step_intensity(*, q_len, state_groups, state_heads, state_key, state_value, w_act, w_state):
    return 2 * q_len * state_heads * state_key * state_value / (q_len * state_groups * state_key * w_act + q_len * state_heads * state_value * w_act + state_heads * state_key * state_value * w_state)


def ssm_step_tensor(*, batch, peak, q_len, state_heads, state_key, state_value):
    return 4 * batch * q_len * state_heads * state_key * state_value / peak


def ssm_step_vector(*, batch, q_len, state_heads, state_key, state_value, vector_peak):
    return batch * q_len * state_heads * state_key * state_value / vector_peak


def ssm_step_memory(*, bandwidth, batch, q_len, state_groups, state_heads, state_key, state_value, w_act, w_state):
    return 2 * batch * (q_len * state_groups * state_key * w_act + q_len * state_heads * state_value * w_act + state_heads * state_key * state_value * w_state) / bandwidth


def ssm_block_flops(*, batch, chunk, q_len, state_groups, state_heads, state_key, state_value):
    return 2 * (2 * state_heads * state_key * state_value + chunk * state_groups * state_key + chunk * state_heads * state_value) * batch * q_len


def ssm_block_vector_flops():
    return 0


def ssm_block_exps():
    return 0


def ssm_block_bytes(*, batch, q_len, state_groups, state_heads, state_key, state_value, w_act, w_state):
    return 2 * batch * (q_len * state_groups * state_key * w_act + q_len * state_heads * state_value * w_act + state_heads * state_key * state_value * w_state)


def ssm_block_intensity(*, chunk, q_len, state_groups, state_heads, state_key, state_value, w_act, w_state):
    return (2 * state_heads * state_key * state_value + chunk * state_groups * state_key + chunk * state_heads * state_value) * q_len / (q_len * state_groups * state_key * w_act + q_len * state_heads * state_value * w_act + state_heads * state_key * state_value * w_state)


def ssm_block_tensor(*, batch, chunk, peak, q_len, state_groups, state_heads, state_key, state_value):
    return 2 * (2 * state_heads * state_key * state_value + chunk * state_groups * state_key + chunk * state_heads * state_value) * batch * q_len / peak


def ssm_block_memory(*, bandwidth, batch, q_len, state_groups, state_heads, state_key, state_value, w_act, w_state):
    return 2 * batch * (q_len * state_groups * state_key * w_act + q_len * state_heads * state_value * w_act + state_heads * state_key * state_value * w_state) / bandwidth


def short_conv_flops():
    return 0


def short_conv_vector_flops(*, batch, conv, conv_channels, q_len):
    return batch * conv * conv_channels * q_len


def short_conv_exps():
    return 0


def short_conv_bytes(*, batch, conv, conv_channels, q_len, w_act, w_weight):
    return (2 * batch * (conv - 1) * w_act + 2 * batch * q_len * w_act + conv * w_weight) * conv_channels


def short_conv_intensity():
    return 0


def short_conv_vector(*, batch, conv, conv_channels, q_len, vector_peak):
    return batch * conv * conv_channels * q_len / vector_peak


def short_conv_memory(*, bandwidth, batch, conv, conv_channels, q_len, w_act, w_weight):
    return (2 * batch * (conv - 1) * w_act + 2 * batch * q_len * w_act + conv * w_weight) * conv_channels / bandwidth


def gla_flops(*, batch, heads, latent, pairs, rope):
    return 2 * (2 * latent + rope) * batch * heads * pairs


def gla_vector_flops():
    return 0


def gla_exps(*, batch, heads, pairs):
    return batch * heads * pairs


def gla_bytes(*, batch, heads, kv_row_bytes, latent, q_len, rope, rows_read, w_act):
    return (2 * heads * latent * q_len * w_act + heads * q_len * rope * w_act + kv_row_bytes * rows_read) * batch


def gla_intensity(*, heads, kv_row_bytes, latent, pairs, q_len, rope, rows_read, w_act):
    return 2 * (2 * latent + rope) * heads * pairs / (2 * heads * latent * q_len * w_act + heads * q_len * rope * w_act + kv_row_bytes * rows_read)


def gla_tensor(*, batch, heads, latent, pairs, peak, rope):
    return 2 * (2 * latent + rope) * batch * heads * pairs / peak


def gla_exp(*, batch, exp_rate, heads, pairs):
    return batch * heads * pairs / exp_rate


def gla_memory(*, bandwidth, batch, heads, kv_row_bytes, latent, q_len, rope, rows_read, w_act):
    return (2 * heads * latent * q_len * w_act + heads * q_len * rope * w_act + kv_row_bytes * rows_read) * batch / bandwidth


def gla_default_kv_row_bytes(*, kv_heads, latent, rope, w_kv):
    return (kv_heads * latent + rope) * w_kv


def gta_flops(*, batch, head_dim, heads, pairs):
    return 4 * batch * head_dim * heads * pairs


def gta_vector_flops():
    return 0


def gta_exps(*, batch, heads, pairs):
    return batch * heads * pairs


def gta_bytes(*, batch, head_dim, heads, kv_row_bytes, q_len, rows_read, w_act):
    return (2 * head_dim * heads * q_len * w_act + kv_row_bytes * rows_read) * batch


def gta_intensity(*, head_dim, heads, kv_row_bytes, pairs, q_len, rows_read, w_act):
    return 4 * head_dim * heads * pairs / (2 * head_dim * heads * q_len * w_act + kv_row_bytes * rows_read)


def gta_tensor(*, batch, head_dim, heads, pairs, peak):
    return 4 * batch * head_dim * heads * pairs / peak


def gta_exp(*, batch, exp_rate, heads, pairs):
    return batch * heads * pairs / exp_rate


def gta_memory(*, bandwidth, batch, head_dim, heads, kv_row_bytes, q_len, rows_read, w_act):
    return (2 * head_dim * heads * q_len * w_act + kv_row_bytes * rows_read) * batch / bandwidth


def gta_default_kv_row_bytes(*, head_dim, kv_heads, rope, w_kv):
    return (head_dim * kv_heads + rope) * w_kv


def gqla_grouped_flops(*, batch, heads, nope, pairs, rope, value):
    return 2 * batch * heads * (nope + rope + value) * pairs


def gqla_grouped_vector_flops():
    return 0


def gqla_grouped_exps(*, batch, heads, pairs):
    return batch * heads * pairs


def gqla_grouped_bytes(*, batch, heads, kv_row_bytes, nope, q_len, rope, rows_read, value, w_act):
    return batch * (heads * nope * q_len * w_act + heads * q_len * rope * w_act + heads * q_len * value * w_act + kv_row_bytes * rows_read)


def gqla_grouped_intensity(*, heads, kv_row_bytes, nope, pairs, q_len, rope, rows_read, value, w_act):
    return 2 * heads * (nope + rope + value) * pairs / (heads * nope * q_len * w_act + heads * q_len * rope * w_act + heads * q_len * value * w_act + kv_row_bytes * rows_read)


def gqla_grouped_tensor(*, batch, heads, nope, pairs, peak, rope, value):
    return 2 * batch * heads * (nope + rope + value) * pairs / peak


def gqla_grouped_exp(*, batch, exp_rate, heads, pairs):
    return batch * heads * pairs / exp_rate


def gqla_grouped_memory(*, bandwidth, batch, heads, kv_row_bytes, nope, q_len, rope, rows_read, value, w_act):
    return batch * (heads * nope * q_len * w_act + heads * q_len * rope * w_act + heads * q_len * value * w_act + kv_row_bytes * rows_read) / bandwidth


def gqla_grouped_default_kv_row_bytes(*, kv_heads, nope, rope, value, w_kv):
    return (kv_heads * (nope + value) + rope) * w_kv


def cross_attention_flops(*, batch, head_dim, heads, pairs):
    return 4 * batch * head_dim * heads * pairs


def cross_attention_vector_flops():
    return 0


def cross_attention_exps(*, batch, heads, pairs):
    return batch * heads * pairs


def cross_attention_bytes(*, batch, head_dim, heads, kv_row_bytes, q_len, rows_read, w_act):
    return (2 * head_dim * heads * q_len * w_act + kv_row_bytes * rows_read) * batch


def cross_attention_intensity(*, head_dim, heads, kv_row_bytes, pairs, q_len, rows_read, w_act):
    return 4 * head_dim * heads * pairs / (2 * head_dim * heads * q_len * w_act + kv_row_bytes * rows_read)


def cross_attention_tensor(*, batch, head_dim, heads, pairs, peak):
    return 4 * batch * head_dim * heads * pairs / peak


def cross_attention_exp(*, batch, exp_rate, heads, pairs):
    return batch * heads * pairs / exp_rate


def cross_attention_memory(*, bandwidth, batch, head_dim, heads, kv_row_bytes, q_len, rows_read, w_act):
    return (2 * head_dim * heads * q_len * w_act + kv_row_bytes * rows_read) * batch / bandwidth


def cross_attention_default_kv_row_bytes(*, head_dim, kv_heads, w_kv):
    return 2 * head_dim * kv_heads * w_kv


def cross_attention_default_pairs(*, image_tokens, q_len):
    return image_tokens * q_len


def cross_attention_default_rows_read(*, image_tokens):
    return image_tokens


def norm_flops():
    return 0


def norm_vector_flops(*, hidden, tokens):
    return 3 * hidden * tokens


def norm_exps():
    return 0


def norm_bytes(*, hidden, tokens, w_act, w_weight):
    return (2 * tokens * w_act + w_weight) * hidden


def norm_intensity():
    return 0


def norm_vector(*, hidden, tokens, vector_peak):
    return 3 * hidden * tokens / vector_peak


def norm_memory(*, bandwidth, hidden, tokens, w_act, w_weight):
    return (2 * tokens * w_act + w_weight) * hidden / bandwidth


def embedding_flops():
    return 0


def embedding_vector_flops():
    return 0


def embedding_exps():
    return 0


def embedding_bytes(*, hidden, tokens, w_act, w_weight):
    return hidden * tokens * (w_act + w_weight)


def embedding_intensity():
    return 0


def embedding_memory(*, bandwidth, hidden, tokens, w_act, w_weight):
    return hidden * tokens * (w_act + w_weight) / bandwidth


def cache_append_flops():
    return 0


def cache_append_vector_flops():
    return 0


def cache_append_exps():
    return 0


def cache_append_bytes(*, batch, kv_row_bytes, q_len):
    return batch * kv_row_bytes * q_len


def cache_append_intensity():
    return 0


def cache_append_memory(*, bandwidth, batch, kv_row_bytes, q_len):
    return batch * kv_row_bytes * q_len / bandwidth


def all_reduce_flops():
    return 0


def all_reduce_vector_flops():
    return 0


def all_reduce_exps():
    return 0


def all_reduce_bytes():
    return 0


def all_reduce_link(*, hidden, link_bandwidth, ranks, tokens, w_act):
    return 2 * hidden * (ranks - 1) * tokens * w_act / link_bandwidth / ranks


def all_gather_flops():
    return 0


def all_gather_vector_flops():
    return 0


def all_gather_exps():
    return 0


def all_gather_bytes():
    return 0


def all_gather_link(*, hidden, link_bandwidth, ranks, tokens, w_act):
    return hidden * (ranks - 1) * tokens * w_act / link_bandwidth / ranks


def reduce_scatter_flops():
    return 0


def reduce_scatter_vector_flops():
    return 0


def reduce_scatter_exps():
    return 0


def reduce_scatter_bytes():
    return 0


def reduce_scatter_link(*, hidden, link_bandwidth, ranks, tokens, w_act):
    return hidden * (ranks - 1) * tokens * w_act / link_bandwidth / ranks


def moe_dispatch_flops():
    return 0


def moe_dispatch_vector_flops():
    return 0


def moe_dispatch_exps():
    return 0


def moe_dispatch_bytes():
    return 0


def moe_dispatch_link(*, destinations, hidden, link_bandwidth, tokens, w_dispatch):
    return destinations * hidden * tokens * w_dispatch / link_bandwidth


def moe_combine_flops():
    return 0


def moe_combine_vector_flops():
    return 0


def moe_combine_exps():
    return 0


def moe_combine_bytes():
    return 0


def moe_combine_link(*, destinations, hidden, link_bandwidth, tokens, w_act):
    return destinations * hidden * tokens * w_act / link_bandwidth


def send_flops():
    return 0


def send_vector_flops():
    return 0


def send_exps():
    return 0


def send_bytes():
    return 0


def send_link(*, hidden, link_bandwidth, tokens, w_act):
    return hidden * tokens * w_act / link_bandwidth


def kv_send_flops():
    return 0


def kv_send_vector_flops():
    return 0


def kv_send_exps():
    return 0


def kv_send_bytes():
    return 0


def kv_send_link(*, batch, kv_row_bytes, link_bandwidth, rows_read):
    return batch * kv_row_bytes * rows_read / link_bandwidth


QUANTITIES = {
    "attention": {"flops": attention_flops, "vector_flops": attention_vector_flops, "exps": attention_exps, "bytes": attention_bytes, "intensity": attention_intensity, "tensor": attention_tensor, "exp": attention_exp, "memory": attention_memory},
    "mla_mha": {"flops": mla_mha_flops, "vector_flops": mla_mha_vector_flops, "exps": mla_mha_exps, "bytes": mla_mha_bytes, "intensity": mla_mha_intensity, "tensor": mla_mha_tensor, "exp": mla_mha_exp, "memory": mla_mha_memory},
    "mla_mqa": {"flops": mla_mqa_flops, "vector_flops": mla_mqa_vector_flops, "exps": mla_mqa_exps, "bytes": mla_mqa_bytes, "intensity": mla_mqa_intensity, "tensor": mla_mqa_tensor, "exp": mla_mqa_exp, "memory": mla_mqa_memory},
    "mla_up_projection": {"flops": mla_up_projection_flops, "vector_flops": mla_up_projection_vector_flops, "exps": mla_up_projection_exps, "bytes": mla_up_projection_bytes, "intensity": mla_up_projection_intensity, "tensor": mla_up_projection_tensor, "memory": mla_up_projection_memory},
    "mla_absorption": {"flops": mla_absorption_flops, "vector_flops": mla_absorption_vector_flops, "exps": mla_absorption_exps, "bytes": mla_absorption_bytes, "intensity": mla_absorption_intensity, "tensor": mla_absorption_tensor, "memory": mla_absorption_memory},
    "mla_unabsorption": {"flops": mla_unabsorption_flops, "vector_flops": mla_unabsorption_vector_flops, "exps": mla_unabsorption_exps, "bytes": mla_unabsorption_bytes, "intensity": mla_unabsorption_intensity, "tensor": mla_unabsorption_tensor, "memory": mla_unabsorption_memory},
    "dsa_indexer": {"flops": dsa_indexer_flops, "vector_flops": dsa_indexer_vector_flops, "exps": dsa_indexer_exps, "bytes": dsa_indexer_bytes, "intensity": dsa_indexer_intensity, "tensor": dsa_indexer_tensor, "vector": dsa_indexer_vector, "memory": dsa_indexer_memory},
    "dsa_topk": {"flops": dsa_topk_flops, "vector_flops": dsa_topk_vector_flops, "exps": dsa_topk_exps, "bytes": dsa_topk_bytes, "intensity": dsa_topk_intensity, "memory": dsa_topk_memory},
    "dsa_mqa": {"flops": dsa_mqa_flops, "vector_flops": dsa_mqa_vector_flops, "exps": dsa_mqa_exps, "bytes": dsa_mqa_bytes, "intensity": dsa_mqa_intensity, "tensor": dsa_mqa_tensor, "exp": dsa_mqa_exp, "memory": dsa_mqa_memory},
    "dsa_mha": {"flops": dsa_mha_flops, "vector_flops": dsa_mha_vector_flops, "exps": dsa_mha_exps, "bytes": dsa_mha_bytes, "intensity": dsa_mha_intensity, "tensor": dsa_mha_tensor, "exp": dsa_mha_exp, "memory": dsa_mha_memory},
    "linear": {"flops": linear_flops, "vector_flops": linear_vector_flops, "exps": linear_exps, "bytes": linear_bytes, "intensity": linear_intensity, "tensor": linear_tensor, "memory": linear_memory},
    "gated_linear": {"flops": gated_linear_flops, "vector_flops": gated_linear_vector_flops, "exps": gated_linear_exps, "bytes": gated_linear_bytes, "intensity": gated_linear_intensity, "tensor": gated_linear_tensor, "vector": gated_linear_vector, "exp": gated_linear_exp, "memory": gated_linear_memory},
    "moe_gated": {"flops": moe_gated_flops, "vector_flops": moe_gated_vector_flops, "exps": moe_gated_exps, "bytes": moe_gated_bytes, "intensity": moe_gated_intensity, "tensor": moe_gated_tensor, "vector": moe_gated_vector, "exp": moe_gated_exp, "memory": moe_gated_memory},
    "moe_up": {"flops": moe_up_flops, "vector_flops": moe_up_vector_flops, "exps": moe_up_exps, "bytes": moe_up_bytes, "intensity": moe_up_intensity, "tensor": moe_up_tensor, "vector": moe_up_vector, "memory": moe_up_memory},
    "moe_down": {"flops": moe_down_flops, "vector_flops": moe_down_vector_flops, "exps": moe_down_exps, "bytes": moe_down_bytes, "intensity": moe_down_intensity, "tensor": moe_down_tensor, "vector": moe_down_vector, "memory": moe_down_memory},
    "delta_step": {"flops": delta_step_flops, "vector_flops": delta_step_vector_flops, "exps": delta_step_exps, "bytes": delta_step_bytes, "intensity": delta_step_intensity, "tensor": delta_step_tensor, "vector": delta_step_vector, "memory": delta_step_memory},
    "delta_block": {"flops": delta_block_flops, "vector_flops": delta_block_vector_flops, "exps": delta_block_exps, "bytes": delta_block_bytes, "intensity": delta_block_intensity, "tensor": delta_block_tensor, "memory": delta_block_memory},
    "ssm_step": {"flops": ssm_step_flops, "vector_flops": ssm_step_vector_flops, "exps": ssm_step_exps, "bytes": ssm_step_bytes, "intensity": ssm_step_intensity, "tensor": ssm_step_tensor, "vector": ssm_step_vector, "memory": ssm_step_memory},
    "ssm_block": {"flops": ssm_block_flops, "vector_flops": ssm_block_vector_flops, "exps": ssm_block_exps, "bytes": ssm_block_bytes, "intensity": ssm_block_intensity, "tensor": ssm_block_tensor, "memory": ssm_block_memory},
    "short_conv": {"flops": short_conv_flops, "vector_flops": short_conv_vector_flops, "exps": short_conv_exps, "bytes": short_conv_bytes, "intensity": short_conv_intensity, "vector": short_conv_vector, "memory": short_conv_memory},
    "gla": {"flops": gla_flops, "vector_flops": gla_vector_flops, "exps": gla_exps, "bytes": gla_bytes, "intensity": gla_intensity, "tensor": gla_tensor, "exp": gla_exp, "memory": gla_memory},
    "gta": {"flops": gta_flops, "vector_flops": gta_vector_flops, "exps": gta_exps, "bytes": gta_bytes, "intensity": gta_intensity, "tensor": gta_tensor, "exp": gta_exp, "memory": gta_memory},
    "gqla_grouped": {"flops": gqla_grouped_flops, "vector_flops": gqla_grouped_vector_flops, "exps": gqla_grouped_exps, "bytes": gqla_grouped_bytes, "intensity": gqla_grouped_intensity, "tensor": gqla_grouped_tensor, "exp": gqla_grouped_exp, "memory": gqla_grouped_memory},
    "cross_attention": {"flops": cross_attention_flops, "vector_flops": cross_attention_vector_flops, "exps": cross_attention_exps, "bytes": cross_attention_bytes, "intensity": cross_attention_intensity, "tensor": cross_attention_tensor, "exp": cross_attention_exp, "memory": cross_attention_memory},
    "norm": {"flops": norm_flops, "vector_flops": norm_vector_flops, "exps": norm_exps, "bytes": norm_bytes, "intensity": norm_intensity, "vector": norm_vector, "memory": norm_memory},
    "embedding": {"flops": embedding_flops, "vector_flops": embedding_vector_flops, "exps": embedding_exps, "bytes": embedding_bytes, "intensity": embedding_intensity, "memory": embedding_memory},
    "cache_append": {"flops": cache_append_flops, "vector_flops": cache_append_vector_flops, "exps": cache_append_exps, "bytes": cache_append_bytes, "intensity": cache_append_intensity, "memory": cache_append_memory},
    "all_reduce": {"flops": all_reduce_flops, "vector_flops": all_reduce_vector_flops, "exps": all_reduce_exps, "bytes": all_reduce_bytes, "link": all_reduce_link},
    "all_gather": {"flops": all_gather_flops, "vector_flops": all_gather_vector_flops, "exps": all_gather_exps, "bytes": all_gather_bytes, "link": all_gather_link},
    "reduce_scatter": {"flops": reduce_scatter_flops, "vector_flops": reduce_scatter_vector_flops, "exps": reduce_scatter_exps, "bytes": reduce_scatter_bytes, "link": reduce_scatter_link},
    "moe_dispatch": {"flops": moe_dispatch_flops, "vector_flops": moe_dispatch_vector_flops, "exps": moe_dispatch_exps, "bytes": moe_dispatch_bytes, "link": moe_dispatch_link},
    "moe_combine": {"flops": moe_combine_flops, "vector_flops": moe_combine_vector_flops, "exps": moe_combine_exps, "bytes": moe_combine_bytes, "link": moe_combine_link},
    "send": {"flops": send_flops, "vector_flops": send_vector_flops, "exps": send_exps, "bytes": send_bytes, "link": send_link},
    "kv_send": {"flops": kv_send_flops, "vector_flops": kv_send_vector_flops, "exps": kv_send_exps, "bytes": kv_send_bytes, "link": kv_send_link},
}

DEFAULTS = {
    "attention": {"kv_row_bytes": attention_default_kv_row_bytes},
    "mla_mha": {"expanded_row_bytes": mla_mha_default_expanded_row_bytes},
    "mla_mqa": {"kv_row_bytes": mla_mqa_default_kv_row_bytes},
    "mla_up_projection": {"kv_row_bytes": mla_up_projection_default_kv_row_bytes, "expanded_row_bytes": mla_up_projection_default_expanded_row_bytes},
    "mla_absorption": {},
    "mla_unabsorption": {},
    "dsa_indexer": {"index_row_bytes": dsa_indexer_default_index_row_bytes, "w_index": dsa_indexer_default_w_index, "w_logit": dsa_indexer_default_w_logit},
    "dsa_topk": {"w_logit": dsa_topk_default_w_logit},
    "dsa_mqa": {"kv_row_bytes": dsa_mqa_default_kv_row_bytes, "pairs": dsa_mqa_default_pairs, "rows_read": dsa_mqa_default_rows_read},
    "dsa_mha": {"expanded_row_bytes": dsa_mha_default_expanded_row_bytes, "pairs": dsa_mha_default_pairs, "rows_read": dsa_mha_default_rows_read},
    "linear": {},
    "gated_linear": {},
    "moe_gated": {},
    "moe_up": {},
    "moe_down": {},
    "delta_step": {},
    "delta_block": {},
    "ssm_step": {},
    "ssm_block": {},
    "short_conv": {},
    "gla": {"kv_row_bytes": gla_default_kv_row_bytes},
    "gta": {"kv_row_bytes": gta_default_kv_row_bytes},
    "gqla_grouped": {"kv_row_bytes": gqla_grouped_default_kv_row_bytes},
    "cross_attention": {"kv_row_bytes": cross_attention_default_kv_row_bytes, "pairs": cross_attention_default_pairs, "rows_read": cross_attention_default_rows_read},
    "norm": {},
    "embedding": {},
    "cache_append": {},
    "all_reduce": {},
    "all_gather": {},
    "reduce_scatter": {},
    "moe_dispatch": {},
    "moe_combine": {},
    "send": {},
    "kv_send": {},
}

LEGS = {
    "tensor": "peak",
    "vector": "vector_peak",
    "exp": "exp_rate",
    "memory": "bandwidth",
    "link": "link_bandwidth",
}
