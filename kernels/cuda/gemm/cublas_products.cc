#include "kernels/cuda/gemm/cublas_products.h"

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cuda/choice_cache.h"
#include "kernels/cuda/gemm/cublas_library.h"
#include "kernels/cuda/timing.h"
#include "lib/base/bytes.h"
#include "lib/base/log.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

constexpr int kCandidates = 16;  // algorithms that are timed for a product
constexpr int kGuesses = 4;      // asked for where none is timed, to be tried in their order

// What the cache says of an end where every algorithm failed when it was tried: it is done apart.
constexpr CachedChoice kNoAlgorithm = {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0},
                                       ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}};
// What it says of an end: whether it is fused.
constexpr CachedChoice kFused = {1};
constexpr CachedChoice kApart = {0};

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

cudaDataType type_of(DType dtype, Float8 float8) {
  if (float8 == Float8::kNone) return type_of(dtype);
  return float8 == Float8::kE4M3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
}

bool is_float8(const Product& product) { return product.float8.a != Float8::kNone; }

// (rows, columns), or its transpose, in cuBLASLt's words, whose matrices are stored by columns:
// D(n, m) = op(b)' op(a)' is our out(m, n).
Owned<cublasLtMatrixLayout_t> layout_of(cudaDataType type, size_t rows, size_t columns,
                                        bool transposed = false) {
  if (transposed) std::swap(rows, columns);
  cublasLtMatrixLayout_t layout = nullptr;
  check_cublas(cublas_library().layout_create(&layout, type, rows, columns, int64_t(rows)),
               "describe a matrix to cuBLASLt");
  return {layout, cublas_library().layout_destroy};
}

template <class Value>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check_cublas(cublas_library().matmul_desc_set(desc, attribute, &value, sizeof value),
               "describe a product to cuBLASLt");
}

uint32_t epilogue_of(ProductEnd end) {
  switch (end) {
    case ProductEnd::kPlain:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case ProductEnd::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case ProductEnd::kBiasGelu:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case ProductEnd::kGeluSlope:
      return CUBLASLT_EPILOGUE_DGELU;
    case ProductEnd::kBiasGradient:
      return CUBLASLT_EPILOGUE_BGRADA;  // our b is its A
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}
bool has_bias(ProductEnd end) { return end == ProductEnd::kBias || end == ProductEnd::kBiasGelu; }
bool has_argument(ProductEnd end) {
  return end == ProductEnd::kBiasGelu || end == ProductEnd::kGeluSlope;
}

Owned<cublasLtMatmulDesc_t> desc_of(const Product& product, bool tf32) {
  cublasLtMatmulDesc_t created = nullptr;
  const cublasComputeType_t compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check_cublas(cublas_library().matmul_desc_create(&created, compute, CUDA_R_32F),
               "describe a product to cuBLASLt");
  Owned<cublasLtMatmulDesc_t> desc(created, cublas_library().matmul_desc_destroy);
  set(created, CUBLASLT_MATMUL_DESC_TRANSA, product.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(created, CUBLASLT_MATMUL_DESC_TRANSB, product.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(created, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(product.end));
  if (product.fast_sums) set(created, CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1});
  if (has_bias(product.end) && is_float8(product))
    set(created, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t{CUDA_R_16BF});
  if (has_argument(product.end))
    set(created, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t(product.n));
  return desc;
}

// A product that was prepared, with algorithms that may run, the best first, or why there is none.
struct Prepared {
  Prepared(const Product& p, bool tf32)
      : desc(desc_of(p, tf32)),
        a(layout_of(type_of(p.operands, p.float8.b), p.n, p.k, p.transpose_b)),
        b(layout_of(type_of(p.operands, p.float8.a), p.k, p.m, p.transpose_a)),
        d(layout_of(type_of(p.out), p.n, p.m)) {}
  Owned<cublasLtMatmulDesc_t> desc;
  Owned<cublasLtMatrixLayout_t> a, b, d;
  std::vector<cublasLtMatmulAlgo_t> algos;  // once the product has run, the one that did
  std::string why_not;
};

// Memory for trials, in addition to the run's planned memory; false: there is not as much.
class TrialMemory {
 public:
  explicit TrialMemory(size_t bytes) {
    const cudaError_t result = bytes == 0 ? cudaSuccess : cudaMalloc(&data_, bytes);
    is_there_ = result != cudaErrorMemoryAllocation;
    if (!is_there_)
      cudaGetLastError();  // forget it: this error leaves the GPU as it was
    else
      check_cuda(result, "allocate memory to time products");
  }
  ~TrialMemory() { cudaFree(data_); }
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;
  explicit operator bool() const { return is_there_; }
  [[nodiscard]] void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  bool is_there_ = false;
};

// In the order of the enumerators of ProductEnd.
constexpr std::array kEndNames = {"", " + bias", " + bias, gelu", " * gelu slope",
                                  " + bias gradient"};

std::string name_of(const Product& p, bool tf32) {
  if (tf32) return "tf32";
  const auto name = [](Float8 type) { return type == Float8::kE4M3 ? "e4m3" : "e5m2"; };
  if (!is_float8(p)) return std::string(to_string(p.operands));
  return fmt::format("{} x {}{}", name(p.float8.a), name(p.float8.b),
                     p.fast_sums ? " in fast sums" : "");
}

std::string key_of(const std::string& gpu, const Product& p, bool tf32) {
  return fmt::format("{}, cuBLASLt {}, {} x {} x {}{}{}, {} to {}{}{}, aligned to {} {} {}", gpu,
                     cublas_library().version(), p.m, p.n, p.k, p.transpose_a ? " ta" : "",
                     p.transpose_b ? " tb" : "", name_of(p, tf32), to_string(p.out),
                     kEndNames[size_t(p.end)], p.adds ? " + matrix" : "", p.alignments[0],
                     p.alignments[1], p.alignments[2]);
}

}  // namespace

struct CublasProducts::Impl {
  Impl(CudaQueue& cuda_queue, const std::string& cache_path, bool takes_tf32)
      : queue(cuda_queue), tf32(takes_tf32), handle(nullptr, cublas_library().destroy) {
    queue.stream();  // makes its GPU current, which the handle is for
    cublasLtHandle_t created = nullptr;
    check_cublas(cublas_library().create(&created), "start cuBLASLt");
    handle.reset(created);
    if (!cache_path.empty()) cache.emplace(cache_path);
  }

  Prepared& prepare(const Product& product, const ProductPointers& pointers) {
    const auto [found, is_new] = prepared.try_emplace(product, product, is_tf32(product));
    Prepared& ready = found->second;
    if (has_bias(product.end))
      set(ready.desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers.bias);
    if (has_argument(product.end))
      set(ready.desc.get(), CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pointers.argument);
    if (product.end == ProductEnd::kBiasGradient)
      set(ready.desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers.argument);
    if (is_float8(product)) {
      set(ready.desc.get(), CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, pointers.b_factor);
      set(ready.desc.get(), CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, pointers.a_factor);
    }
    if (is_new) choose(product, ready, pointers);
    return ready;
  }

  [[nodiscard]] bool is_tf32(const Product& product) const {
    return tf32 && product.operands == DType::kF32;
  }
  [[nodiscard]] std::string key_of(const Product& product) const {
    return gxp::key_of(queue.gpu_name(), product, is_tf32(product));
  }

  // The fastest for this product, or cuBLASLt's guesses if nothing is timed.
  void choose(const Product& product, Prepared& ready, const ProductPointers& pointers) {
    const auto candidates = candidates_of(product, ready, cache ? kCandidates : kGuesses);
    if (candidates.empty()) return;
    std::optional<CachedChoice> chosen;
    if (cache)
      chosen = cache->choose(key_of(product),
                             [&] { return fastest_of(candidates, product, ready, pointers); });
    if (!chosen)
      ready.algos = candidates;
    else if (*chosen == kNoAlgorithm)
      ready.why_not = "each of its algorithms failed when it was tried";
    else
      ready.algos = {std::bit_cast<cublasLtMatmulAlgo_t>(*chosen)};
  }

  // Those that cuBLASLt says it can run; without any, `ready` has its reason.
  std::vector<cublasLtMatmulAlgo_t> candidates_of(const Product& product, Prepared& ready,
                                                  int most) {
    const CublasLibrary& cublas = cublas_library();
    cublasLtMatmulPreference_t created = nullptr;
    check_cublas(cublas.preference_create(&created), "ask cuBLASLt for algorithms");
    const Owned<cublasLtMatmulPreference_t> preference(created, cublas.preference_destroy);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check_cublas(cublas.preference_set(created, attribute, &value, sizeof value),
                   "ask cuBLASLt for algorithms");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{CublasProducts::kWorkspaceBytes});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.alignments[1]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.alignments[0]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.alignments[2]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product.alignments[2]);
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results{};
    int count = 0;
    const cublasStatus_t status =
        cublas.heuristic(handle.get(), ready.desc.get(), ready.a.get(), ready.b.get(),
                         ready.d.get(), ready.d.get(), created, most, results.data(), &count);
    std::vector<cublasLtMatmulAlgo_t> candidates;
    cublasStatus_t refusal = status;
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i) {
      const cublasLtMatmulHeuristicResult_t& result = results[size_t(i)];
      if (result.state == CUBLAS_STATUS_SUCCESS)
        candidates.push_back(result.algo);
      else
        refusal = result.state;
    }
    if (candidates.empty()) ready.why_not = cublas.status_string(refusal);
    return candidates;
  }

  // None where there is no memory to find it, nor for a plain product whose algorithms all fail:
  // that is no choice, and the GPU's memory or driver may be to blame.
  std::optional<CachedChoice> fastest_of(const std::vector<cublasLtMatmulAlgo_t>& candidates,
                                         const Product& product, const Prepared& ready,
                                         const ProductPointers& pointers) {
    const TrialMemory other(trial_bytes(product));
    if (!other) return not_timed(trial_bytes(product));
    const Trial trial = try_all(candidates, product, ready, pointers, other);
    if (trial.working.empty())
      return product.end == ProductEnd::kPlain ? std::nullopt : std::optional(kNoAlgorithm);
    const auto fastest = std::ranges::min_element(trial.times) - trial.times.begin();
    return std::bit_cast<CachedChoice>(trial.working[size_t(fastest)]);
  }

  // Says so, once.
  std::nullopt_t not_timed(size_t bytes) {
    if (!std::exchange(is_told, true))
      log_warn(
          "some products are not timed, since the GPU lacks memory ({} is the first): they use "
          "cuBLASLt's first choice, and later runs may have other bits",
          format_bytes(bytes));
    return std::nullopt;
  }

  struct Trial {
    std::vector<cublasLtMatmulAlgo_t> working;
    std::vector<float> times;  // of those
  };
  // A product that is added to its output is timed into other memory.
  static size_t trial_bytes(const Product& product) {
    return product.adds ? product.m * product.n * size_of(product.out) : 0;
  }
  Trial try_all(const std::vector<cublasLtMatmulAlgo_t>& candidates, const Product& product,
                const Prepared& ready, ProductPointers pointers, const TrialMemory& other) {
    if (product.adds) pointers.out = other.data();
    const auto works = [&](const cublasLtMatmulAlgo_t& algo) {
      if (start(product, ready, algo, pointers) == CUBLAS_STATUS_SUCCESS) return true;
      cudaGetLastError();  // forget it: nothing was queued
      return false;
    };
    Trial trial;
    std::ranges::copy_if(candidates, std::back_inserter(trial.working), works);
    std::vector<std::function<void()>> timed;
    for (const cublasLtMatmulAlgo_t& algo : trial.working)
      timed.emplace_back(
          [&] { check_cublas(start(product, ready, algo, pointers), "time a product on a GPU"); });
    trial.times = times_in_turn(queue.stream(), timed);
    return trial;
  }

  // The product's end, fused or apart, as the cache says or two trials find; fused where there is
  // no memory for these. Their products are prepared before the cache is held: these ask it, too.
  bool fuses(const Product& product, const FusionTrial& trial) {
    const auto [known, is_new] = fusions.try_emplace(product, true);
    if (!is_new) return known->second;
    const std::string key = key_of(product) + ", fused";
    std::optional<CachedChoice> chosen = cache->find(key);
    if (!chosen) {
      const TrialMemory memory(trial.bytes);
      if (!memory) {
        not_timed(trial.bytes);
        return true;
      }
      const std::array<std::function<void()>, 2> timed = {[&] { trial.fused(memory.data()); },
                                                          [&] { trial.apart(memory.data()); }};
      for (const auto& start : timed) start();
      chosen = cache->choose(
          key, [&] { return fastest_in_turn(queue.stream(), timed) == 0 ? kFused : kApart; });
    }
    known->second = *chosen != kApart;
    return known->second;
  }

  // By the first algorithm that runs, which is kept.
  void run(const Product& product, Prepared& ready, const ProductPointers& pointers) {
    auto& algos = ready.algos;
    cublasStatus_t status = start(product, ready, algos.front(), pointers);
    for (; status != CUBLAS_STATUS_SUCCESS && algos.size() > 1;
         status = start(product, ready, algos.front(), pointers)) {
      cudaGetLastError();  // forget it: nothing was queued
      algos.erase(algos.begin());
    }
    check_cublas(status, "multiply matrices on a GPU");
    algos.resize(1);
  }
  cublasStatus_t start(const Product& product, const Prepared& ready,
                       const cublasLtMatmulAlgo_t& algo, const ProductPointers& pointers) {
    const float alpha = 1;
    const float beta = product.adds ? 1 : 0;
    return cublas_library().matmul(
        handle.get(), ready.desc.get(), &alpha, pointers.b, ready.a.get(), pointers.a,
        ready.b.get(), &beta, pointers.c, ready.d.get(), pointers.out, ready.d.get(), &algo,
        pointers.workspace, CublasProducts::kWorkspaceBytes, queue.stream());
  }

  CudaQueue& queue;
  const bool tf32;
  Owned<cublasLtHandle_t> handle;
  std::optional<ChoiceCache> cache;
  std::map<Product, Prepared> prepared;
  std::map<Product, bool> fusions;
  bool is_told = false;  // that something is not timed
};

CublasProducts::CublasProducts(CudaQueue& queue, const std::string& cache, bool tf32)
    : impl_(std::make_unique<Impl>(queue, cache, tf32)) {}
CublasProducts::~CublasProducts() = default;

void CublasProducts::multiply(const Product& product, const ProductPointers& pointers) {
  Prepared& ready = impl_->prepare(product, pointers);
  if (ready.algos.empty())
    fail(ErrorKind::kDevice,
         "multiply ({}, {}) by ({}, {}) on a GPU: cuBLASLt has no algorithm ({})", product.m,
         product.k, product.k, product.n, ready.why_not);
  impl_->run(product, ready, pointers);
}

bool CublasProducts::knows(const Product& product, const ProductPointers& pointers) {
  return !impl_->prepare(product, pointers).algos.empty();
}

bool CublasProducts::fuses(const Product& product, const ProductPointers& pointers,
                           const FusionTrial& trial) {
  if (!knows(product, pointers)) return false;
  return !impl_->cache || impl_->fuses(product, trial);
}

std::vector<float> CublasProducts::candidate_times(const Product& product,
                                                   const ProductPointers& pointers) {
  Prepared& ready = impl_->prepare(product, pointers);
  const auto candidates = impl_->candidates_of(product, ready, kCandidates);
  const TrialMemory other(Impl::trial_bytes(product));
  if (!other) fail(ErrorKind::kDevice, "time a product on a GPU: it has no memory for the trial");
  return impl_->try_all(candidates, product, ready, pointers, other).times;
}

}  // namespace gxp
