#include "lib/optim/orthogonalise.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "lib/base/range.h"
#include "tests/catch.h"
#include "tests/optim/optimizers.h"

namespace gxp {
namespace {

using Sizes = std::vector<size_t>;

Shape shape_of(const Sizes& sizes) {
  return sizes.size() == 1 ? Shape{sizes[0]} : Shape{sizes[0], sizes[1]};
}

// One tensor of a block, updated as a whole, whose parts are prepared and applied apart.
class WholeTrial {
 public:
  WholeTrial(const OptimConfig& config, const Sizes& sizes, int threads = 2)
      : pool_(threads),
        ops_(make_cpu_ops(pool_)),
        optimizer_(make_optimizer({*device_, *stream_, *ops_}, config)),
        spec_(make_optimizer_spec(config)),
        tensor_{"h.0.weight", sizes},
        lr_(config.lr),
        weights_(tensor_.count()),
        gradients_(tensor_.count()),
        direction_(tensor_.count()),
        workspace_(spec_.workspace_bytes(tensor_) / sizeof(float)) {
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] = float(weight_at_start(i));
    for (const KeptState& state : spec_.kept) {
      const TensorSpec kept{"", state.shape(UnitSpec{"h.0"}, tensor_)};
      kept_.emplace_back(kept.shape.empty() ? 0 : kept.count());
    }
  }

  void step(int number, size_t border = 0, double gradient_scale = 1) {
    const size_t count = weights_.size();
    for (size_t i = 0; i < count; ++i) gradients_[i] = float(gradient_of_step(i, number));
    const UpdateStep step{number, lr_, gradient_scale};
    const std::vector<Range> ranges = {{0, border}, {border, count - border}};
    for (const Range& range : ranges)
      optimizer_.whole->prepare(part(direction_, range), update(gradients_, range), step);
    WholeTensor whole{{memory_of(direction_), DType::kF32, shape_of(tensor_.shape)},
                      {},
                      memory_of(workspace_),
                      1.0};
    if (tensor_.shape.size() == 2)
      whole.outputs_per_input = double(tensor_.shape[0]) / double(tensor_.shape[1]);
    for (size_t s = 0; s < kept_.size(); ++s)
      whole.kept.push_back(spec_.kept[s].everywhere ? part(kept_[s], {0, kept_[s].size()})
                                                    : Tensor());
    optimizer_.whole->transform(whole, step);
    for (const Range& range : ranges) optimizer_.whole->apply(update(direction_, range), step);
  }

  [[nodiscard]] const Floats& weights() const { return weights_; }

 private:
  static Tensor part(Floats& floats, const Range& range) {
    return {memory_of(floats).slice(range.begin * sizeof(float), range.count * sizeof(float)),
            DType::kF32, Shape{range.count}};
  }
  UpdateRange update(Floats& gradients, const Range& range) {
    UpdateRange update{part(weights_, range), {}, part(gradients, range), true};
    for (size_t s = 0; s < kept_.size(); ++s) {
      const bool has_part = !spec_.kept[s].everywhere && !kept_[s].empty();
      update.kept.push_back(has_part ? part(kept_[s], range) : Tensor());
    }
    return update;
  }

  ThreadPool pool_;
  std::unique_ptr<Device> device_ = make_cpu_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("compute");
  std::unique_ptr<Ops> ops_;
  Optimizer optimizer_;
  OptimizerSpec spec_;
  TensorSpec tensor_;
  double lr_;
  Floats weights_, gradients_, direction_, workspace_;
  std::vector<Floats> kept_;
};

TEST_CASE("whole tensors are updated as PyTorch's optimizers do", "[optim]") {
  const auto rows = nlohmann::json::parse(
      std::ifstream(std::string(GXP_TEST_DATA) + "/optim/torch_optimizers.json"));
  int compared = 0;
  for (const auto& row : rows) {
    if (!row.contains("shape")) continue;
    const auto sizes = row["shape"].get<Sizes>();
    const std::vector<std::string> sets = sets_of(row);
    CAPTURE(sets, sizes);
    const auto expected = row["weights"].get<std::vector<double>>();
    WholeTrial trial(optim_config(sets), sizes);
    for (int t = 1; t <= row["steps"].get<int>(); ++t) trial.step(t);
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK(trial.weights()[i] == Approx(expected[i]).epsilon(2e-5).margin(2e-5));
    ++compared;
  }
  CHECK(compared == 10);
}

TEST_CASE("neither cuts nor threads change the bits of a whole tensor's update", "[optim]") {
  const std::string name = GENERATE(from_range(optimizers_that(true)));
  const OptimConfig config = optim_config({"optim.name=" + name});
  WholeTrial whole(config, {40, 70}, 1);
  WholeTrial cut(config, {40, 70}, 3);
  for (int t = 1; t <= 3; ++t) {
    whole.step(t, 0, 0.5);
    cut.step(t, 333, 0.5);
  }
  CHECK(whole.weights() == cut.weights());
}

TEST_CASE("an orthogonalised matrix has singular values near 1", "[optim]") {
  const auto [rows, columns] =
      GENERATE(table<size_t, size_t>({{1, 1}, {8, 8}, {16, 48}, {48, 16}, {1, 20}}));
  CAPTURE(rows, columns);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Floats x(rows * columns);
  for (float& value : x) value = 1e-3f * normal(random);
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  Floats workspace(2 * std::min(rows, columns) * std::min(rows, columns) + x.size());
  orthogonalise(*ops, {memory_of(x), DType::kF32, Shape{rows, columns}}, memory_of(workspace), 9);
  double squares = 0;  // of all singular values
  for (const float value : x) squares += double(value) * value;
  const double count = double(std::min(rows, columns));
  CHECK(squares / count > 0.65 * 0.65);
  CHECK(squares / count < 1.2 * 1.2);
}

TEST_CASE("a tensor without gradients stays as it is, but for its decay", "[optim]") {
  const std::string name = GENERATE(from_range(optimizers_that(true)));
  WholeTrial trial(optim_config({"optim.name=" + name, "optim.weight_decay=0"}), {4, 6});
  const Floats before = trial.weights();
  trial.step(1, 0, 0.0);
  CHECK(trial.weights() == before);
}

}  // namespace
}  // namespace gxp
