// The configuration space of a PCIe function, as /sys/bus/pci/devices/ID/config has it: all of it
// for root, the first 64 bytes for others. Offsets and bits: PCI Express Base 6.0, chapter 7.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/topo/read/system_root.h"

namespace gxp {

class PciConfig {
 public:
  enum class Capability : uint8_t { kPciExpress = 0x10 };
  enum class Extended : uint16_t { kAcs = 0x0d, kAts = 0x0f };

  PciConfig(const SystemRoot& root, const std::string& folder);

  // Whether the space beyond the header is readable.
  [[nodiscard]] bool visible() const { return bytes_.size() > kHeaderBytes; }
  [[nodiscard]] bool extended_visible() const { return bytes_.size() > kExtendedAt; }
  // The offset of the capability; none: there is none, or the readable part ends before it.
  [[nodiscard]] std::optional<size_t> find(Capability wanted) const;
  [[nodiscard]] std::optional<size_t> find(Extended wanted) const;
  [[nodiscard]] std::optional<uint16_t> word(size_t offset) const;

 private:
  static constexpr size_t kHeaderBytes = 64;
  static constexpr size_t kExtendedAt = 256;
  [[nodiscard]] uint8_t byte(size_t offset) const { return uint8_t(bytes_[offset]); }

  std::string bytes_;
};

}  // namespace gxp
