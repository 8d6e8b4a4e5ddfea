#include "lib/colltest/bench_calls.h"

#include <fmt/format.h>

namespace gxp {
namespace {

JoinedDevice join_bench_device(Communicator& communicator, const BenchDevice& place) {
  if (place.folds == nullptr) return {};
  return communicator.join_device({place.device, *place.folds});
}

BenchMedium find_medium(const Communicator& communicator, const BenchDevice& place,
                        const Support& joined) {
  if (place.folds == nullptr) return {};
  BenchMedium medium{.collectives = CallsOn::kPinned, .messages = CallsOn::kPinned, .reason = {}};
  if (communicator.supports_memory(MemorySpace::kCuda)) medium.collectives = CallsOn::kDevice;
  if (medium.collectives == CallsOn::kPinned) medium.reason = joined.reason;
  if (communicator.supports_messages_in(MemorySpace::kCuda)) medium.messages = CallsOn::kDevice;
  return medium;
}

std::string name_of(CallsOn memory) {
  switch (memory) {
    case CallsOn::kHost:
      return "host memory";
    case CallsOn::kDevice:
      return "the GPUs' memory";
    case CallsOn::kPinned:
      return "pinned host memory";
  }
  return "";
}

}  // namespace

std::string BenchMedium::of_collectives() const {
  return name_of(collectives) + (reason.empty() ? "" : ": " + reason);
}

std::string BenchMedium::of_messages() const { return name_of(messages); }

BenchCalls::BenchCalls(Communicator& communicator, const BenchDevice& place, size_t most_bytes)
    : communicator_(communicator),
      device_(place.device),
      joined_(join_bench_device(communicator, place)),
      medium_(find_medium(communicator, place, joined_.support())) {
  if (medium_.collectives != CallsOn::kPinned && medium_.messages != CallsOn::kPinned) return;
  input_ = device_.allocate_host(most_bytes);
  output_ = device_.allocate_host(most_bytes);
}

template <class Work>
void BenchCalls::through_pinned(ConstMemory input, Memory output, const Work& work) {
  const Memory arrived = output_.memory().slice(0, output.bytes);
  const Memory leaving = input_.memory().slice(0, input.bytes);
  device_.copy(leaving, input);
  work(leaving, arrived);
  device_.copy(output, arrived);
}

void BenchCalls::run(const Call& call, ConstMemory input, Memory output) {
  const bool is_apart = input.space != MemorySpace::kHost || output.space != MemorySpace::kHost;
  if (!is_apart || medium_.collectives != CallsOn::kPinned)
    return communicator_.run(call, input, output);
  through_pinned(input, output, [&](ConstMemory leaving, Memory arriving) {
    communicator_.run(call, leaving, arriving);
  });
}

void BenchCalls::pass_on(ConstMemory input, Memory output) {
  if (communicator_.world_size() == 1) return device_.copy(output, input);
  if (medium_.messages != CallsOn::kPinned) return exchange(input, output);
  through_pinned(input, output,
                 [&](ConstMemory leaving, Memory arriving) { exchange(leaving, arriving); });
}

void BenchCalls::exchange(ConstMemory input, Memory output) {
  const int n = communicator_.world_size();
  const int rank = communicator_.rank();
  communicator_.sendrecv((rank + 1) % n, input, (rank + n - 1) % n, output);
}

}  // namespace gxp
