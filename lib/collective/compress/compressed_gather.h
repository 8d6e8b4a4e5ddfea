// An all-gather whose parts travel between hosts in a codec (codec.h): the quantised gather of
// weights, qwZ, of ZeRO++ (Wang et al., arXiv:2306.10209), in two levels.
//
//   Between hosts      among the ranks of the same place: each encodes its part, an all-gather takes
//                      it to the others, and each decodes all of them, its own too.
//   Within each host   all-gathers of decoded parts; nothing is encoded.
// The gathered buffer has the same bits on every rank; the ranks' own parts stay as they are.
//   Error       the codec's bound, of each block of a part: parts begin with a block.
//   Cost        encoded bytes of a part * (h - 1) leave each rank of h hosts.
//   Bits        depend on the parts and the codec alone. On one host nothing is encoded.
//   Not finite  as in kernels/quantize.h, on every rank.
//   Threads     one at a time, as the communicators.
//   Errors      those of the communicators.
#pragma once

#include "lib/base/dtype.h"
#include "lib/collective/compress/codec.h"
#include "lib/collective/compress/host_groups.h"

namespace gxp {

class CompressedGather {
 public:
  // Of `count` elements of all ranks together, a multiple of their number, of f32, f16 or bf16.
  // kUnavailable for other types, and for ranks that are not numbered host by host. `codec` and
  // `groups` outlive the object; objects may share them. All ranks pass the same.
  CompressedGather(const Codec& codec, size_t count, DType dtype, HostGroups& groups);

  [[nodiscard]] size_t slots_bytes() const;
  // `part`, this rank's, and `whole` do not overlap. All memory is the host's; objects whose calls
  // do not overlap may share the slots, which have slots_bytes().
  void run(Memory whole, ConstMemory part, Memory slots) const;

 private:
  const Codec& codec_;
  size_t count_;
  DType dtype_;
  HostGroups& groups_;
  HostPlace place_;
};

}  // namespace gxp
