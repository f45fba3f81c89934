// collective.cu - products built by CUTLASS' CollectiveBuilder for Blackwell, against a reference on the host.
//
//     nvcc -std=c++17 -arch=compute_100a -DKIND=KIND_F16 -I CUTLASS/include ... collective.cu
//
// KIND_F16 is dense; KIND_MXF8 and KIND_NVF4 have a scale for each 32 or 16 factors. For sm_100a (tcgen05) or, with
// -DGEFORCE, for sm_120a (mma.sync; scaled kinds only). TWO_BLOCKS: tiles of two blocks (cta_group::2). The last tiles of M, N and K are
// not full. With BUG, K is longer than the matrices.
#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

using namespace cute;

#define KIND_F16  0
#define KIND_MXF8 1
#define KIND_NVF4 2

#if KIND == KIND_F16
using Element = cutlass::half_t;
using Data = cutlass::half_t;
using OpClass = cutlass::arch::OpClassTensorOp;
constexpr int TILE_K = 64, ALIGN = 8;
#elif KIND == KIND_MXF8
using Element = cutlass::mx_float8_t<cutlass::float_e4m3_t>;
using Data = Element::DataType;
using OpClass = cutlass::arch::OpClassBlockScaledTensorOp;
constexpr int TILE_K = 128, ALIGN = 16;
#else
using Element = cutlass::nv_float4_t<cutlass::float_e2m1_t>;
using Data = Element::DataType;
using OpClass = cutlass::arch::OpClassBlockScaledTensorOp;
constexpr int TILE_K =
#ifdef GEFORCE
    128,
#else
    256,
#endif
              ALIGN = 32;
#endif
#ifdef GEFORCE
using ForArch = cutlass::arch::Sm120;
#else
using ForArch = cutlass::arch::Sm100;
#endif
#ifdef TWO_BLOCKS
using BlockTile = Shape<_256, _128, Int<TILE_K>>;
using BlockCluster = Shape<_2, _1, _1>;
#else
using BlockTile = Shape<_128, _128, Int<TILE_K>>;
using BlockCluster = Shape<_1, _1, _1>;
#endif

using Ending = typename cutlass::epilogue::collective::CollectiveBuilder<
    ForArch, OpClass, BlockTile, BlockCluster, cutlass::epilogue::collective::EpilogueTileAuto, float, float, float,
    cutlass::layout::RowMajor, 4, float, cutlass::layout::RowMajor, 4,
    cutlass::epilogue::collective::EpilogueScheduleAuto>::CollectiveOp;
using Main = typename cutlass::gemm::collective::CollectiveBuilder<
    ForArch, OpClass, Element, cutlass::layout::RowMajor, ALIGN, Element, cutlass::layout::ColumnMajor, ALIGN, float,
    BlockTile, BlockCluster,
    cutlass::gemm::collective::StageCountAutoCarveout<int(sizeof(typename Ending::SharedStorage))>,
    cutlass::gemm::collective::KernelScheduleAuto>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Main, Ending, void>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

static std::mt19937 random_bits(1);

// Matrix of factors along K: bytes for the GPU, values for the reference.
struct Factors {
    std::vector<uint8_t> bytes;
    std::vector<float> value;
};

static Factors draw(int rows, int k)
{
    Factors f;
    f.value.resize(size_t(rows) * k);
    f.bytes.resize(f.value.size() * cutlass::sizeof_bits<Data>::value / 8);
    for (size_t i = 0; i < f.value.size(); i++) {
#if KIND == KIND_NVF4
        uint8_t code = random_bits() & 15;
        f.bytes[i / 2] |= uint8_t(code << (4 * (i % 2)));
        f.value[i] = float(cutlass::float_e2m1_t::bitcast(code));
#else
        Data d(float(int(random_bits() % 33) - 16) / 8);
        reinterpret_cast<Data *>(f.bytes.data())[i] = d;
        f.value[i] = float(d);
#endif
    }
    return f;
}

template <class T> static T *device(const std::vector<T> &host)
{
    T *p = nullptr;
    if (cudaMalloc(&p, host.size() * sizeof(T)) || cudaMemcpy(p, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice))
        exit(2);
    return p;
}

#if KIND != KIND_F16
using Scale = typename Element::ScaleFactorType;

// Scales by the layout that the kernel wants, for each factor.
template <class Layout> static std::vector<Scale> draw_scales(Layout layout, int rows, int k, Factors &f)
{
    std::vector<Scale> scales(cosize(layout));
    for (Scale &s : scales)
        s = Scale(ldexpf(1.0f, int(random_bits() % 5) - 2));
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < k; i++)
            f.value[size_t(r) * k + i] *= float(scales[layout(r, i, 0)]);
    return scales;
}
#endif

int main()
{
    int const m = 200, n = 144, k = 2 * TILE_K + 64;
    Factors a = draw(m, k), b = draw(n, k);
    std::vector<float> d(size_t(m) * n, NAN);
    uint8_t *da = device(a.bytes), *db = device(b.bytes);
    float *dd = device(d);
    int given = k;
#ifdef BUG
    given += ALIGN;
#endif
    auto stride_a = cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {m, given, 1});
    auto stride_b = cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {n, given, 1});
    auto stride_d = cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, {m, n, 1});
    typename Main::Arguments main_args{};
    main_args.ptr_A = reinterpret_cast<decltype(main_args.ptr_A)>(da);
    main_args.ptr_B = reinterpret_cast<decltype(main_args.ptr_B)>(db);
    main_args.dA = stride_a;
    main_args.dB = stride_b;
#if KIND != KIND_F16
    using Config = typename Main::Sm1xxBlkScaledConfig;
    main_args.layout_SFA = Config::tile_atom_to_shape_SFA(make_shape(m, n, k, 1));
    main_args.layout_SFB = Config::tile_atom_to_shape_SFB(make_shape(m, n, k, 1));
    main_args.ptr_SFA = device(draw_scales(main_args.layout_SFA, m, k, a));
    main_args.ptr_SFB = device(draw_scales(main_args.layout_SFB, n, k, b));
#endif
    typename Gemm::Arguments args{cutlass::gemm::GemmUniversalMode::kGemm, {m, n, given, 1}, main_args, {{1.0f, 0.0f}, nullptr, stride_d, dd, stride_d}};
    args.hw_info.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
    Gemm gemm;
    std::vector<uint8_t> workspace(Gemm::get_workspace_size(args) + 16);
    uint8_t *space = device(workspace);
    cutlass::Status status = gemm.can_implement(args);
    if (status == cutlass::Status::kSuccess)
        status = gemm.initialize(args, space);
    if (status == cutlass::Status::kSuccess)
        status = gemm.run();
    cudaError_t error = cudaDeviceSynchronize();
    if (status != cutlass::Status::kSuccess || error)
        return printf("FAILED: %s, %s\n", cutlassGetStatusString(status), cudaGetErrorString(error)), 1;
    if (cudaMemcpy(d.data(), dd, d.size() * sizeof(float), cudaMemcpyDeviceToHost))
        return 2;
    int wrong = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int e = 0; e < k; e++) {
                double p = double(a.value[size_t(i) * k + e]) * b.value[size_t(j) * k + e];
                sum += p;
                size += fabs(p);
            }
            float got = d[size_t(i) * n + j];
            if (!(fabs(got - sum) <= 1e-6 * size + 1e-6) && wrong++ < 3)
                printf("(%d,%d): %g, should be %g\n", i, j, got, sum);
        }
    printf("%s\n", wrong ? "WRONG" : "right");
    return wrong > 0;
}
