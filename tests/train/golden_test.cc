// Training against float64 traces made with PyTorch; tests/data/train/README.md has the formulas.
#include <cmath>

#include "lib/ckpt/format.h"
#include "tests/catch.h"
#include "tests/train/golden.h"
#include "tests/train/golden_model.h"

namespace gxp {
namespace {

// Ten times the distance of PyTorch's own float32 run from the float64 reference.
constexpr double kLossTolerance = 7e-6;     // absolute
constexpr double kNormTolerance = 2e-6;     // relative
constexpr double kTensorTolerance = 7e-6;   // relative L2 of a tensor
constexpr double kElementTolerance = 3e-5;  // absolute, final weights

// The key part of an attention bias has gradient zero in real arithmetic and noise in any float,
// which Adam turns into steps: nothing to compare.
bool is_key_bias(const std::string& name, size_t i, size_t count) {
  return name.ends_with("c_attn.bias") && i >= count / 3 && i < 2 * count / 3;
}

struct Distance {
  double relative_l2;
  double largest;
};

Distance distance(const std::string& name, const Values& got, const Values& want) {
  double difference = 0, norm = 0, largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (is_key_bias(name, i, want.size())) continue;
    const double d = double(got[i]) - want[i];
    difference += d * d;
    norm += double(want[i]) * want[i];
    largest = std::max(largest, std::fabs(d));
  }
  return {std::sqrt(difference / norm), largest};
}

Values read_values(const NamedTensor& tensor) {
  Values values(tensor.info.count());
  tensor.read(0, memory_of(values));
  return values;
}

// Calls check(distance) for each tensor, in the order of the model, against a file of the folder.
template <class Check>
void compare(const std::string& folder, const std::string& file, const std::vector<Values>& got,
             Check check) {
  const NamedTensors want = read_weights(golden_path(folder, file));
  size_t i = 0;
  for (const UnitSpec& unit : make_architecture(golden_config(folder, 1).model).units) {
    for (const TensorSpec& tensor : unit.tensors) {
      CAPTURE(tensor.name);
      const NamedTensor* found = find_tensor(want, tensor.name);
      REQUIRE(found != nullptr);
      check(distance(tensor.name, got.at(i++), read_values(*found)));
    }
  }
}

TEST_CASE("a model trains as its float64 trace says, on any number of ranks", "[train]") {
  const std::string folder = GENERATE(from_range(golden_runs()));
  const int world_size = GENERATE(1, 2, 4);
  // At once, or in pieces of which the last is smaller.
  const std::string logits_rows = world_size == 4 ? "train.logits_rows=5" : "train.logits_rows=0";
  CAPTURE(folder, world_size, logits_rows);
  const std::vector<Trained> ranks =
      train_on_ranks(golden_config(folder, world_size, {logits_rows}), world_size);
  const nlohmann::json trace = read_json(golden_path(folder, "trace.json"))["float64"];
  for (const Trained& rank : ranks) {
    REQUIRE(rank.steps.size() == trace.size());
    for (size_t s = 0; s < trace.size(); ++s) {
      CHECK(std::fabs(rank.steps[s].loss - trace[s]["loss"].get<double>()) < kLossTolerance);
      CHECK(rank.steps[s].grad_norm ==
            Approx(trace[s]["grad_norm"].get<double>()).epsilon(kNormTolerance));
      CHECK(rank.steps[s].lr == Approx(trace[s]["lr"].get<double>()).epsilon(1e-12));
    }
  }
  compare(folder, "grads_step1.safetensors", ranks[0].first_gradients,
          [](const Distance& d) { CHECK(d.relative_l2 < kTensorTolerance); });
  compare(folder, "final.safetensors", ranks[0].weights, [](const Distance& d) {
    CHECK(d.relative_l2 < kTensorTolerance);
    CHECK(d.largest < kElementTolerance);
  });
}

// Losses of PyTorch's own bf16 run differ from the reference by up to 2e-3. Products of operands of
// 8 bits, which take widths that this Llama has not, have roundings 2^4 times as large.
TEST_CASE("training in half precision stays near the float64 trace, on any number of ranks",
          "[train][table]") {
  const std::string folder = GENERATE(from_range(golden_runs()));
  const int world_size = GENERATE(1, 2);
  const auto [types, tolerance] =
      GENERATE(table<Settings, double>({{{"train.precision=bf16"}, 2e-3},
                                        {{"train.precision=fp16"}, 2e-3},
                                        {{"train.precision=bf16", "train.matmul=fp8"}, 1e-2}}));
  if (types.size() == 2 && folder == "llama-tiny") return;
  CAPTURE(folder, world_size, types);
  const nlohmann::json trace = read_json(golden_path(folder, "trace.json"))["float64"];
  for (const Trained& rank : train_on_ranks(golden_config(folder, world_size, types), world_size)) {
    REQUIRE(rank.steps.size() == trace.size());
    for (size_t s = 0; s < trace.size(); ++s)
      CHECK(std::fabs(rank.steps[s].loss - trace[s]["loss"].get<double>()) < tolerance);
  }
}

}  // namespace
}  // namespace gxp
