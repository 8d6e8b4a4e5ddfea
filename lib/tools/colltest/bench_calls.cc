#include "lib/tools/colltest/bench_calls.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "lib/collective/communicator.h"

namespace gxp {
namespace {

JoinedDevice join_bench_device(Communicator& communicator, const BenchDevice& place) {
  if (place.folds == nullptr) return {};
  return communicator.join_device({place.device, *place.folds});
}

BenchMedium find_medium(const Communicator& communicator, const BenchDevice& place,
                        const Support& joined) {
  if (place.folds == nullptr) return {};
  BenchMedium medium{.collectives = CallsOn::kDevice, .messages = CallsOn::kDevice};
  if (!communicator.supports_memory(MemorySpace::kCuda)) {
    medium.collectives = CallsOn::kPinned;
    medium.collectives_reason = joined.reason;
  }
  if (!communicator.supports_p2p_memory(MemorySpace::kCuda)) {
    medium.messages = CallsOn::kPinned;
    medium.messages_reason = fmt::format("engine '{}' over transport {} sends host memory only",
                                         communicator.engine_name(), communicator.transport_name());
  }
  return medium;
}

std::string describe_medium(CallsOn memory, const std::string& reason) {
  constexpr std::array<std::string_view, 3> kNames = {"host memory", "the GPUs' memory",
                                                      "pinned host memory"};
  const std::string name(kNames[size_t(memory)]);
  return reason.empty() ? name : name + ": " + reason;
}

Memory grow_pinned(Buffer& pinned, size_t bytes, Device& device) {
  if (pinned.memory().bytes < bytes) {
    pinned = {};  // not both at a time
    pinned = device.allocate_host(bytes);
  }
  return pinned.memory().slice(0, bytes);
}

}  // namespace

std::string BenchMedium::of_collectives() const {
  return describe_medium(collectives, collectives_reason);
}

std::string BenchMedium::of_messages() const { return describe_medium(messages, messages_reason); }

BenchCalls::BenchCalls(Communicator& communicator, const BenchDevice& place)
    : communicator_(communicator),
      device_(place.device),
      joined_(join_bench_device(communicator, place)),
      medium_(find_medium(communicator, place, joined_.support())) {}

template <class Work>
void BenchCalls::through_pinned(ConstMemory input, Memory output, const Work& work) {
  const Memory arrived = grow_pinned(output_, output.bytes, device_);
  const Memory leaving = grow_pinned(input_, input.bytes, device_);
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
