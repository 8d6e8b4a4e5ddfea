#include "lib/collective/algorithm/call.h"

#include <fmt/format.h>

#include <array>

#include "lib/base/hash.h"

namespace gxp {
namespace {

constexpr int kGroupShift = 56;
constexpr int kSequenceShift = 32;
constexpr Tag kMessageBit = Tag{1} << 63;

Tag tag_with(int group, uint32_t sequence, uint32_t hash) {
  return Tag(group) << kGroupShift | Tag{sequence & 0xffffffu} << kSequenceShift | hash;
}

}  // namespace

std::string to_string(const Call& call) {
  std::string name = fmt::format("{} {}", to_string(call.collective), call.sequence);
  if (call.collective == Collective::kBarrier) return name;
  std::string what = fmt::format("{} ({} {}", name, call.count, to_string(call.dtype));
  if (reduces(call.collective)) what += fmt::format(", {}", to_string(call.op));
  if (has_root(call.collective)) {
    const bool away =
        call.collective == Collective::kBroadcast || call.collective == Collective::kScatter;
    what += fmt::format(" {} rank {}", away ? "from" : "to", call.root);
  }
  return what + ")";
}

Extents extents_of(const Call& call, int rank, int world_size) {
  const Range all{0, call.count};
  const Range none{};
  const bool root = rank == call.root;
  const auto chunk = [&] { return Chunks(call.count, world_size)[rank]; };
  switch (call.collective) {
    case Collective::kAllReduce:
    case Collective::kAllToAll:
      return {all, all};
    case Collective::kReduceScatter:
      return {all, chunk()};
    case Collective::kAllGather:
      return {chunk(), all};
    case Collective::kBroadcast:
      return {root ? all : none, all};
    case Collective::kReduce:
      return {all, root ? all : none};
    case Collective::kGather:
      return {chunk(), root ? all : none};
    case Collective::kScatter:
      return {root ? all : none, chunk()};
    case Collective::kBarrier:
      return {};
  }
  return {};
}

Call trial_call(Collective collective, size_t bytes, int world_size) {
  const auto ranks = size_t(world_size);
  const size_t count = std::max<size_t>(1, bytes / sizeof(float) / ranks) * ranks;
  return {.collective = collective,
          .dtype = DType::kF32,
          .count = collective == Collective::kBarrier ? 0 : count};
}

Tag tag_of(const Call& call, const Algorithm& algorithm, int channels, size_t segment_bytes,
           int group) {
  const std::array<uint64_t, 8> agreed = {uint64_t(call.collective),
                                          uint64_t(call.dtype),
                                          uint64_t(call.op),
                                          call.count,
                                          uint64_t(call.root),
                                          uint64_t(channels),
                                          segment_bytes,
                                          hash64(std::as_bytes(std::span(algorithm.name)))};
  const uint64_t hash = hash64(std::as_bytes(std::span(agreed)));
  return tag_with(group, call.sequence, uint32_t(hash));
}

Tag message_tag(uint32_t number, int group) { return kMessageBit | tag_with(group, number, 0); }

bool same_call_number(Tag a, Tag b) {
  return (a & kMessageBit) == 0 && a >> kSequenceShift == b >> kSequenceShift;
}

}  // namespace gxp
