// Speed of the CPU kernels at the sizes of two models, beside memcpy in the same run.
//   gxp_kernels_bench [ISA [THREADS...]]      by default the best ISA with 1 and 2 threads
// GB/s counts each array that an operation reads or writes once; attention counts the causal half.
// Best of many runs within a tenth of a second.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/reduce_op.h"

namespace {

using namespace gxp;
using Clock = std::chrono::steady_clock;

struct Model {
  const char* name;
  size_t batch, positions, channels, heads, vocabulary;
  [[nodiscard]] size_t tokens() const { return batch * positions; }
};

// Owns what a Tensor borrows.
struct Array {
  std::vector<std::byte> bytes;
  Tensor tensor;
};

Array make_array(const Shape& shape, float scale = 1.0f) {
  Array array;
  array.bytes.resize(shape.count() * sizeof(float));
  array.tensor = Tensor(memory_of(array.bytes), DType::kF32, shape);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  for (size_t i = 0; i < shape.count(); ++i) array.tensor.data<float>()[i] = uniform(random);
  return array;
}

Array make_tokens(const Shape& shape, size_t vocabulary) {
  Array array = make_array(shape);
  array.tensor.dtype = DType::kI32;
  std::mt19937 random(2);
  for (size_t i = 0; i < shape.count(); ++i)
    array.tensor.data<int32_t>()[i] = int32_t(random() % vocabulary);
  return array;
}

double best_seconds(const std::function<void()>& run) {
  run();
  double best = 1e9;
  const auto start = Clock::now();
  while (Clock::now() - start < std::chrono::milliseconds(100)) {
    const auto before = Clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - before).count());
  }
  return best;
}

// Copies as many bytes in all as the operation moves, over the same threads.
double copy_gb_per_s(ThreadPool& pool, size_t bytes) {
  std::vector<std::byte> from(bytes / 2);
  std::vector<std::byte> to(bytes / 2);
  const double seconds = best_seconds([&] {
    pool.parallel_for(from.size(), 4096, [&](size_t begin, size_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, end - begin);
    });
  });
  return double(bytes) / seconds * 1e-9;
}

class Bench {
 public:
  Bench(const Model& model, const std::string& isa, int threads)
      : m_(model), pool_(threads), ops_(make_cpu_ops(pool_, isa)) {}

  void run() {
    fmt::print("{}: {} tokens, C={}, H={}, V={}; {}\n", m_.name, m_.tokens(), m_.channels, m_.heads,
               m_.vocabulary, ops_->description());
    layernorm();
    gelu();
    embedding();
    classifier();
    flat();
    attention();
    matmul();
  }

 private:
  void moved(const char* name, size_t floats, const std::function<void()>& run) {
    const size_t bytes = floats * sizeof(float);
    const double seconds = best_seconds(run);
    const double gb_per_s = double(bytes) / seconds * 1e-9;
    const double copy = copy_gb_per_s(pool_, bytes);
    fmt::print("  {:<22} {:9.1f} us {:7.1f} MB {:7.1f} GB/s  {:4.0f} % of memcpy's {:.1f}\n", name,
               seconds * 1e6, double(bytes) * 1e-6, gb_per_s, 100 * gb_per_s / copy, copy);
  }
  void computed(const char* name, double flops, const std::function<void()>& run) {
    const double seconds = best_seconds(run);
    fmt::print("  {:<22} {:9.1f} us {:10} {:8.1f} GFLOP/s\n", name, seconds * 1e6, "",
               flops / seconds * 1e-9);
  }

  void layernorm() {
    const size_t n = m_.tokens();
    const size_t c = m_.channels;
    Array x = make_array({n, c}), out = make_array({n, c}), dx = make_array({n, c});
    Array weight = make_array({c}), bias = make_array({c});
    Array mean = make_array({n}), rstd = make_array({n});
    moved("layernorm_forward", 2 * n * c, [&] {
      ops_->layernorm_forward(out.tensor, mean.tensor, rstd.tensor, x.tensor, weight.tensor,
                              bias.tensor, 1e-5f);
    });
    moved("layernorm_backward", 4 * n * c, [&] {
      ops_->layernorm_backward({.dx = dx.tensor,
                                .dweight = weight.tensor,
                                .dbias = bias.tensor,
                                .dout = out.tensor,
                                .x = x.tensor,
                                .mean = mean.tensor,
                                .rstd = rstd.tensor,
                                .weight = weight.tensor});
    });
  }

  void gelu() {
    const Shape shape = {m_.tokens(), 4 * m_.channels};
    Array x = make_array(shape, 4), out = make_array(shape), dx = make_array(shape);
    Array dbias = make_array({4 * m_.channels});
    moved("gelu_forward", 2 * shape.count(), [&] { ops_->gelu_forward(out.tensor, x.tensor); });
    moved("gelu_backward", 4 * shape.count(),
          [&] { ops_->gelu_backward(dx.tensor, out.tensor, dx.tensor, x.tensor); });
    moved("bias_backward", shape.count(), [&] { ops_->bias_backward(dbias.tensor, x.tensor); });
  }

  void embedding() {
    const Shape shape = {m_.batch, m_.positions, m_.channels};
    Array tokens = make_tokens({m_.batch, m_.positions}, m_.vocabulary);
    Array out = make_array(shape), table = make_array({m_.vocabulary, m_.channels});
    Array positions = make_array({m_.positions, m_.channels});
    moved("embedding_forward", 2 * shape.count(), [&] {
      ops_->embedding_forward(out.tensor, tokens.tensor, table.tensor, positions.tensor);
    });
    moved("embedding_backward", 3 * shape.count(), [&] {
      ops_->embedding_backward(table.tensor, positions.tensor, out.tensor, tokens.tensor);
    });
  }

  void classifier() {
    const size_t rows = std::min<size_t>(m_.tokens(), 256);
    Array logits = make_array({rows, m_.vocabulary}), losses = make_array({rows});
    Array targets = make_tokens({rows}, m_.vocabulary);
    moved("classifier", 2 * logits.tensor.count(),
          [&] { ops_->classifier(logits.tensor, losses.tensor, targets.tensor, 1.0f); });
    moved("classifier_loss", logits.tensor.count(),
          [&] { ops_->classifier_loss(losses.tensor, logits.tensor, targets.tensor); });
  }

  void flat() {
    const size_t count = 8 << 20;
    Array w = make_array({count}), m = make_array({count}), g = make_array({count});
    Array v = make_array({count});
    for (size_t i = 0; i < count; ++i) v.tensor.data<float>()[i] = 0.5f;
    const AdamWStep step = {1e-3, 0.9, 0.95, 1e-8, 0.1, 10, 1.0};
    moved("adamw", 7 * count, [&] { ops_->adamw(w.tensor, m.tensor, v.tensor, g.tensor, step); });
    moved("sum_of_squares", count, [&] { (void)ops_->sum_of_squares(g.tensor); });
    moved("fill", count, [&] { ops_->fill(g.tensor, 1.0f); });
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      moved(fmt::format("fold {} (1 thread)", to_string(dtype)).c_str(), 3 * (count / 8), [&] {
        fold(m.tensor.memory.slice(0, count / 2), w.tensor.memory.slice(0, count / 2), dtype,
             ReduceOp::kSum);
      });
    }
  }

  void attention() {
    const size_t c = m_.channels;
    const Shape rows = {m_.batch, m_.positions, c};
    const Shape sums = {m_.batch, m_.heads, m_.positions};
    Array qkv = make_array({m_.batch, m_.positions, 3 * c});
    Array dqkv = make_array({m_.batch, m_.positions, 3 * c});
    Array out = make_array(rows), dout = make_array(rows);
    Array lse = make_array(sums), scratch = make_array(sums);
    const int heads = int(m_.heads);
    const double product = double(m_.batch * m_.positions * (m_.positions + 1) * c);
    computed("attention_forward", 2 * product,
             [&] { ops_->attention_forward(out.tensor, lse.tensor, qkv.tensor, heads); });
    computed("attention_backward", 5 * product, [&] {
      ops_->attention_backward(dqkv.tensor, scratch.tensor, dout.tensor, qkv.tensor, out.tensor,
                               lse.tensor, heads);
    });
  }

  void matmul() {
    const size_t c = m_.channels;
    Array x = make_array({m_.tokens(), c}), w = make_array({4 * c, c});
    Array out = make_array({m_.tokens(), 4 * c});
    MatmulOptions options;
    options.transpose_b = true;
    computed("matmul", 8.0 * double(m_.tokens() * c * c),
             [&] { ops_->matmul(out.tensor, x.tensor, w.tensor, options); });
  }

  Model m_;
  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string isa = argc > 1 ? argv[1] : "";
  std::vector<int> thread_counts;
  for (int i = 2; i < argc; ++i) thread_counts.push_back(std::stoi(argv[i]));
  if (thread_counts.empty()) thread_counts = {1, 2};
  const Model models[] = {{"tiny", 8, 256, 256, 4, 256}, {"124M", 4, 256, 768, 12, 50257}};
  for (const Model& model : models) {
    for (const int threads : thread_counts) Bench(model, isa, threads).run();
  }
}
