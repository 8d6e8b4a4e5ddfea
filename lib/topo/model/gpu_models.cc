#include "lib/topo/model/gpu_models.h"

#include <algorithm>
#include <array>

#include "lib/base/text/ascii.h"
#include "lib/topo/model/part.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

struct ChipIds {
  int first, last;
  int compute_capability;
  bool has_consumer_cards;
};

constexpr std::array kChips = {
    ChipIds{0x1340, 0x13bf, 50, true},    // GM107, GM108
    ChipIds{0x13c0, 0x143f, 52, true},    // GM204, GM206
    ChipIds{0x15c0, 0x15ff, 60, false},   // GP100
    ChipIds{0x17c0, 0x17ff, 52, true},    // GM200
    ChipIds{0x1b00, 0x1d7f, 61, true},    // GP102 to GP108
    ChipIds{0x1d80, 0x1dff, 70, true},    // GV100: V100, TITAN V
    ChipIds{0x1e00, 0x1fff, 75, true},    // TU102 to TU117
    ChipIds{0x2080, 0x20ff, 80, false},   // GA100: A100, A30
    ChipIds{0x2180, 0x21ff, 75, true},    // TU116
    ChipIds{0x2200, 0x227f, 86, true},    // GA102: A40, A10, RTX A6000
    ChipIds{0x2300, 0x23ff, 90, false},   // GH100: H100, H200, GH200
    ChipIds{0x2400, 0x25ff, 86, true},    // GA103 to GA107
    ChipIds{0x2680, 0x28ff, 89, true},    // AD102 to AD107: L40S, L4
    ChipIds{0x2900, 0x29ff, 100, false},  // GB100, GB102: B200, GB200
    ChipIds{0x2b00, 0x2b00, 110, false},  // GB10B: Jetson Thor
    ChipIds{0x2b80, 0x2dff, 120, true},   // GB202, GB203, GB206, GB207
    ChipIds{0x2e00, 0x2e7f, 121, false},  // GB20B: GB10
    ChipIds{0x2f00, 0x2fff, 120, true},   // GB205
    ChipIds{0x3180, 0x327f, 103, false},  // GB110, GB112: B300, GB300
};

int hexadecimal(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  return whole_number<int>(text, 16).value_or(0);
}

// nullptr: not NVIDIA's, or none of these.
const ChipIds* find_chip(const PciIdentity& identity) {
  if (hexadecimal(identity.vendor) != 0x10de) return nullptr;
  const int id = hexadecimal(identity.device);
  const auto* const chip = std::ranges::find_if(
      kChips, [&](const ChipIds& row) { return row.first <= id && id <= row.last; });
  return chip == kChips.end() ? nullptr : chip;
}

// A block's ids from 0x30 to 0x3f and from 0x70 on are professional cards.
bool is_professional_id(int id) {
  const int in_block = id & 0x7f;
  return (in_block >= 0x30 && in_block < 0x40) || in_block >= 0x70;
}

}  // namespace

std::optional<int> compute_capability_of(const Part& gpu) {
  if (const auto& told = info_of<GpuInfo>(gpu).compute_capability) return told;
  const ChipIds* const chip = find_chip(gpu.identity);
  return chip == nullptr ? std::nullopt : std::optional(chip->compute_capability);
}

bool is_consumer_gpu(const Part& gpu) {
  const std::string name = lower_case(info_of<GpuInfo>(gpu).model_name);
  if (!name.empty())
    return name.find("geforce") != std::string::npos || name.find("titan") != std::string::npos;
  const ChipIds* const chip = find_chip(gpu.identity);
  return chip != nullptr && chip->has_consumer_cards &&
         !is_professional_id(hexadecimal(gpu.identity.device));
}

}  // namespace gxp
