#include "lib/collective/gather_texts.h"

#include <algorithm>

#include "lib/base/error.h"

namespace gxp {

std::vector<size_t> text_offsets(std::span<const int64_t> sizes) {
  std::vector<size_t> offsets = {0};
  for (size_t rank = 0; rank < sizes.size(); ++rank) {
    const uint64_t room = kMaxGatheredBytes - offsets.back();
    if (sizes[rank] < 0 || uint64_t(sizes[rank]) > room)
      fail(ErrorKind::kPeer,
           "gather the ranks' texts: rank {} announces {} bytes, where at most {} may follow", rank,
           sizes[rank], room);
    offsets.push_back(offsets.back() + size_t(sizes[rank]));
  }
  return offsets;
}

std::vector<std::string> gather_texts(Communicator& communicator, std::string_view mine) {
  const auto rank = size_t(communicator.rank());
  std::vector<int64_t> sizes(size_t(communicator.world_size()));
  sizes[rank] = int64_t(mine.size());
  communicator.all_gather(memory_of(sizes), DType::kI64);
  sizes[rank] = int64_t(mine.size());  // whatever arrived: this is where `mine` is copied to
  const std::vector<size_t> offsets = text_offsets(sizes);
  // A sum with zeros: in an all-gather each text would take as much as the longest.
  std::string all(offsets.back(), '\0');
  std::ranges::copy(mine, all.begin() + std::ptrdiff_t(offsets[rank]));
  communicator.all_reduce(memory_of(all), DType::kU8, ReduceOp::kSum);
  std::vector<std::string> texts;
  for (size_t i = 0; i < sizes.size(); ++i)
    texts.push_back(all.substr(offsets[i], size_t(sizes[i])));
  return texts;
}

}  // namespace gxp
