#!/bin/bash
# Measures what the modelled time is compared with: times of every case, and a
# profiler's counts.   bench/simt/calibrate.sh OUT_DIR [folder with calibrate.cubin, calibrate_gpu]
out=${1:-.} from=$2
mkdir -p "$out"
if [ -z "$from" ]; then
    from=$(mktemp -d)
    nvcc -std=c++17 -O3 -arch=sm_90 -cubin -o "$from/calibrate.cubin" bench/simt/calibrate_kernels.cu
    nvcc -std=c++17 -o "$from/calibrate_gpu" bench/simt/calibrate_gpu.cu -lcuda
fi
timeout 90 "$from/calibrate_gpu" "$from/calibrate.cubin" > "$out/times.jsonl"
G=l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,l1tex__t_requests_pipe_lsu_mem_global_op_st.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum
S=l1tex__data_pipe_lsu_wavefronts_mem_shared.sum,l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum
I=smsp__inst_executed.sum,smsp__sass_thread_inst_executed_op_ffma_pred_on.sum,smsp__sass_thread_inst_executed_op_fadd_pred_on.sum,smsp__sass_thread_inst_executed_op_fmul_pred_on.sum
D=dram__bytes_read.sum,dram__bytes_write.sum,lts__t_sectors_op_read.sum,lts__t_sectors_op_write.sum,gpu__time_duration.sum
P=sm__inst_executed_pipe_alu.sum,sm__inst_executed_pipe_fma.sum,sm__inst_executed_pipe_xu.sum,sm__inst_executed_pipe_lsu.sum,sm__inst_executed_pipe_fp64.sum
X=smsp__sass_inst_executed_op_shared_ld.sum,smsp__sass_inst_executed_op_shared_st.sum,smsp__sass_inst_executed_op_global_ld.sum,smsp__sass_inst_executed_op_global_st.sum
L=l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum,lts__t_sectors_op_read_lookup_hit.sum
i=0
for set in "$G,$S" "$I,$D" "$P" "$X" "$L"; do
    i=$((i + 1))
    timeout 60 ncu --csv --page raw --metrics "$set" --target-processes all "$from/calibrate_gpu" "$from/calibrate.cubin" once > "$out/ncu$i.csv" 2> "$out/ncu$i.err"
done
