// gemm_bench [THREADS [ROUNDS [WHICH]]]: the CPU's matrix product against oneDNN's and against the
// peak of the FMA units, on the shapes of training whose name contains WHICH.
// gemm_bench THREADS ROUNDS step LAYERS HIDDEN VOCABULARY TOKENS: on the shapes of a GPT-2's step,
// and the rate of all its products together.
//
// In each round all contestants run twice, one after the other, so that a busy machine hurts them
// alike; of the second runs, since threads may have slept before the first, the fastest counts. Run
// with OMP_WAIT_POLICY=passive: oneDNN's threads must not spin while others are timed. oneDNN runs
// as dnnl_sgemm and as a matmul primitive with weights packed beforehand, whose packing is not
// timed; the faster one is shown. In bf16, c is bf16 too, but f32 where it is accumulated in.
// Figures are GFLOP/s.
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

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_choice.h"

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
  [[nodiscard]] double flops() const { return 2.0 * double(m) * double(n) * double(k); }
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

// A product of a step, and how often a step has it.
struct Repeated {
  Case shape;
  double times;
};

struct Gpt2 {
  size_t layers, hidden, vocabulary, tokens;
};

// Forward, its gradient of the input and of the weight.
void add_linear(std::vector<Repeated>& step, const char* use, const Case& forward, double times) {
  const auto [name, m, n, k, ta, tb, acc] = forward;
  step.push_back({{use, m, n, k, false, tb, false}, times});
  step.push_back({{"  its dx", m, k, n, false, !tb, false}, times});
  if (tb)
    step.push_back({{"  its dW", n, k, m, true, false, true}, times});
  else
    step.push_back({{"  its dW", k, n, m, true, false, true}, times});
}

// As lib/model multiplies: weights are stored (in, out), the head's (out, in), and the head takes
// some rows at a time (lib/arch, logits_in_pieces).
std::vector<Repeated> products_of_step(const Gpt2& model) {
  const size_t c = model.hidden, t = model.tokens;
  const auto layers = double(model.layers);
  const size_t rows = std::min(t, std::max<size_t>(64, (size_t{16} << 20) / model.vocabulary));
  std::vector<Repeated> step;
  add_linear(step, "qkv", {"", t, 3 * c, c, false, false, false}, layers);
  add_linear(step, "attention out", {"", t, c, c, false, false, false}, layers);
  add_linear(step, "mlp up", {"", t, 4 * c, c, false, false, false}, layers);
  add_linear(step, "mlp down", {"", t, c, 4 * c, false, false, false}, layers);
  add_linear(step, "logits", {"", rows, model.vocabulary, c, false, true, false},
             double(t) / double(rows));
  return step;
}

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

// Seconds of the best of `rounds` rounds, for each contestant; threads are awake.
std::vector<double> race(const std::vector<std::function<void()>>& contestants, int rounds) {
  std::vector<double> best(contestants.size(), 1e9);
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < contestants.size(); ++i) {
      contestants[i]();
      best[i] = std::min(best[i], seconds_of(contestants[i]));
    }
  return best;
}

constexpr std::array kTypes = {DType::kF32, DType::kBF16};

// Seconds of a product in one type; oneDNN's are 0 where it is not there.
struct Seconds {
  double own = 0, other = 0;
};
struct Outcome {
  double peak_flops;
  std::array<Seconds, kTypes.size()> seconds;
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

Outcome race_case(const Case& shape, ThreadPool& pool, Gemm& gemm, int rounds) {
  double peak_flops = 0;
  std::vector<std::function<void()>> all = {
      [&] { pool.run([&](int t) { t == 0 ? peak_flops = run_peak() : run_peak(); }); }};
  std::vector<std::unique_ptr<Operands>> data;
  std::vector<size_t> first;  // contestant of each type
  for (const DType dtype : kTypes) {
    data.push_back(std::make_unique<Operands>(shape, dtype));
    first.push_back(all.size());
    for (auto& contestant : contestants_of(args_of(shape, *data.back()), gemm))
      all.push_back(std::move(contestant));
  }
  first.push_back(all.size());
  const std::vector<double> best = race(all, rounds);
  Outcome outcome = {peak_flops * pool.thread_count() / best[0], {}};
  for (size_t type = 0; type < kTypes.size(); ++type) {
    Seconds& seconds = outcome.seconds[type];
    seconds.own = best[first[type]];
    const auto others = best.begin() + long(first[type]) + 1;
    const auto end = best.begin() + long(first[type + 1]);
    seconds.other = others == end ? 0 : *std::min_element(others, end);
  }
  return outcome;
}

void print_head() {
  fmt::print("{:<20} {:<20} {:>5} {:>5} {:>6} {:>5} {:>7} {:>7} {:>6} {:>7}\n", "use", "m x n x k",
             "peak", "f32", "oneDNN", "/peak", "/oneDNN", "bf16", "oneDNN", "/oneDNN");
}

void print_row(const std::string& use, const std::string& sizes, double flops,
               const Outcome& outcome) {
  const double peak = outcome.peak_flops / 1e9;
  fmt::print("{:<20} {:<20} {:>5.0f}", use, sizes, peak);
  for (size_t type = 0; type < kTypes.size(); ++type) {
    const auto [own, other] = outcome.seconds[type];
    fmt::print(" {:>{}.0f} {:>6.0f}", flops / own / 1e9, type == 0 ? 5 : 7,
               other > 0 ? flops / other / 1e9 : 0);
    if (type == 0) fmt::print(" {:>5.2f}", flops / own / 1e9 / peak);
    fmt::print(" {:>7.2f}", other / own);
  }
  fmt::print("\n");
}

Outcome run_case(const Case& shape, ThreadPool& pool, Gemm& gemm, int rounds) {
  const Outcome outcome = race_case(shape, pool, gemm, rounds);
  const std::string sizes =
      fmt::format("{}x{}x{}{}{}", shape.m, shape.n, shape.k, shape.transpose_a ? " a^T" : "",
                  shape.transpose_b ? " b^T" : "");
  print_row(shape.use, sizes, shape.flops(), outcome);
  return outcome;
}

void run_step(const Gpt2& model, ThreadPool& pool, Gemm& gemm, int rounds) {
  double flops = 0, peak_seconds = 0;
  Outcome all = {};
  for (const auto& [shape, times] : products_of_step(model)) {
    const Outcome outcome = run_case(shape, pool, gemm, rounds);
    flops += shape.flops() * times;
    peak_seconds += shape.flops() * times / outcome.peak_flops;
    for (size_t type = 0; type < kTypes.size(); ++type) {
      all.seconds[type].own += outcome.seconds[type].own * times;
      all.seconds[type].other += outcome.seconds[type].other * times;
    }
  }
  all.peak_flops = flops / peak_seconds;
  print_row("step", fmt::format("{:.3g} GFLOP", flops / 1e9), flops, all);
}

int run(const std::vector<std::string>& args) {
  const auto number = [&](size_t i, int otherwise) {
    return i < args.size() ? std::atoi(args[i].c_str()) : otherwise;
  };
  const int threads = number(0, 1), rounds = number(1, 7);
  const std::string which = args.size() > 2 ? args[2] : "";
#if defined(GXP_BENCH_DNNL)
  omp_set_num_threads(threads);
#endif
  ThreadPool pool(threads);
  const GemmKernels kernels = choose_gemm_kernels(choose_isa());
  Gemm gemm(pool, kernels);
  fmt::print("{} threads, {}, best of {} rounds, GFLOP/s\n", threads, kernels.description, rounds);
  print_head();
  if (which == "step") {
    const auto size = [&](size_t i) { return size_t(number(i, 256)); };
    run_step({size(3), size(4), size(5), size(6)}, pool, gemm, rounds);
    return 0;
  }
  for (const Case& shape : kCases)
    if (std::string(shape.use).find(which) != std::string::npos)
      run_case(shape, pool, gemm, rounds);
  return 0;
}

}  // namespace
}  // namespace gxp

int main(int argc, char** argv) { return gxp::run({argv + 1, argv + argc}); }
