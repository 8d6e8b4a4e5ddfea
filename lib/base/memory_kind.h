// The purposes of memory. Trackers, step programs and reports count bytes by these kinds.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace gxp {

enum class MemoryKind {
  kParameters,
  kGradients,
  kOptimizer,
  kActivations,
  kWorkspace,
  kCommunication
};

inline constexpr size_t kMemoryKindCount = 6;

// In the order of the enumerators; also the keys of reports ("parameters_bytes").
inline constexpr std::array<std::string_view, kMemoryKindCount> kMemoryKindNames = {
    "parameters", "gradients", "optimizer", "activations", "workspace", "communication"};

inline std::string_view to_string(MemoryKind kind) {
  return kMemoryKindNames[static_cast<size_t>(kind)];
}

}  // namespace gxp
