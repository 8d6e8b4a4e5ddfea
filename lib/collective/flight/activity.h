// What a rank is doing, apart from its collectives.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gxp {

enum class Activity : uint8_t { kStart, kLoad, kCompute, kData, kEvaluate, kSave, kGenerate };

// In the order of the enumerators.
inline constexpr std::array<std::string_view, 7> kActivityNames = {
    "start", "load", "compute", "data", "evaluate", "save", "generate"};

inline std::string_view to_string(Activity activity) { return kActivityNames[size_t(activity)]; }

}  // namespace gxp
