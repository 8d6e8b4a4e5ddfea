#include "lib/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace gxp {
namespace {

std::string to_hex(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string hash_hex(std::span<const std::byte> data) {
  return to_hex(XXH3_128bits(data.data(), data.size()));
}

uint64_t hash64(std::span<const std::byte> data) { return XXH3_64bits(data.data(), data.size()); }

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  if (state_->xxh == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_->xxh);
}
Hasher::~Hasher() = default;

void Hasher::update(std::span<const std::byte> data) {
  XXH3_128bits_update(state_->xxh, data.data(), data.size());
}

std::string Hasher::hex() const { return to_hex(XXH3_128bits_digest(state_->xxh)); }

}  // namespace gxp
