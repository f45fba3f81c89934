# SPDX-License-Identifier: Apache-2.0
"""ATen operators by what they do. An operator in none of these sets is taken for elementwise where its shapes allow.

To teach the oracle an operator: add its name here, and its sizes in graph.py where it multiplies or adds up.
"""

# the result is the argument
SAME = frozenset("""
    detach alias lift_fresh lift
    """.split())

# other strides over the same memory
VIEWS = frozenset("""
    view _unsafe_view reshape t transpose permute expand unsqueeze squeeze slice select as_strided
    split split_with_sizes chunk unbind narrow diagonal unfold movedim view_as numpy_T
    _reshape_alias flatten unflatten real imag _conj swapaxes
    """.split())

# sums of products over two operands
PRODUCTS = frozenset("""
    mm bmm addmm baddbmm addbmm mv addmv dot vdot convolution _convolution linear matmul
    cudnn_convolution mkldnn_convolution einsum addr ger _addmm_activation
    """.split())

CONVOLUTIONS = frozenset("convolution _convolution cudnn_convolution mkldnn_convolution".split())

# fused attention
ATTENTION = frozenset("""
    _scaled_dot_product_attention _scaled_dot_product_flash_attention
    _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_cudnn_attention _scaled_dot_product_attention_math
    scaled_dot_product_attention _scaled_dot_product_fused_attention_overrideable
    """.split())

# its gradients
ATTENTION_BACKWARD = frozenset("""
    _scaled_dot_product_flash_attention_backward _scaled_dot_product_efficient_attention_backward
    _scaled_dot_product_flash_attention_for_cpu_backward _scaled_dot_product_cudnn_attention_backward
    """.split())

# many elements make one, or each of a group
REDUCTIONS = frozenset("""
    sum mean amax amin max min argmax argmin prod var std var_mean std_mean norm linalg_vector_norm
    logsumexp _softmax _safe_softmax _log_softmax softmax log_softmax native_layer_norm native_group_norm
    native_batch_norm _native_batch_norm_legit _batch_norm_with_update _batch_norm_no_update
    cudnn_batch_norm _fused_rms_norm rms_norm aminmax all any nansum median mode cumsum cumprod
    cummax cummin logcumsumexp count_nonzero trace mse_loss l1_loss smooth_l1_loss huber_loss
    nll_loss_forward nll_loss2d_forward binary_cross_entropy kl_div soft_margin_loss
    multi_margin_loss max_pool1d max_pool2d max_pool2d_with_indices max_pool3d_with_indices
    avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d
    cdist _cdist_forward _euclidean_dist cosine_similarity binary_cross_entropy_with_logits
    mkldnn_max_pool2d quantized_max_pool1d
    """.split())

# another result each time
RANDOM = frozenset("""
    bernoulli bernoulli_ rand randn rand_like randn_like randint randint_like randperm normal
    normal_ uniform_ multinomial native_dropout _fused_dropout exponential_ geometric_ cauchy_
    log_normal_ poisson binomial rrelu_with_noise random_
    """.split())

# neither elementwise nor a reduction nor a product
OTHER = frozenset("""
    sort topk kthvalue embedding index index_select gather scatter scatter_add scatter_reduce
    index_add index_put index_put_ nonzero unique _unique2 masked_select fft_fft _fft_c2c _fft_r2c
    _fft_c2r roll flip rot90 cat stack constant_pad_nd reflection_pad2d replication_pad2d
    upsample_nearest2d upsample_bilinear2d grid_sampler_2d pixel_shuffle im2col col2im linalg_inv_ex
    linalg_qr _linalg_svd cholesky histc bincount searchsorted bucketize argsort repeat tile
    _thnn_fused_lstm_cell _thnn_fused_gru_cell repeat_interleave masked_scatter mkldnn_rnn_layer
    _cudnn_rnn lstm gru recurrent
    """.split())

# tensors side by side
JOINS = frozenset("cat stack".split())

# read a part of their first operand
GATHERS = frozenset("""
    embedding index index_select gather
    """.split())

# tensors out of nothing
FACTORIES = frozenset("""
    empty zeros ones full arange eye scalar_tensor empty_strided linspace new_zeros new_empty
    tril_indices triu_indices zeros_like ones_like empty_like full_like new_full new_ones
    hann_window hamming_window blackman_window bartlett_window
    """.split())

# of numbers that the forward itself has, they are a constant: their shapes follow from values, or a kernel has no formula
KNOWN_NUMBERS = frozenset("""
    nonzero masked_select repeat_interleave _unique2 unique_dim unique_consecutive unique_dim_consecutive
    kaiser_window logspace fft_fftfreq fft_rfftfreq histogram
    """.split())

# linear, with fewer results than terms: algebra may reorder what comes before
ADDERS = frozenset("""
    sum mean mm bmm addmm baddbmm mv dot avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d
    convolution
    """.split())

# linear in their first operand
LINEAR_KEEPERS = VIEWS | frozenset("clone _to_copy contiguous add sub neg div mul copy_".split())
