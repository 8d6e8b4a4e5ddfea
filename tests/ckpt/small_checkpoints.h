// Checkpoints of one small tensor.
#pragma once

#include "lib/ckpt/format.h"
#include "lib/ckpt/native/writer.h"
#include "tests/ckpt/samples.h"

namespace gxp {

inline const TensorInfo kTensor{"w", Role::kWeight, StorageDType::kF32, {12}};

inline CheckpointInfo step_info(uint64_t step, int world_size) {
  CheckpointInfo info;
  info.step = step;
  info.world_size = world_size;
  return info;
}

// One rank's equal share of kTensor.
inline FilePart write_one_part(const std::string& dir, const WriterRank& rank) {
  const std::vector<float> values(kTensor.count() / uint64_t(rank.world_size));
  CheckpointWriter writer(dir, rank);
  writer.add(kTensor, uint64_t(rank.rank) * values.size(), memory_of(values));
  return writer.finish();
}

inline std::string save_step(const std::string& dir, uint64_t step, int world_size = 1,
                             const Retention& retention = {}) {
  std::vector<FilePart> parts;
  for (int rank = 0; rank < world_size; ++rank)
    parts.push_back(write_one_part(dir, {step, rank, world_size}));
  return publish_checkpoint(dir, parts, step_info(step, world_size), retention);
}

inline void write_small(const std::string& format, const std::string& to, bool replace) {
  const NamedTensors tensors{.tensors = {counting_tensor("w", {3})}};
  write_checkpoint(tensors, find_format(format), to, {.replace = replace});
}

}  // namespace gxp
