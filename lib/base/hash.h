// Content hashes: xxHash's 128-bit XXH3, written as 32 lower-case hexadecimal digits (canonical
// order). For integrity and equality, not against forgery; authentication is lib/net's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace gxp {

std::string hash_hex(std::span<const std::byte> data);
uint64_t hash64(std::span<const std::byte> data);

// A bijection whose output bits look random: splitmix64's finaliser (Steele, Lea & Flood, OOPSLA
// 2014).
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The same hash over data that arrives in pieces.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  void update(std::span<const std::byte> data);
  [[nodiscard]] std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gxp
