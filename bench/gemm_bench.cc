// gemm_bench [THREADS [ROUNDS [WHICH]]]: the CPU's matrix product against oneDNN's and against the
// peak of the FMA units, on the shapes of training whose name contains WHICH.
//
// In each round all contestants run once, one after the other, so that a busy machine hurts them
// alike; the best round counts. oneDNN runs as dnnl_sgemm and as a matmul primitive whose weights
// were packed beforehand, at no charge; the better one is shown. In bf16, c is bf16 too, but f32
// where it is accumulated in. Figures are GFLOP/s.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/gemm_choice.h"

#if defined(GXP_BENCH_DNNL)
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace gxp {
namespace {

struct Case {
  const char* use;
  size_t m, n, k;
  bool transpose_a, transpose_b, accumulate;
};

// Tokens are 2048; linear layers of GPT-2 with C = 256, 384, 768, 1024; the classifier in chunks.
constexpr Case kCases[] = {
    {"qkv", 2048, 2304, 768, false, false, false},
    {"attention out", 2048, 768, 768, false, false, false},
    {"mlp up", 2048, 3072, 768, false, false, false},
    {"mlp down", 2048, 768, 3072, false, false, false},
    {"small qkv", 1024, 768, 256, false, false, false},
    {"small up", 1024, 1024, 256, false, false, false},
    {"small down", 1024, 256, 1024, false, false, false},
    {"384 up", 2048, 1536, 384, false, false, false},
    {"384 down", 2048, 384, 1536, false, false, false},
    {"square", 1024, 1024, 1024, false, false, false},
    {"dx of qkv", 2048, 768, 2304, false, true, false},
    {"dx of mlp up", 2048, 768, 3072, false, true, false},
    {"dx of mlp down", 2048, 3072, 768, false, true, false},
    {"dx of small up", 1024, 256, 1024, false, true, false},
    {"dW of qkv", 768, 2304, 2048, true, false, true},
    {"dW of attention out", 768, 768, 2048, true, false, true},
    {"dW of mlp up", 768, 3072, 2048, true, false, true},
    {"dW of mlp down", 3072, 768, 2048, true, false, true},
    {"dW of small up", 256, 1024, 1024, true, false, true},
    {"logits 128", 128, 50257, 768, false, true, false},
    {"logits 512", 512, 50257, 768, false, true, false},
    {"dx of logits 512", 512, 768, 50257, false, false, false},
    {"dW of logits 128", 50257, 768, 128, true, false, true},
    {"dW of logits 512", 50257, 768, 512, true, false, true},
};

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Independent chains of fused multiply-adds, as many as hide their latency.
template <class Vec>
inline __attribute__((always_inline)) void run_fma(Vec& out, size_t rounds) {
  constexpr size_t kChains = 12;
  Vec chains[kChains];
  for (size_t j = 0; j < kChains; ++j) chains[j] = out + float(j);  // alike, they would be one
  const Vec factor = out;
  for (size_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (size_t j = 0; j < kChains; ++j) chains[j] = chains[j] * factor + factor;
  }
  for (const Vec& chain : chains) out += chain;
}

constexpr size_t kPeakRounds = 400'000;

#if defined(__x86_64__)
__attribute__((target("avx512f"), noinline)) double run_peak_avx512() {
  float __attribute__((vector_size(64))) v = {0.5f};
  run_fma(v, kPeakRounds);
  asm volatile("" : : "m"(v));
  return 2.0 * 12 * 16 * kPeakRounds;
}
__attribute__((target("avx2,fma"), noinline)) double run_peak_avx2() {
  float __attribute__((vector_size(32))) v = {0.5f};
  run_fma(v, kPeakRounds);
  asm volatile("" : : "m"(v));
  return 2.0 * 12 * 8 * kPeakRounds;
}
#endif

// The floating-point operations that one thread has run; 0 where the peak is not known.
double run_peak() {
#if defined(__x86_64__)
  if (cpu_has(Isa::kAvx512)) return run_peak_avx512();
  if (cpu_has(Isa::kAvx2)) return run_peak_avx2();
#endif
  return 0;
}

std::vector<std::byte> random_matrix(size_t count, DType dtype) {
  std::minstd_rand random;
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<std::byte> out(count * size_of(dtype));
  for (size_t i = 0; i < count; ++i) {
    const float x = values(random);
    const BFloat16 half(x);
    if (dtype == DType::kF32) std::memcpy(out.data() + i * sizeof x, &x, sizeof x);
    if (dtype == DType::kBF16) std::memcpy(out.data() + i * sizeof half, &half, sizeof half);
  }
  return out;
}

struct Operands {
  Operands(const Case& shape, DType dtype)
      : dtype(dtype),
        c_type(shape.accumulate ? DType::kF32 : dtype),
        a(random_matrix(shape.m * shape.k, dtype)),
        b(random_matrix(shape.k * shape.n, dtype)),
        c(shape.m * shape.n * size_of(c_type)) {}
  DType dtype, c_type;
  std::vector<std::byte> a, b, c;
};

GemmArgs args_of(const Case& shape, Operands& data) {
  GemmArgs args;
  args.m = shape.m, args.n = shape.n, args.k = shape.k;
  args.a = data.a.data(), args.lda = shape.transpose_a ? shape.m : shape.k;
  args.b = data.b.data(), args.ldb = shape.transpose_b ? shape.k : shape.n;
  args.c = data.c.data(), args.ldc = shape.n;
  args.a_type = args.b_type = data.dtype, args.c_type = data.c_type;
  args.transpose_a = shape.transpose_a, args.transpose_b = shape.transpose_b;
  args.accumulate = shape.accumulate;
  return args;
}

#if defined(GXP_BENCH_DNNL)
std::function<void()> make_sgemm(const GemmArgs& args) {
  return [args] {
    const auto sizes = std::array{args.m, args.n, args.k, args.lda, args.ldb, args.ldc};
    std::array<dnnl_dim_t, 6> d;
    std::copy(sizes.begin(), sizes.end(), d.begin());
    dnnl_sgemm(args.transpose_a ? 'T' : 'N', args.transpose_b ? 'T' : 'N', d[0], d[1], d[2], 1.0f,
               static_cast<const float*>(args.a), d[3], static_cast<const float*>(args.b), d[4],
               args.accumulate ? 1.0f : 0.0f, static_cast<float*>(args.c), d[5]);
  };
}

dnnl::memory::data_type to_dnnl(DType dtype) {
  using Type = dnnl::memory::data_type;
  return dtype == DType::kF32 ? Type::f32 : Type::bf16;
}

dnnl::memory::desc matrix(std::array<size_t, 2> sizes, size_t ld, bool transposed, DType dtype) {
  const auto r = static_cast<dnnl_dim_t>(sizes[0]), c = static_cast<dnnl_dim_t>(sizes[1]);
  const auto step = static_cast<dnnl_dim_t>(ld);
  const auto strides = transposed ? dnnl::memory::dims{1, step} : dnnl::memory::dims{step, 1};
  return {{r, c}, to_dnnl(dtype), strides};
}

std::function<void()> make_matmul(const GemmArgs& args) {
  using dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto plain_b = matrix({args.k, args.n}, args.ldb, args.transpose_b, args.b_type);
  const auto any_b = memory::desc(plain_b.dims(), to_dnnl(args.b_type), memory::format_tag::any);
  dnnl::primitive_attr attributes;
  dnnl::post_ops post_ops;
  if (args.accumulate) post_ops.append_sum(1.0f);
  attributes.set_post_ops(post_ops);
  const dnnl::matmul::primitive_desc description(
      dnnl::matmul::desc(matrix({args.m, args.k}, args.lda, args.transpose_a, args.a_type), any_b,
                         matrix({args.m, args.n}, args.ldc, false, args.c_type)),
      attributes, engine);
  dnnl::stream stream(engine);
  memory a(description.src_desc(), engine, const_cast<void*>(args.a));
  memory b(plain_b, engine, const_cast<void*>(args.b));
  memory packed(description.weights_desc(), engine);
  memory c(description.dst_desc(), engine, args.c);
  dnnl::reorder(b, packed).execute(stream, b, packed);
  stream.wait();
  return [=, product = dnnl::matmul(description)]() mutable {
    product.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, c}});
    stream.wait();
  };
}
#endif

// Seconds of the best of `rounds` rounds, for each contestant.
std::vector<double> race(const std::vector<std::function<void()>>& contestants, int rounds) {
  std::vector<double> best(contestants.size(), 1e9);
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < contestants.size(); ++i)
      best[i] = std::min(best[i], seconds_of(contestants[i]));
  return best;
}

// GFLOP/s of a product in one type.
struct Rates {
  double own = 0, other = 0;
};

// What runs the product, own first.
std::vector<std::function<void()>> contestants_of(const GemmArgs& args, Gemm& gemm) {
  std::vector<std::function<void()>> contestants = {[&gemm, args] { gemm.run(args); }};
#if defined(GXP_BENCH_DNNL)
  if (args.a_type == DType::kF32) contestants.push_back(make_sgemm(args));
  contestants.push_back(make_matmul(args));
#endif
  return contestants;
}

void run_case(const Case& shape, ThreadPool& pool, Gemm& gemm, int rounds) {
  double peak_flops = 0;
  std::vector<std::function<void()>> all = {
      [&] { pool.run([&](int t) { t == 0 ? peak_flops = run_peak() : run_peak(); }); }};
  std::vector<std::unique_ptr<Operands>> data;
  std::vector<size_t> first;  // contestant of each type
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    data.push_back(std::make_unique<Operands>(shape, dtype));
    first.push_back(all.size());
    for (auto& contestant : contestants_of(args_of(shape, *data.back()), gemm))
      all.push_back(std::move(contestant));
  }
  first.push_back(all.size());
  const std::vector<double> best = race(all, rounds);
  const double flops = 2.0 * double(shape.m) * double(shape.n) * double(shape.k);
  std::array<Rates, 2> rates;
  for (size_t type = 0; type < 2; ++type) {
    rates[type].own = flops / best[first[type]] / 1e9;
    for (size_t i = first[type] + 1; i < first[type + 1]; ++i)
      rates[type].other = std::max(rates[type].other, flops / best[i] / 1e9);
  }
  const double peak = peak_flops * pool.thread_count() / best[0] / 1e9;
  const std::string sizes =
      fmt::format("{}x{}x{}{}{}", shape.m, shape.n, shape.k, shape.transpose_a ? " a^T" : "",
                  shape.transpose_b ? " b^T" : "");
  const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0.0; };
  fmt::print(
      "{:<20} {:<20} {:>5.0f} {:>5.0f} {:>6.0f} {:>5.2f} {:>7.2f} {:>7.0f} {:>6.0f} {:>7.2f}\n",
      shape.use, sizes, peak, rates[0].own, rates[0].other, ratio(rates[0].own, peak),
      ratio(rates[0].own, rates[0].other), rates[1].own, rates[1].other,
      ratio(rates[1].own, rates[1].other));
}

int run(int threads, int rounds, const std::string& which) {
#if defined(GXP_BENCH_DNNL)
  omp_set_num_threads(threads);
#endif
  ThreadPool pool(threads);
  const GemmKernels kernels = choose_gemm_kernels(choose_isa());
  Gemm gemm(pool, kernels);
  fmt::print("{} threads, {}, best of {} rounds, GFLOP/s\n", threads, kernels.description, rounds);
  fmt::print("{:<20} {:<20} {:>5} {:>5} {:>6} {:>5} {:>7} {:>7} {:>6} {:>7}\n", "use", "m x n x k",
             "peak", "f32", "oneDNN", "/peak", "/oneDNN", "bf16", "oneDNN", "/oneDNN");
  for (const Case& shape : kCases)
    if (std::string(shape.use).find(which) != std::string::npos)
      run_case(shape, pool, gemm, rounds);
  return 0;
}

}  // namespace
}  // namespace gxp

int main(int argc, char** argv) {
  return gxp::run(argc > 1 ? std::atoi(argv[1]) : 1, argc > 2 ? std::atoi(argv[2]) : 7,
                  argc > 3 ? argv[3] : "");
}
