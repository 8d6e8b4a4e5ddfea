#include <algorithm>

#include "tests/kernels/backends.h"

namespace gxp {
namespace {

using oracle::AttentionSizes;
using oracle::Values;

// The arrays of one attention, forward and backward.
struct AttentionRun {
  explicit AttentionRun(const AttentionSizes& sizes, float range = 1.0f)
      : s(sizes),
        qkv(random_floats(s.batch * s.positions * 3 * s.channels(), 1, range)),
        dout(random_floats(s.batch * s.positions * s.channels(), 2)),
        out(dout.size()),
        lse(s.pairs() * s.positions),
        dqkv(qkv.size(), 7.0f),
        delta(lse.size()) {}
  void forward(TestBackend& ops) {
    ops->attention_forward(tensor_of(out, rows()), tensor_of(lse, sums()),
                           tensor_of(std::as_const(qkv), wide()), int(s.heads));
  }
  void backward(TestBackend& ops) {
    ops->attention_backward(
        tensor_of(dqkv, wide()), tensor_of(delta, sums()), tensor_of(std::as_const(dout), rows()),
        tensor_of(std::as_const(qkv), wide()), tensor_of(std::as_const(out), rows()),
        tensor_of(std::as_const(lse), sums()), int(s.heads));
  }
  [[nodiscard]] Shape rows() const { return {s.batch, s.positions, s.channels()}; }
  [[nodiscard]] Shape wide() const { return {s.batch, s.positions, 3 * s.channels()}; }
  [[nodiscard]] Shape sums() const { return {s.batch, s.heads, s.positions}; }

  AttentionSizes s;
  Floats qkv, dout, out, lse, dqkv, delta;
};

TEST_CASE("the oracle's attention gradient is its central difference", "[kernels]") {
  const AttentionSizes s = {2, 4, 2, 3};
  AttentionRun run(s);
  const Values qkv = oracle::to_values(run.qkv);
  const Values dout = oracle::to_values(run.dout);
  const auto numeric = oracle::central_difference(
      [&](const Values& v) { return oracle::dot(dout, oracle::attention(s, v).out); }, qkv);
  const auto analytic = oracle::attention_gradient(s, qkv, dout);
  for (size_t i = 0; i < qkv.size(); ++i) REQUIRE(numeric[i] == Approx(analytic[i]).margin(1e-9));
}

TEST_CASE("attention and its gradient are the oracle's for any size", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const size_t positions = GENERATE(1, 7, 33, 64, 65, 100);
  const size_t head_size = GENERATE(4, 8, 16, 20, 64);
  CAPTURE(kind.name, positions, head_size);
  TestBackend ops(kind);
  AttentionRun run({1, positions, 2, head_size});
  run.forward(ops);
  run.backward(ops);
  const Values qkv = oracle::to_values(run.qkv);
  const auto forward = oracle::attention(run.s, qkv);
  CHECK(distance_in_eps(run.out, forward.out, 1) < roundings(positions + head_size, 4));
  CHECK(distance_in_eps(run.lse, forward.lse, 1) < roundings(positions + head_size, 4));
  const auto gradient = oracle::attention_gradient(run.s, qkv, oracle::to_values(run.dout));
  CHECK(distance_in_eps(run.dqkv, gradient, 1) < roundings(positions + 2 * head_size, 8));
}

TEST_CASE("attention is right for several rows and heads on several threads", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  CAPTURE(kind.name);
  TestBackend ops(kind);
  AttentionRun run({3, 70, 3, 16});
  run.forward(ops);
  run.backward(ops);
  const Values qkv = oracle::to_values(run.qkv);
  CHECK(distance_in_eps(run.out, oracle::attention(run.s, qkv).out, 1) < roundings(86, 4));
  const auto gradient = oracle::attention_gradient(run.s, qkv, oracle::to_values(run.dout));
  CHECK(distance_in_eps(run.dqkv, gradient, 1) < roundings(102, 8));
}

TEST_CASE("attention with scores far apart stays finite and right", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  TestBackend ops(kind);
  AttentionRun run({1, 130, 1, 16}, 20.0f);  // scores up to a thousand
  run.forward(ops);
  run.backward(ops);
  const Values qkv = oracle::to_values(run.qkv);
  // A score of 1000 rounds to 1000 eps, which e^ makes a relative error.
  CHECK(distance_in_eps(run.out, oracle::attention(run.s, qkv).out) < 1000);
  const auto gradient = oracle::attention_gradient(run.s, qkv, oracle::to_values(run.dout));
  CHECK(distance_in_eps(run.dqkv, gradient) < 4000);
}

TEST_CASE("a position's output does not depend on later positions", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  TestBackend ops(kind);
  AttentionRun all({1, 100, 2, 16});
  AttentionRun changed = all;
  const size_t kept = GENERATE(1, 63, 64, 99);
  std::fill(changed.qkv.begin() + ptrdiff_t(kept * 3 * all.s.channels()), changed.qkv.end(), 9.0f);
  all.forward(ops);
  changed.forward(ops);
  const size_t same = kept * all.s.channels();
  CHECK(std::equal(all.out.begin(), all.out.begin() + ptrdiff_t(same), changed.out.begin()));
}

}  // namespace
}  // namespace gxp
