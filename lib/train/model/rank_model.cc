#include "lib/train/model/rank_model.h"

#include <algorithm>
#include <vector>

#include "lib/collective/communicator.h"
#include "lib/model/initialise.h"
#include "lib/train/model/weights_file.h"

namespace gxp {
namespace {

// Gradients on a GPU and in the host's memory do not meet in one call.
void require_one_kind(const Device& mine, Communicator& communicator) {
  std::vector<uint8_t> on_gpu(size_t(communicator.world_size()));
  on_gpu[size_t(communicator.rank())] = mine.space() != MemorySpace::kHost;
  communicator.all_gather(memory_of(on_gpu), DType::kU8);
  const auto other = std::ranges::find(on_gpu, 1 - on_gpu[0]);
  if (other == on_gpu.end()) return;
  const auto name = [](uint8_t is_gpu) { return is_gpu != 0 ? "a GPU" : "the CPU"; };
  fail(ErrorKind::kConfig,
       "start training: rank 0 computes on {}, rank {} on {}: let every rank see a GPU, or set "
       "train.device to \"cpu\"",
       name(on_gpu[0]), other - on_gpu.begin(), name(*other));
}

JoinedDevice join_device_of(Backend& backend, Communicator& communicator) {
  require_one_kind(*backend.device, communicator);
  if (backend.folds == nullptr) return {};
  return communicator.join_device({*backend.device, *backend.folds});
}

}  // namespace

RankModel::RankModel(const RunConfig& run, const RunPlan& run_plan, Communicator& communicator,
                     Backend& rank_backend)
    : config(run),
      backend(rank_backend),
      plan(run_plan),
      joined(join_device_of(backend, communicator)),
      watch(*backend.lanes, [&communicator] { communicator.check(); }),
      sharded(plan, communicator, *backend.lanes, config.offload),
      parameters(sharded, *backend.ops, backend.on_host(), config.train),
      state(sharded, parameters) {}

void RankModel::initialise_weights() {
  const InitialisationKey key{config.train.seed, config.model.layers};
  const FillTensor random = [&](const HeldTensor& tensor, const Tensor& weight) {
    initialise(weight, tensor.elements.begin, *tensor.spec, key, *backend.pool);
  };
  const FillTensor model = config.model.init == "normal"
                               ? random
                               : weights_from(config.model.init, config.model, sharded.rank == 0);
  const FillTensor adapters =
      config.lora.init.empty() ? random : adapters_from(config.lora.init, plan.architecture);
  state.fill_weights([&](const HeldTensor& tensor, const Tensor& weight) {
    (tensor.spec->adapter ? adapters : model)(tensor, weight);
  });
}

}  // namespace gxp
