#include "lib/collective/compress/compressed_gather.h"

#include "lib/base/error.h"
#include "lib/collective/compress/encoded_elements.h"

namespace gxp {
namespace {

CompressedShape shape_of_gather(size_t count) { return {Collective::kAllGather, count, 0}; }

}  // namespace

CompressedGather::CompressedGather(const Codec& codec, size_t count, DType dtype,
                                   HostGroups& groups)
    : codec_(codec), count_(count), dtype_(dtype), groups_(groups), place_(groups.place()) {
  GXP_ASSERT(count % place_.ranks() == 0);
  check_codec_takes(codec, dtype);
  check_numbered_by_host(groups, "an all-gather");
}

size_t CompressedGather::slots_bytes() const {
  return gxp::slots_bytes(codec_, shape_of_gather(count_), place_);
}

void CompressedGather::run(Memory whole, ConstMemory part, Memory slots) const {
  GXP_ASSERT(whole.bytes == count_ * size_of(dtype_) && part.bytes * place_.ranks() == whole.bytes);
  if (place_.hosts == 1)
    return groups_.all->run(
        {.collective = Collective::kAllGather, .dtype = dtype_, .count = count_}, part, whole);
  const size_t slot_bytes = codec_.wire_bytes(count_ / place_.ranks());
  const Memory encoded = slots.slice(0, slot_bytes * size_t(place_.hosts));
  const auto slot = [&](int host) { return encoded.data + size_t(host) * slot_bytes; };
  encode_elements(codec_, slot(place_.host), part, dtype_);
  groups_.inter_host->all_gather(encoded, DType::kU8);
  const auto memory_of_range = [&](const Range& range) {
    return whole.slice(range.begin * size_of(dtype_), range.count * size_of(dtype_));
  };
  for (const HostPiece& piece : cut_for_hosts(shape_of_gather(count_), place_)) {
    for (int host = 0; host < place_.hosts; ++host)
      decode_elements(codec_, memory_of_range(piece.parts[size_t(host)]), dtype_, slot(host));
    for (const Range& of_host : piece.within_host)
      groups_.intra_host->all_gather(memory_of_range(of_host), dtype_);
  }
}

}  // namespace gxp
