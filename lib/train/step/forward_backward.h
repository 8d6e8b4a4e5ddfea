// The forward and backward passes of a step's micro-batches, and the step's loss.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/config/run_config.h"
#include "lib/data/batch_loader.h"
#include "lib/device/mirror.h"
#include "lib/model/model.h"
#include "lib/train/step/backend.h"
#include "lib/train/step/step_result.h"
#include "lib/zero/sharded_memory.h"

namespace gxp {

// Carries out the operations of the part kForwardBackward (op_kinds.inc).
//   Errors   kIo, kCorrupt: the data; or no target of a step counts.
class ForwardBackward {
 public:
  // All arguments outlive it. `data` are read from position 0.
  ForwardBackward(const RunConfig& config, Backend& backend, ShardedMemory& sharded,
                  RunningStep& step, const Dataset& data);

  // The next step reads the data from position `samples` of their order.
  void continue_from(uint64_t samples) { loader_.start(samples); }

  std::function<void()> bind(const Op& op);

 private:
  void next_batch(int micro, const BatchTensors& batch);
  void loss(int micro, const UnitTensors& tensors);
  [[nodiscard]] Tensor losses_of(int micro) const;
  void send_loss();

  Ops& host_ops_;
  ShardedMemory& sharded_;
  RunningStep& step_;
  const uint64_t dropout_seed_;
  std::vector<uint64_t> first_tokens_;  // by micro-batch: number in the run (AdapterDropout)
  const std::unique_ptr<Model> model_;
  BatchLoader loader_;
  const Mirror loss_sum_;    // of the program's buffer
  const Buffer all_losses_;  // of the step's micro-batches, on the host
};

}  // namespace gxp
