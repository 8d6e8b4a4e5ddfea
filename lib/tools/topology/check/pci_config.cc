#include "lib/tools/topology/check/pci_config.h"

namespace gxp {
namespace {

constexpr int kMostCapabilities = 1024;  // of 4 bytes each: a list that goes round ends here

}  // namespace

PciConfig::PciConfig(const SystemRoot& root, const std::string& folder)
    : bytes_(root.read_bytes(folder + "/config").value_or("")) {}

std::optional<uint16_t> PciConfig::word(size_t offset) const {
  if (offset + 2 > bytes_.size()) return std::nullopt;
  return uint16_t(byte(offset) | byte(offset + 1) << 8);
}

std::optional<size_t> PciConfig::find(Capability wanted) const {
  constexpr size_t kFirst = 0x34;
  if (!visible()) return std::nullopt;
  size_t at = byte(kFirst) & ~3u;
  for (int i = 0; i < kMostCapabilities && at >= kHeaderBytes && at + 2 <= bytes_.size(); ++i) {
    if (byte(at) == uint8_t(wanted)) return at;
    at = byte(at + 1) & ~3u;
  }
  return std::nullopt;
}

std::optional<size_t> PciConfig::find(Extended wanted) const {
  size_t at = kExtendedAt;
  for (int i = 0; i < kMostCapabilities && at >= kExtendedAt && at + 4 <= bytes_.size(); ++i) {
    if (word(at) == uint16_t(wanted)) return at;
    at = *word(at + 2) >> 4 & ~3u;
  }
  return std::nullopt;
}

}  // namespace gxp
