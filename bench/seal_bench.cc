// What protecting a connection costs a core, beside memcpy in the same run: GB/s of each cipher as
// a mere tag (comm.protect = "authenticate") and as encryption, both as the sender and as the
// receiver pay it, by the size of a record. One thread; the best of the rounds.
//   gxp_seal_bench [ROUNDS]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/net/socket/seal.h"

namespace gxp {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBytesPerRound = size_t{4} << 20;

template <class Body>
double best_seconds(int rounds, size_t bytes, const Body& body) {
  const size_t batch = std::max(size_t{1}, kBytesPerRound / bytes);
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (size_t i = 0; i < batch; ++i) body();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds / double(batch));
  }
  return best;
}

void report(std::string_view cipher, std::string_view what, size_t bytes, double seconds) {
  fmt::print("{:>17} {:>20} {:>8} {:>9.2f} us {:>7.2f} GB/s {:>7.1f} Gbit/s\n", cipher, what,
             format_bytes(bytes), seconds * 1e6, double(bytes) / seconds / 1e9,
             8 * double(bytes) / seconds / 1e9);
}

void measure(Cipher cipher, Protection protection, size_t bytes, int rounds) {
  SealKey key;
  Sealer sealer(cipher, key, protection);
  std::vector<std::byte> body(bytes, std::byte{7}), sealed(bytes);
  const double sending = best_seconds(rounds, bytes, [&] { sealer.seal(body, sealed.data()); });
  report(to_string(cipher), fmt::format("{}, send", to_string(protection)), bytes, sending);
  // A record opens once, at its place: as many as are opened are sealed first, and paid for.
  Sealer pair(cipher, key, protection);
  Opener opener(cipher, key, protection);
  bool good = true;
  const double both = best_seconds(rounds, bytes, [&] {
    const RecordHeader header = pair.seal(body, sealed.data());
    good &= opener.open_header(header) == bytes;
    good &= opener.open(protection == Protection::kEncrypt ? sealed : body);
  });
  report(to_string(cipher), fmt::format("{}, receive", to_string(protection)), bytes,
         both - sending);
  if (!good) fmt::print("a record did not open\n");
}

}  // namespace

}  // namespace gxp

int main(int argc, char** argv) {
  using namespace gxp;
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 31;
  for (const size_t bytes : {size_t{64}, size_t{1} << 10, size_t{8} << 10, kMaxRecordBytes}) {
    std::vector<std::byte> from(bytes, std::byte{1}), to(bytes);
    report("memory", "memcpy", bytes,
           best_seconds(rounds, bytes, [&] { std::memcpy(to.data(), from.data(), bytes); }));
    for (const Cipher cipher : {Cipher::kAes256Gcm, Cipher::kChaCha20Poly1305}) {
      if ((supported_ciphers() & uint32_t(cipher)) == 0) continue;
      for (const Protection protection : {Protection::kAuthenticate, Protection::kEncrypt})
        measure(cipher, protection, bytes, rounds);
    }
  }
}
