// An optimizer with memory of its own, driven over made-up gradients.
#pragma once

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "lib/arch/optimizers.h"
#include "lib/config/load.h"
#include "lib/optim/optimizer.h"

namespace gxp {

using Floats = std::vector<float>;

// With the defaults of the optimizer's name, as a run has them.
inline OptimConfig optim_config(std::vector<std::string> sets) {
  sets.emplace_back("data.train=none");
  return load_config("", sets).run.optim;
}

// The settings of a row of tests/data/optim/torch_optimizers.json.
inline std::vector<std::string> sets_of(const nlohmann::json& row) {
  std::vector<std::string> sets = {"optim.name=" + row["name"].get<std::string>()};
  for (const auto& [key, value] : row["settings"].items())
    sets.push_back("optim." + key + "=" + value.dump());
  return sets;
}

inline double weight_at_start(size_t i) { return std::sin(double(i)); }
inline double gradient_of_step(size_t i, int step) {
  return std::sin(0.7 * double(i) + double(step)) / 4;
}

// The optimizers that see some tensors whole, or that see none so, by the table.
inline std::vector<std::string> optimizers_that(bool see_whole) {
  std::vector<std::string> names;
  for (const OptimizerRow& row : optimizers()) {
    if ((row.spec({}).needs_unsharded != nullptr) == see_whole) names.emplace_back(row.name);
  }
  return names;
}

class Trial {
 public:
  Trial(const OptimConfig& config, size_t count)
      : pool_(2),
        ops_(make_cpu_ops(pool_)),
        optimizer_(make_optimizer({*device_, *stream_, *ops_}, config)),
        lr_(config.lr),
        weights_(count),
        gradients_(count),
        kept_(make_optimizer_spec(config).kept.size(), Floats(count)) {
    for (size_t i = 0; i < count; ++i) weights_[i] = float(weight_at_start(i));
  }

  // One step, in two ranges that meet at `border`.
  void step(int number, bool decay = true, size_t border = 0, double gradient_scale = 1) {
    const size_t count = weights_.size();
    for (size_t i = 0; i < count; ++i) gradients_[i] = float(gradient_of_step(i, number));
    const UpdateStep step{number, lr_, gradient_scale};
    optimizer_.ranges->update(
        std::array{range(0, border, decay), range(border, count - border, decay)}, step);
  }

  [[nodiscard]] const Floats& weights() const { return weights_; }
  [[nodiscard]] const std::vector<Floats>& kept() const { return kept_; }

 private:
  static Tensor part(Floats& floats, size_t begin, size_t count) {
    return {memory_of(floats).slice(begin * sizeof(float), count * sizeof(float)), DType::kF32,
            Shape{count}};
  }
  UpdateRange range(size_t begin, size_t count, bool decay) {
    UpdateRange range{part(weights_, begin, count), {}, part(gradients_, begin, count), decay};
    for (Floats& kept : kept_) range.kept.push_back(part(kept, begin, count));
    return range;
  }

  ThreadPool pool_;
  std::unique_ptr<Device> device_ = make_cpu_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("compute");
  std::unique_ptr<Ops> ops_;
  Optimizer optimizer_;
  double lr_;
  Floats weights_, gradients_;
  std::vector<Floats> kept_;
};

}  // namespace gxp
