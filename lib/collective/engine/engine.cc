#include "lib/collective/engine/engine.h"

#include <fmt/format.h>

#include "lib/base/error.h"

namespace gxp {

Support Engine::join_device(const FoldingDevice& device, uint32_t /*sequence*/,
                            Deadline /*deadline*/) {
  if (supports_memory(device.device.space())) return {};
  return {false, fmt::format("engine '{}' works on host memory", name())};
}

std::unique_ptr<QueuedCall> Engine::enqueue(const Call& call, ConstMemory /*input*/,
                                            Memory /*output*/, Stream& /*stream*/,
                                            Deadline /*deadline*/) {
  fail(ErrorKind::kInternal, "queue {}: engine '{}' cannot queue calls", to_string(call), name());
}

CommunicatorMemory LibraryEngine::allocate(size_t bytes) {
  return CommunicatorMemory(device_.allocate(bytes, MemoryKind::kCommunication));
}

void LibraryEngine::set_selection(const SelectionSettings& settings) {
  require_own_choice(name_, settings);
}

AlgorithmPlan LibraryEngine::plan(const Call& /*call*/, MemoryOrigin /*origin*/) {
  return {.reason = fmt::format("{} chooses", library_)};
}

void require_own_choice(std::string_view engine, const SelectionSettings& settings) {
  const auto refuse = [&](std::string_view setting, std::string_view value, std::string_view none) {
    if (value != none)
      fail(ErrorKind::kConfig,
           "comm.{} = {}: engine '{}' chooses for itself; leave it at {}, or use engine 'native'",
           setting, value, engine, none);
  };
  refuse("algorithm", settings.algorithm, "auto");
  refuse("channels", std::to_string(settings.channels), "0");
  refuse("segment_bytes", std::to_string(settings.segment_bytes), "0");
}

}  // namespace gxp
