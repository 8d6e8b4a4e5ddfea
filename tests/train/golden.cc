#include "tests/train/golden.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "lib/config/load.h"
#include "lib/train/training_state.h"
#include "tests/train/golden_model.h"

namespace gxp {

std::vector<std::string> tiny_runs() { return {"gpt2-tiny", "llama-tiny"}; }
std::vector<std::string> golden_runs() {
  std::vector<std::string> runs = tiny_runs();
  runs.emplace_back("gpt2-accum");
  return runs;
}

std::string golden_path(const std::string& name, const std::string& file) {
  return std::string(GXP_TEST_DATA) + "/train/" + name + "/" + file;
}

RunConfig golden_config(const std::string& name, int world_size, std::vector<std::string> sets) {
  const nlohmann::json spec = read_json(golden_path(name, "spec.json"));
  const auto& data = spec["data"];
  const auto& optim = spec["optimizer"];
  const auto set = [&](const std::string& key, const nlohmann::json& value) {
    sets.insert(
        sets.begin(),
        fmt::format("{}={}", key, value.is_string() ? value.get<std::string>() : value.dump()));
  };
  for (const auto& [key, value] : golden_model(spec)) set("model." + key, value);
  set("model.init", golden_path(name, "init.safetensors"));
  set("data.train", golden_path(name, "tokens.i32"));
  set("data.sequence", data["seq"]);
  set("data.order", "sequential");
  set("train.steps", data["steps"]);
  set("train.grad_accum", data["accum"]);
  set("train.micro_batch", data["batch"].get<int>() / world_size);
  set("train.threads", 1);
  set("train.device", "cpu");
  set("optim.lr", optim["lr"]);
  set("optim.weight_decay", optim["weight_decay"]);
  set("optim.clip", optim["grad_clip"]);
  set("lr_schedule.name", optim["schedule"]);
  set("lr_schedule.warmup_steps", optim["warmup_steps"]);
  set("lr_schedule.total_steps", optim["total_steps"].get<int>() - 1);  // see README.md
  set("lr_schedule.min_lr", optim["min_lr"]);
  return load_config("", sets).run;
}

Values values_of(const Tensor& tensor) {
  Values values(tensor.count());
  ThreadPool pool(1);
  make_cpu_ops(pool)->convert({memory_of(values), DType::kF32, Shape{values.size()}}, tensor);
  return values;
}

namespace {

// `held`: by tensor that the rank holds.
std::vector<Values> whole_tensors(Trainer& trainer, Communicator& communicator,
                                  const std::vector<Values>& held) {
  std::vector<Values> whole;
  for (const UnitSpec& unit : trainer.architecture().units) {
    for (const TensorSpec& spec : unit.tensors) {
      Values& values = whole.emplace_back(spec.count());
      const std::vector<HeldTensor> tensors = trainer.state().weights();
      for (size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].spec->name != spec.name) continue;
        std::ranges::copy(held[i], values.begin() + std::ptrdiff_t(tensors[i].elements.begin));
      }
      // The largest of zeros and bytes are these bytes; NCCL has no bitwise or.
      if (trainer.is_sharded())
        communicator.all_reduce(memory_of(values), DType::kU8, ReduceOp::kMax);
    }
  }
  return whole;
}

}  // namespace

std::vector<Values> weights_of(Trainer& trainer, Communicator& communicator) {
  std::vector<Values> held;
  for (const HeldTensor& tensor : trainer.state().weights()) {
    Values& values = held.emplace_back(tensor.elements.count);
    trainer.state().read(tensor, 0, memory_of(values));
  }
  return whole_tensors(trainer, communicator, held);
}

std::vector<Values> gradients_of(Trainer& trainer, Communicator& communicator) {
  const ShardedMemory& memory = trainer.memory();
  std::vector<Values> held;
  for (const TensorPart& part : memory.own_parts) {
    const bool frozen = memory.spec_of(part).frozen;
    held.push_back(frozen ? Values() : values_of(memory.gradients().part(part)));
  }
  return whole_tensors(trainer, communicator, held);
}

bool same_bits(const std::vector<Values>& a, const std::vector<Values>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Values& x, const Values& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  });
}

double relative_distance(const std::vector<Values>& x, const std::vector<Values>& y) {
  double difference = 0, norm = 0;
  for (size_t t = 0; t < y.size(); ++t) {
    for (size_t i = 0; i < y[t].size(); ++i) {
      difference += std::pow(double(x[t][i]) - y[t][i], 2);
      norm += std::pow(double(y[t][i]), 2);
    }
  }
  return std::sqrt(difference / norm);
}

void check_same(const Trained& found, const Trained& expected) {
  REQUIRE(found.steps.size() == expected.steps.size());
  for (size_t s = 0; s < expected.steps.size(); ++s) {
    CHECK(found.steps[s].loss == expected.steps[s].loss);
    CHECK(found.steps[s].grad_norm == expected.steps[s].grad_norm);
  }
  CHECK(same_bits(found.weights, expected.weights));
}

Trained train(const RunConfig& config, Communicator& communicator, Backend backend) {
  return train(config, communicator, std::move(backend), open_data(config));
}

Trained train(const RunConfig& config, Communicator& communicator, Backend backend, RunData data) {
  Trainer trainer(config, communicator, backend, std::move(data));
  trainer.initialise_weights();
  if (config.train.cuda_graphs == CudaGraphs::kOn) trainer.record_graphs(WithoutRecording::kFail);
  Trained trained;
  while (trainer.steps_done() < config.train.steps) {
    trained.steps.push_back(trainer.step(false));
    if (trainer.steps_done() == 1 && backend.device->space() == MemorySpace::kHost)
      trained.first_gradients = gradients_of(trainer, communicator);
  }
  trained.weights = weights_of(trainer, communicator);
  return trained;
}

Trained train(const RunConfig& config, Communicator& communicator) {
  return train(config, communicator, make_backend(config.train, communicator.world_size()));
}

Trained train_part(const RunConfig& config, Communicator& communicator, int until,
                   Backend backend) {
  Trainer trainer(config, communicator, backend);
  if (!resume_state(trainer, communicator, config, {})) trainer.initialise_weights();
  Trained trained;
  while (trainer.steps_done() < until) trained.steps.push_back(trainer.step(false));
  save_state(trainer, communicator, config, {});
  trained.weights = weights_of(trainer, communicator);
  return trained;
}

Trained train_part(const RunConfig& config, Communicator& communicator, int until) {
  return train_part(config, communicator, until,
                    make_backend(config.train, communicator.world_size()));
}

std::vector<Trained> train_on_ranks(const RunConfig& config, int world_size) {
  return run_ranks(world_size,
                   [&](Communicator& communicator) { return train(config, communicator); });
}

const Trained& trained_once(const std::string& folder, int world_size, const Settings& sets,
                            int divided_by) {
  static std::map<std::tuple<std::string, int, Settings, int>, Trained> known;
  const std::tuple key(folder, world_size, sets, divided_by);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const RunConfig config = golden_config(folder, divided_by, sets);
  return known.emplace(key, train_on_ranks(config, world_size)[0]).first->second;
}

}  // namespace gxp
