// Byte counts for people. MiB = 2^20 bytes, MB = 10^6 bytes; the two are never mixed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gxp {

// "512 B", "1.5 KiB", "64 MiB", "3.25 GiB".
std::string format_bytes(uint64_t bytes);

// "64", "64K", "64KiB" (2^10), "64KB" (10^3), likewise M, G and T, upper or lower case; "6.9G" too,
// down to whole bytes; nothing otherwise. A bare K, M, G is binary, as in nccl-tests.
std::optional<uint64_t> parse_bytes(std::string_view text);

// The smallest multiple of `step` that is not below `value`; `step` > 0.
constexpr size_t round_up(size_t value, size_t step) { return (value + step - 1) / step * step; }

}  // namespace gxp
