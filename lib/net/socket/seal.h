// Records of one direction of one connection: without the key, nobody can forge, alter, drop,
// repeat or reorder them undetected.
//
//   record = length u32 | body's tag, 16 bytes | header's tag, 16 bytes | body    36 bytes + body
//
// The n-th record's body is sealed under the nonce 2n and its header, which is authenticated only,
// under 2n + 1, so a record is good at its own place of its own connection alone. The header has a
// tag of its own because an altered length would otherwise be noticed only after as many bytes had
// come. A withheld record cannot be distinguished from a late one: the wait ends at a deadline, or
// with the next record that arrives. Cipher: AES-256-GCM if both ends' CPUs support it, otherwise
// ChaCha20-Poly1305 (RFC 8439). Without encryption, the tag is that of an empty message with the
// body as associated data (GMAC, NIST SP 800-38D). Cost: docs/RESULTS.md. Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/net/socket/protection.h"

namespace gxp {

// Bits, so that a set of them is a number.
enum class Cipher : uint8_t { kChaCha20Poly1305 = 1, kAes256Gcm = 2 };
// "AES-256-GCM"
std::string_view to_string(Cipher cipher);
// The set that this machine can compute. ChaCha20-Poly1305 is always one of them.
uint32_t supported_ciphers();
// The fastest that both sets have.
Cipher choose_cipher(uint32_t ours, uint32_t theirs);

// Wiped on destruction. Copies are independent.
class SealKey {
 public:
  static constexpr size_t kBytes = 32;
  SealKey() = default;
  SealKey(const SealKey&) = default;
  SealKey& operator=(const SealKey&) = default;
  ~SealKey();
  [[nodiscard]] uint8_t* data() { return bytes_.data(); }
  [[nodiscard]] const uint8_t* data() const { return bytes_.data(); }

 private:
  std::array<uint8_t, kBytes> bytes_{};
};

// The keys of one end of a connection after the handshake (authenticate.h).
struct SealKeys {
  Cipher cipher = Cipher::kChaCha20Poly1305;
  SealKey sending;
  SealKey receiving;
};

inline constexpr size_t kRecordHeaderBytes = 36;
// The longest body. 64 KiB stay in a core's cache between the cipher and the OS's copy.
inline constexpr size_t kMaxRecordBytes = size_t{64} << 10;
// The error for a record that fails authentication. `what`: "what rank 3 at 10.0.0.7:4711 sent to
// rank 0".
class Tampered : public Error {
 public:
  explicit Tampered(std::string_view what)
      : Error(ErrorKind::kPeer, fmt::format("{} was tampered with or damaged in transit", what)) {}
};

using RecordHeader = std::array<std::byte, kRecordHeaderBytes>;

class Aead;  // one key of one cipher
struct AeadDeleter {
  void operator()(Aead* aead) const;
};

class Sealer {
 public:
  // `protection` is not kNone.
  Sealer(Cipher cipher, const SealKey& key, Protection protection);

  // Seals `body`, of up to kMaxRecordBytes, as the next record and returns its header. kEncrypt:
  // what follows the header is written to `sealed`, which has room for as many bytes and may be
  // `body` itself. kAuthenticate: `body` follows as it is.
  RecordHeader seal(std::span<const std::byte> body, std::byte* sealed);

 private:
  std::unique_ptr<Aead, AeadDeleter> aead_;
  bool encrypts_;
  uint64_t next_ = 0;  // nonce
};

class Opener {
 public:
  Opener(Cipher cipher, const SealKey& key, Protection protection);

  // The length of the body after this header; nothing if the header is not that of the next record.
  std::optional<size_t> open_header(const RecordHeader& header);
  // Checks the body that follows that header and, under kEncrypt, decrypts it where it is. False:
  // it is not what was sent, and must not be used.
  [[nodiscard]] bool open(std::span<std::byte> body);

 private:
  std::unique_ptr<Aead, AeadDeleter> aead_;
  bool encrypted_;
  uint64_t next_ = 0;  // nonce of the body
  RecordHeader header_{};
};

// Text over a sealed connection, cut into records and put together again.
void append_sealed(std::string& out, std::string_view text, Sealer& sealer);
// Opens the complete records of `in` from `*offset` on, advances `*offset` past them, and appends
// their content to `out`. Throws Tampered.
void open_sealed(std::string_view in, size_t* offset, Opener& opener, std::string_view what,
                 std::string& out);

}  // namespace gxp
