// attention_backward_tensors.cuh - what the gradients of a head are computed from.
    Tensor mQ = make_tensor(make_gmem_ptr(Q + ($q_at)), make_shape(queries, Int<HEAD>{}), make_stride($q_row, $q_col)); // (queries,HEAD)
    Tensor mK = make_tensor(make_gmem_ptr(K + ($k_at)), make_shape(keys, Int<HEAD>{}), make_stride($k_row, $k_col)); // (keys,HEAD)
    Tensor mV = make_tensor(make_gmem_ptr(V + ($v_at)), make_shape(keys, Int<HEAD_V>{}), make_stride($v_row, $v_col)); // (keys,HEAD_V)
    Tensor mdO = make_tensor(make_gmem_ptr(dO + ($do_at)), make_shape(queries, Int<HEAD_V>{}), make_stride($do_row, $do_col)); // (queries,HEAD_V)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x + ($x_at)), make_shape(queries, keys), make_stride($m, $n)); // (queries,keys)
//! end
