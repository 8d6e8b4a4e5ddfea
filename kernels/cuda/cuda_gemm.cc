#include "kernels/cuda/cuda_gemm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <map>
#include <memory>

#include "kernels/cuda/cublas_library.h"
#include "kernels/cuda/elementwise_launch.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

// What NVIDIA advises for Hopper; it lies in the queue's scratch memory.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

void check_cublas(cublasStatus_t status, std::string_view act) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ErrorKind::kDevice, "{}: {}", act, cublas_library().status_string(status));
}

// A handle that cuBLASLt made, and how it wants it back.
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>,
                              cublasStatus_t (*)(std::remove_pointer_t<Handle>*)>;

cudaDataType type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return CUDA_R_32F;
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    default:
      break;
  }
  fail(ErrorKind::kInternal, "multiply matrices of {} on a GPU", to_string(dtype));
}

// The largest power of two up to 256 that divides the address.
uint32_t alignment_of(const void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  return uint32_t(std::min<uintptr_t>(256, address & -address));
}

// Everything that the choice of an algorithm depends on. In cuBLASLt's words, whose matrices are
// stored by columns: D(n, m) = op(b)' op(a)' is our out(m, n).
struct Product {
  size_t m, n, k;
  bool transpose_a, transpose_b, has_bias, adds;
  DType operands, out;
  std::array<uint32_t, 3> alignments;  // a, b, out
  auto operator<=>(const Product&) const = default;
};

Owned<cublasLtMatrixLayout_t> layout_of(DType dtype, size_t rows, size_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_cublas(
      cublas_library().layout_create(&layout, type_of(dtype), rows, columns, int64_t(rows)),
      "describe a matrix to cuBLASLt");
  return {layout, cublas_library().layout_destroy};
}

template <class Value>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check_cublas(cublas_library().matmul_desc_set(desc, attribute, &value, sizeof value),
               "describe a product to cuBLASLt");
}

Owned<cublasLtMatmulDesc_t> desc_of(const Product& product) {
  cublasLtMatmulDesc_t created = nullptr;
  check_cublas(cublas_library().matmul_desc_create(&created, CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "describe a product to cuBLASLt");
  Owned<cublasLtMatmulDesc_t> desc(created, cublas_library().matmul_desc_destroy);
  set(created, CUBLASLT_MATMUL_DESC_TRANSA, product.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(created, CUBLASLT_MATMUL_DESC_TRANSB, product.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (product.has_bias)
    set(created, CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_BIAS});
  return desc;
}

// cuBLASLt's workspace, and behind it a copy of an operand whose type is not the product's.
struct ConvertedOperands {
  ConvertedOperands(CudaQueue& queue, const ConstTensor& left, const ConstTensor& right, DType type)
      : a(array_of(left).data), b(array_of(right).data) {
    GXP_ASSERT(left.dtype == type || right.dtype == type);
    const bool same = left.dtype == right.dtype;
    const ConstTensor& other = left.dtype == type ? right : left;
    workspace = queue.scratch(kWorkspaceBytes + (same ? 0 : other.count() * size_of(type)));
    if (same) return;
    const CudaArray copy = {workspace + kWorkspaceBytes, type};
    check_cuda(launch_convert(queue.stream(), other.count(), copy, array_of(other)),
               "launch convert");
    (left.dtype == type ? b : a) = copy.data;
  }
  const void* a;
  const void* b;
  std::byte* workspace;
};

}  // namespace

// A product that was prepared, with its algorithm.
struct Prepared {
  explicit Prepared(const Product& product)
      : desc(desc_of(product)),
        a(product.transpose_b ? layout_of(product.operands, product.k, product.n)
                              : layout_of(product.operands, product.n, product.k)),
        b(product.transpose_a ? layout_of(product.operands, product.m, product.k)
                              : layout_of(product.operands, product.k, product.m)),
        d(layout_of(product.out, product.n, product.m)) {}
  Owned<cublasLtMatmulDesc_t> desc;
  Owned<cublasLtMatrixLayout_t> a, b, d;
  cublasLtMatmulAlgo_t algo{};
};

struct CudaGemm::Impl {
  explicit Impl(CudaQueue& cuda_queue)
      : queue(cuda_queue), handle(nullptr, cublas_library().destroy) {
    queue.stream();  // makes its GPU current, which the handle is for
    cublasLtHandle_t created = nullptr;
    check_cublas(cublas_library().create(&created), "start cuBLASLt");
    handle.reset(created);
  }

  Prepared& prepare(const Product& product) {
    const auto found = prepared.find(product);
    if (found != prepared.end()) return found->second;
    Prepared& fresh = prepared.try_emplace(product, product).first->second;
    choose(product, fresh);
    return fresh;
  }

  void choose(const Product& product, Prepared& fresh) {
    const CublasLibrary& cublas = cublas_library();
    cublasLtMatmulPreference_t created = nullptr;
    check_cublas(cublas.preference_create(&created), "ask cuBLASLt for algorithms");
    const Owned<cublasLtMatmulPreference_t> preference(created, cublas.preference_destroy);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check_cublas(cublas.preference_set(created, attribute, &value, sizeof value),
                   "ask cuBLASLt for algorithms");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspaceBytes});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.alignments[1]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.alignments[0]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.alignments[2]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product.alignments[2]);
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    const cublasStatus_t status =
        cublas.heuristic(handle.get(), fresh.desc.get(), fresh.a.get(), fresh.b.get(),
                         fresh.d.get(), fresh.d.get(), created, 1, &result, &count);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0)
      fail(ErrorKind::kDevice, "multiply ({}, {}) by ({}, {}) on a GPU: cuBLASLt knows no way ({})",
           product.m, product.k, product.k, product.n, cublas.status_string(status));
    fresh.algo = result.algo;
  }

  CudaQueue& queue;
  Owned<cublasLtHandle_t> handle;
  std::map<Product, Prepared> prepared;
};

CudaGemm::CudaGemm(CudaQueue& queue) : impl_(std::make_unique<Impl>(queue)) {}
CudaGemm::~CudaGemm() = default;

void CudaGemm::matmul(const Tensor& out, const ConstTensor& a, const ConstTensor& b,
                      const MatmulOptions& options) {
  CudaQueue& queue = impl_->queue;
  Product product{.m = out.shape.rows(),
                  .n = out.shape.columns(),
                  .k = options.transpose_a ? a.shape.rows() : a.shape.columns(),
                  .transpose_a = options.transpose_a,
                  .transpose_b = options.transpose_b,
                  .has_bias = options.bias.memory.data != nullptr,
                  .adds = options.accumulate || options.residual.memory.data != nullptr,
                  .operands = a.dtype == DType::kF32 ? b.dtype : a.dtype,
                  .out = out.dtype,
                  .alignments = {}};
  GXP_ASSERT(a.count() == product.m * product.k && b.count() == product.k * product.n);
  GXP_ASSERT(!options.accumulate || options.residual.memory.data == nullptr);
  if (out.count() == 0) return;
  // cuBLASLt multiplies operands of one type, and adds a bias of the output's type.
  const ConvertedOperands operands(queue, a, b, product.operands);
  const void* residual = out.memory.data;
  if (options.residual.memory.data != nullptr) residual = array_of(options.residual).data;
  if (product.has_bias && options.bias.dtype != out.dtype) {
    check_cuda(launch_add_bias(queue.stream(), product.m, product.n, array_of(out),
                               product.adds ? ConstCudaArray(residual, out.dtype)
                                            : ConstCudaArray(nullptr, out.dtype),
                               array_of(options.bias)),
               "launch add_bias");
    product.has_bias = false;
    product.adds = true;
    residual = out.memory.data;
  }
  product.alignments = {alignment_of(operands.a), alignment_of(operands.b),
                        std::min(alignment_of(out.memory.data), alignment_of(residual))};
  Prepared& prepared = impl_->prepare(product);
  if (product.has_bias)
    set(prepared.desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, array_of(options.bias).data);
  const float alpha = 1;
  const float beta = product.adds ? 1 : 0;
  check_cublas(
      cublas_library().matmul(impl_->handle.get(), prepared.desc.get(), &alpha, operands.b,
                              prepared.a.get(), operands.a, prepared.b.get(), &beta, residual,
                              prepared.d.get(), out.memory.data, prepared.d.get(), &prepared.algo,
                              operands.workspace, kWorkspaceBytes, queue.stream()),
      "multiply matrices on a GPU");
}

}  // namespace gxp
