// What the codec of a run has not sent yet of the gradients (comm.codec), from its checkpoint: for
// each trained tensor one copy per host. A run on as many hosts gets each host's own back; on
// another number of hosts the first one gets their sum, so that nothing is lost or added. A
// checkpoint without it has nothing pending.
#pragma once

#include <string>
#include <vector>

#include "lib/ckpt/native/checkpoint.h"
#include "lib/train/replica/shared_reading.h"
#include "lib/zero/held_state.h"

namespace gxp {

// kConfig if the checkpoint holds pending gradients and the run cannot add them to a sum.
void check_pending(const Checkpoint& checkpoint, const std::string& codec, bool adds_them);

class PendingGradients {
 public:
  // Sets what the rank holds to zero. Both outlive it. kConfig: another shape or type.
  PendingGradients(const Checkpoint& checkpoint, HeldState& state);

  // What this rank reads, for read_shared(): more than it holds, since a tensor's parts that a rank
  // holds are apart and this is one range.
  [[nodiscard]] const std::vector<NeededPart>& needed() const { return needed_; }
  // Elements of needed()[part], from number `first` of it on.
  void take(size_t part, size_t first, ConstMemory elements);

 private:
  void need(const Checkpoint& checkpoint, std::vector<HeldTensor> parts);
  void put(const HeldTensor& tensor, size_t first, ConstMemory values);

  HeldState& state_;
  std::string act_;  // for errors
  std::vector<NeededPart> needed_;
  std::vector<std::vector<HeldTensor>> held_;  // of the tensor of needed()[part]
  std::vector<int> hosts_;                     // copies of it in the checkpoint
};

}  // namespace gxp
