#include "lib/collective/engine/pairwise.h"

namespace gxp {

PairwiseExchange pairwise_exchange(const Call& call, int rank, int world_size, ConstMemory input,
                                   Memory output) {
  const Chunks chunks(call.count, world_size);
  const Extents extents = extents_of(call, rank, world_size);
  const size_t element_bytes = size_of(call.dtype);
  const auto part = [&](auto memory, Range of, Range chunk) {
    return memory.slice((chunk.begin - of.begin) * element_bytes, chunk.count * element_bytes);
  };
  const auto leaving = [&](int peer) -> ConstMemory {
    const bool spreads = call.collective == Collective::kScatter;
    if (spreads && rank != call.root) return {};
    if (call.collective == Collective::kGather && peer != call.root) return {};
    const bool for_peer = spreads || call.collective == Collective::kAllToAll;
    return part(input, extents.input, chunks[for_peer ? peer : rank]);
  };
  const auto arriving = [&](int peer) -> Memory {
    const bool spreads = call.collective == Collective::kScatter;
    if (spreads && peer != call.root) return {};
    if (call.collective == Collective::kGather && rank != call.root) return {};
    return part(output, extents.output, chunks[spreads ? rank : peer]);
  };
  PairwiseExchange exchange{.messages = {}, .own_from = leaving(rank), .own_to = arriving(rank)};
  for (int step = 1; step < world_size; ++step) {
    const int to = (rank + step) % world_size;
    const int from = (rank + world_size - step) % world_size;
    const ConstMemory sent = leaving(to);
    const Memory received = arriving(from);
    if (sent.bytes > 0)
      exchange.messages.push_back(
          {true, to, {const_cast<std::byte*>(sent.data), sent.bytes, sent.space}});
    if (received.bytes > 0) exchange.messages.push_back({false, from, received});
  }
  return exchange;
}

}  // namespace gxp
