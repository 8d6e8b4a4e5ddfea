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
