// CPUs (hardware threads) by their numbers, as Linux and hwloc write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

class CpuSet {
 public:
  static constexpr int kMaxCpus = 1 << 16;

  // "ff,ffffffff": words of 32 bits, the highest first, each with or without 0x, "" for 0; hwloc's
  // prefix "0xf...f," for all CPUs beyond the words is ignored. No value: it is something else.
  static std::optional<CpuSet> parse_map(std::string_view text);
  static std::optional<CpuSet> parse_list(std::string_view text);  // "0-3,8"

  void add(int cpu);
  [[nodiscard]] bool empty() const { return count() == 0; }
  [[nodiscard]] int count() const;
  [[nodiscard]] bool intersects(const CpuSet& other) const;
  [[nodiscard]] bool within(const CpuSet& other) const;  // each is in `other`
  [[nodiscard]] CpuSet common(const CpuSet& other) const;
  [[nodiscard]] std::vector<int> cpus() const;
  [[nodiscard]] std::string to_map() const;   // "000000ff,ffffffff"
  [[nodiscard]] std::string to_list() const;  // "0-39"

 private:
  [[nodiscard]] uint32_t word(size_t i) const { return i < words_.size() ? words_[i] : 0; }
  std::vector<uint32_t> words_;  // the lowest first
};

}  // namespace gxp
