#include "kernels/cuda/gemm/cublas_library.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "kernels/math/gelu.h"
#include "lib/base/dtype.h"
#include "lib/base/error.h"
#include "tests/cuda/emulation/streams.h"
#include "tests/kernels/float8_codes.h"

struct EmulatedHandle {};
struct EmulatedMatmul {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasOperation_t transpose_a = CUBLAS_OP_N;
  cublasOperation_t transpose_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;       // read, or written by BGRADA
  void* auxiliary = nullptr;  // of D's type and size
  int64_t auxiliary_stride = 0;
  const float* a_scale = nullptr;  // of 8-bit operands
  const float* b_scale = nullptr;
  int8_t fast_accumulation = 0;
  int32_t bias_type = -1;  // -1: D's
};
struct EmulatedLayout {
  cudaDataType type;
  size_t rows, columns, stride;  // stored by columns
};
struct EmulatedPreference {
  uint32_t alignments[4] = {256, 256, 256, 256};
};

namespace {

constexpr int kAlgorithms = 3;  // all the same
std::mutex counts_mutex;
std::map<uint32_t, int> counts;  // of products by epilogue; under counts_mutex
int fast_products = 0;           // under counts_mutex

EmulatedCublas behaviour;

using gxp::BFloat16;
using gxp::Float16;

bool is_float8(cudaDataType type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

float read(const EmulatedLayout& layout, const void* data, size_t row, size_t column) {
  const size_t at = row + column * layout.stride;
  if (layout.type == CUDA_R_32F) return static_cast<const float*>(data)[at];
  if (layout.type == CUDA_R_16BF) return float(static_cast<const BFloat16*>(data)[at]);
  if (is_float8(layout.type))
    return gxp::decode_float8(
        static_cast<const uint8_t*>(data)[at],
        gxp::format_of(layout.type == CUDA_R_8F_E4M3 ? gxp::Float8::kE4M3 : gxp::Float8::kE5M2));
  return float(static_cast<const Float16*>(data)[at]);
}

void write(const EmulatedLayout& layout, void* data, size_t row, size_t column, float value) {
  const size_t at = row + column * layout.stride;
  if (layout.type == CUDA_R_32F)
    static_cast<float*>(data)[at] = value;
  else if (layout.type == CUDA_R_16BF)
    static_cast<BFloat16*>(data)[at] = BFloat16(value);
  else
    static_cast<Float16*>(data)[at] = Float16(value);
}

// To the nearest of 10 bits of the fraction.
float to_tf32(float value) {
  constexpr uint32_t kDropped = 13;
  const uint32_t half = 1U << (kDropped - 1);
  return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + half) >> kDropped << kDropped);
}

// op(x), as floats by rows: (rows, columns) of the product's factor.
std::vector<float> unpack(const EmulatedLayout& layout, const void* data, bool transposed) {
  const size_t rows = transposed ? layout.columns : layout.rows;
  const size_t columns = transposed ? layout.rows : layout.columns;
  std::vector<float> out(rows * columns);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      out[i * columns + j] = transposed ? read(layout, data, j, i) : read(layout, data, i, j);
  return out;
}

struct Multiplication {
  EmulatedMatmul how;
  EmulatedLayout a_layout, b_layout, d_layout;
  const void *a, *b, *c;
  void* d;
  float alpha, beta;
  bool from_last;  // sums begin with the last term

  void run() const {
    std::vector<float> left = unpack(a_layout, a, how.transpose_a == CUBLAS_OP_T);
    std::vector<float> right = unpack(b_layout, b, how.transpose_b == CUBLAS_OP_T);
    if (how.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
      for (auto* factor : {&left, &right})
        std::ranges::transform(*factor, factor->begin(), to_tf32);
    const size_t inner = left.size() / d_layout.rows;
    std::vector<float> sums(d_layout.columns);
    for (size_t i = 0; i < d_layout.rows; ++i) {
      sums.assign(d_layout.columns, 0.0f);
      for (size_t term = 0; term < inner; ++term) {
        const size_t k = from_last ? inner - 1 - term : term;
        const float factor = left[i * inner + k];
        const float* const row = right.data() + k * d_layout.columns;
        for (size_t j = 0; j < d_layout.columns; ++j) sums[j] += factor * row[j];
      }
      finish_row(i, sums);
    }
    if (how.epilogue == CUBLASLT_EPILOGUE_BGRADA) sum_rows(left, inner);
  }

  // Of op(a), over the terms of the product, in the order of its sums.
  void sum_rows(const std::vector<float>& left, size_t inner) const {
    for (size_t i = 0; i < d_layout.rows; ++i) {
      float sum = 0;
      for (size_t term = 0; term < inner; ++term)
        sum += left[i * inner + (from_last ? inner - 1 - term : term)];
      write(d_layout, how.bias, i, 0, sum);
    }
  }

  void finish_row(size_t i, const std::vector<float>& sums) const {
    EmulatedLayout vector = d_layout;
    vector.stride = d_layout.rows;
    if (how.bias_type >= 0) vector.type = cudaDataType(how.bias_type);
    const float a_scale = how.a_scale == nullptr ? 1 : *how.a_scale;
    const float b_scale = how.b_scale == nullptr ? 1 : *how.b_scale;
    EmulatedLayout auxiliary = d_layout;
    auxiliary.stride = size_t(how.auxiliary_stride);
    for (size_t j = 0; j < d_layout.columns; ++j) {
      float value = alpha * sums[j] * a_scale * b_scale;
      if (beta != 0) value += beta * read(d_layout, c, i, j);
      if (how.epilogue == CUBLASLT_EPILOGUE_BIAS || how.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
        value += read(vector, how.bias, i, 0);
      if (how.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
        write(auxiliary, how.auxiliary, i, j, value);
        value = gxp::gelu_and_slope(value).value;
      }
      if (how.epilogue == CUBLASLT_EPILOGUE_DGELU)
        value *= gxp::gelu_and_slope(read(auxiliary, how.auxiliary, i, j)).slope;
      write(d_layout, d, i, j, value);
    }
  }
};

// What the manual's list for 8-bit operands demands; a, b, d as cublasLtMatmul() has them.
bool takes_float8(const EmulatedMatmul& how, const EmulatedLayout& a, const EmulatedLayout& b,
                  const EmulatedLayout& d, const EmulatedPreference& preference) {
  const bool both = is_float8(a.type) && is_float8(b.type);
  const bool has_e4m3 = a.type == CUDA_R_8F_E4M3 || b.type == CUDA_R_8F_E4M3;
  const bool is_tn = how.transpose_a == CUBLAS_OP_T && how.transpose_b == CUBLAS_OP_N;
  const bool sizes_fit = a.rows % 16 == 0 && a.columns % 16 == 0;
  const bool lie_well =
      std::ranges::all_of(preference.alignments, [](uint32_t bytes) { return bytes % 16 == 0; });
  const bool has_scales = how.a_scale != nullptr && how.b_scale != nullptr;
  const bool has_bias = how.epilogue == CUBLASLT_EPILOGUE_BIAS;
  const bool end_fits =
      how.epilogue == CUBLASLT_EPILOGUE_DEFAULT || (has_bias && how.bias_type == CUDA_R_16BF);
  const bool out_fits = d.type == CUDA_R_32F || d.type == CUDA_R_16BF;
  return both && has_e4m3 && is_tn && sizes_fit && lie_well && has_scales && end_fits && out_fits;
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new EmulatedHandle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() { return 130000; }
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "an error of the emulated cuBLASLt";
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType /*scale*/) {
  *desc = new EmulatedMatmul{.compute = compute};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  const auto take = [&](auto& member) {
    if (bytes != sizeof member) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&member, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(desc->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(desc->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(desc->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(desc->bias);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return take(desc->auxiliary);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return take(desc->auxiliary_stride);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return take(desc->a_scale);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return take(desc->b_scale);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      return take(desc->fast_accumulation);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return take(desc->bias_type);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
  *layout = new EmulatedLayout{type, rows, columns, size_t(stride)};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new EmulatedPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return bytes == sizeof(uint64_t) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
  if (bytes != sizeof(uint32_t)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&preference->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
              value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t /*handle*/,
                                              cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  *found = 0;
  const EmulatedLayout* const layouts[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    const cudaDataType type = layouts[i]->type;
    const uint32_t bytes = type == CUDA_R_32F ? 4 : is_float8(type) ? 1 : 2;
    if (preference->alignments[i] % bytes != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool has_argument = desc->epilogue == CUBLASLT_EPILOGUE_DGELU ||
                            desc->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  if (has_argument && (desc->auxiliary_stride % 8 != 0 || d->type == CUDA_R_32F))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (desc->epilogue == CUBLASLT_EPILOGUE_BGRADA &&
      (desc->transpose_a == CUBLAS_OP_T || desc->bias == nullptr))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a->type != CUDA_R_32F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool narrows = a->type == CUDA_R_32F && d->type != CUDA_R_32F;
  const bool has_float8 = is_float8(a->type) || is_float8(b->type);
  if (has_float8 && !takes_float8(*desc, *a, *b, *d, *preference))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if ((!has_float8 && a->type != b->type) || c->type != d->type || narrows || wanted < 1)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (desc->epilogue == behaviour.refused_epilogue) return CUBLAS_STATUS_NOT_SUPPORTED;
  *found = std::min(wanted, kAlgorithms);
  int asked = std::popcount(desc->epilogue);
  for (const uint32_t alignment : preference->alignments) asked += std::countr_zero(alignment);
  for (int i = 0; i < *found; ++i) {
    results[i].algo = {{uint64_t(i), uint64_t(asked % 2)}};
    const bool has_failed = i == 0 && behaviour.first_has_failed;
    results[i].state = has_failed ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

EmulatedCublas& emulated_cublas() { return behaviour; }

int emulated_products(uint32_t epilogue) {
  const std::scoped_lock lock(counts_mutex);
  return counts[epilogue];
}
int emulated_fast_products() {
  const std::scoped_lock lock(counts_mutex);
  return fast_products;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t desc,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t /*c_layout*/, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* /*workspace*/, size_t /*bytes*/, cudaStream_t stream) {
  const Multiplication product = {*desc,
                                  *a_layout,
                                  *b_layout,
                                  *d_layout,
                                  a,
                                  b,
                                  c,
                                  d,
                                  *static_cast<const float*>(alpha),
                                  *static_cast<const float*>(beta),
                                  algo->data[1] == 1};
  // The real one says so here, and not when it is asked for algorithms.
  const auto lies_well = [](const float* scale) {
    return reinterpret_cast<uintptr_t>(scale) % 16 == 0;
  };
  if (!lies_well(desc->a_scale) || !lies_well(desc->b_scale)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool is_first = algo->data[0] == 0;
  const bool is_broken =
      (is_first && (behaviour.first_has_failed || behaviour.first_fails)) ||
      (desc->epilogue == CUBLASLT_EPILOGUE_DEFAULT ? behaviour.plain_fail : behaviour.all_fail);
  if (is_broken) return CUBLAS_STATUS_EXECUTION_FAILED;
  {
    const std::scoped_lock lock(counts_mutex);
    ++counts[desc->epilogue];
    fast_products += desc->fast_accumulation;
  }
  const bool is_slow = desc->epilogue == behaviour.slow_epilogue;
  const cudaError_t queued = gxp::emulation::enqueue(stream, [product, is_slow] {
    if (is_slow) gxp::emulation::spend(std::chrono::milliseconds(3));
    product.run();
  });
  return queued == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

namespace gxp {

const CublasLibrary& cublas_library() {
  static const CublasLibrary library = {cublasLtCreate,
                                        cublasLtDestroy,
                                        cublasLtGetVersion,
                                        cublasLtGetStatusString,
                                        cublasLtMatmulDescCreate,
                                        cublasLtMatmulDescDestroy,
                                        cublasLtMatmulDescSetAttribute,
                                        cublasLtMatrixLayoutCreate,
                                        cublasLtMatrixLayoutDestroy,
                                        cublasLtMatmulPreferenceCreate,
                                        cublasLtMatmulPreferenceDestroy,
                                        cublasLtMatmulPreferenceSetAttribute,
                                        cublasLtMatmulAlgoGetHeuristic,
                                        cublasLtMatmul};
  return library;
}

}  // namespace gxp
