#include "lib/collective/engine/gather.h"

#include <algorithm>

#include "lib/base/error.h"

namespace gxp {

std::vector<size_t> text_offsets(std::span<const int64_t> sizes) {
  std::vector<size_t> offsets = {0};
  for (size_t rank = 0; rank < sizes.size(); ++rank) {
    const uint64_t room = kMaxGatheredBytes - offsets.back();
    if (sizes[rank] < 0 || uint64_t(sizes[rank]) > room)
      fail(ErrorKind::kPeer, "gather the ranks' texts: rank {} announces {} bytes; the limit is {}",
           rank, sizes[rank], room);
    offsets.push_back(offsets.back() + size_t(sizes[rank]));
  }
  return offsets;
}

std::vector<std::string> gather_texts(int rank, int world_size, std::string_view mine,
                                      const RunCall& run) {
  std::vector<int64_t> sizes = gather_values(rank, world_size, int64_t(mine.size()), run);
  sizes[size_t(rank)] = int64_t(mine.size());  // whatever arrived: here `mine` is copied to
  const std::vector<size_t> offsets = text_offsets(sizes);
  // A sum with zeros: in an all-gather each text would take as much as the longest.
  std::string all(offsets.back(), '\0');
  std::ranges::copy(mine, all.begin() + std::ptrdiff_t(offsets[size_t(rank)]));
  const Memory memory = memory_of(all);
  run({.collective = Collective::kAllReduce, .dtype = DType::kU8, .count = all.size()}, memory,
      memory);
  std::vector<std::string> texts;
  for (size_t i = 0; i < sizes.size(); ++i)
    texts.push_back(all.substr(offsets[i], size_t(sizes[i])));
  return texts;
}

std::vector<int> ranks_of_color(int color, std::span<const SplitRequest> requests) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < requests.size(); ++rank)
    if (requests[rank].color == color) ranks.push_back(int(rank));
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return requests[size_t(rank)].key; });
  return ranks;
}

}  // namespace gxp
