#include "lib/net/socket/seal.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/net/socket/frame.h"

namespace gxp {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr size_t kTagBytes = 16;
constexpr size_t kBodyTagAt = kLengthBytes;
constexpr size_t kHeaderTagAt = kBodyTagAt + kTagBytes;
constexpr size_t kNonceBytes = 12;
static_assert(kHeaderTagAt + kTagBytes == kRecordHeaderBytes);
static_assert(crypto_aead_aes256gcm_ABYTES == kTagBytes);
static_assert(crypto_aead_aes256gcm_NPUBBYTES == kNonceBytes);
static_assert(crypto_aead_aes256gcm_KEYBYTES == SealKey::kBytes);
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == kTagBytes);
static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES == kNonceBytes);
static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == SealKey::kBytes);

using Bytes = std::span<const std::byte>;
using Nonce = std::array<uint8_t, kNonceBytes>;

uint8_t* u8(std::byte* data) { return reinterpret_cast<uint8_t*>(data); }
const uint8_t* u8(const std::byte* data) { return reinterpret_cast<const uint8_t*>(data); }

Nonce nonce_of(uint64_t number) {
  Nonce nonce{};
  for (size_t i = 0; i < 8; ++i) nonce[4 + i] = uint8_t(number >> (8 * i));
  return nonce;
}

}  // namespace

class Aead {
 public:
  Aead(Cipher cipher, const SealKey& key) : cipher_(cipher), key_(key) {
    if (cipher_ == Cipher::kAes256Gcm) crypto_aead_aes256gcm_beforenm(&aes_, key_.data());
  }
  ~Aead() { sodium_memzero(&aes_, sizeof aes_); }
  Aead(const Aead&) = delete;
  Aead& operator=(const Aead&) = delete;

  // `message` goes to `out`, which is never null, encrypted; `known` is authenticated with it.
  void seal(uint64_t number, Bytes message, Bytes known, std::byte* out, std::byte* tag) const {
    const Nonce nonce = nonce_of(number);
    if (cipher_ == Cipher::kAes256Gcm) {
      crypto_aead_aes256gcm_encrypt_detached_afternm(u8(out), u8(tag), nullptr, u8(message.data()),
                                                     message.size(), u8(known.data()), known.size(),
                                                     nullptr, nonce.data(), &aes_);
    } else {
      crypto_aead_chacha20poly1305_ietf_encrypt_detached(
          u8(out), u8(tag), nullptr, u8(message.data()), message.size(), u8(known.data()),
          known.size(), nullptr, nonce.data(), key_.data());
    }
  }

  [[nodiscard]] bool open(uint64_t number, std::span<std::byte> sealed, Bytes known,
                          const std::byte* tag) const {
    const Nonce nonce = nonce_of(number);
    std::byte nothing{};  // libsodium wants an address in any case
    uint8_t* const data = u8(sealed.empty() ? &nothing : sealed.data());
    const int result = cipher_ == Cipher::kAes256Gcm
                           ? crypto_aead_aes256gcm_decrypt_detached_afternm(
                                 data, nullptr, data, sealed.size(), u8(tag), u8(known.data()),
                                 known.size(), nonce.data(), &aes_)
                           : crypto_aead_chacha20poly1305_ietf_decrypt_detached(
                                 data, nullptr, data, sealed.size(), u8(tag), u8(known.data()),
                                 known.size(), nonce.data(), key_.data());
    return result == 0;
  }

 private:
  Cipher cipher_;
  SealKey key_;
  crypto_aead_aes256gcm_state aes_{};  // the key's schedule
};

void AeadDeleter::operator()(Aead* aead) const { delete aead; }

std::string_view to_string(Cipher cipher) {
  return cipher == Cipher::kAes256Gcm ? "AES-256-GCM" : "ChaCha20-Poly1305";
}

uint32_t supported_ciphers() {
  if (sodium_init() < 0)
    fail(ErrorKind::kUnavailable, "start libsodium: there is no source of random numbers");
  const uint32_t aes = crypto_aead_aes256gcm_is_available() != 0 ? uint32_t(Cipher::kAes256Gcm) : 0;
  return uint32_t(Cipher::kChaCha20Poly1305) | aes;
}

Cipher choose_cipher(uint32_t ours, uint32_t theirs) {
  const bool aes = (ours & theirs & uint32_t(Cipher::kAes256Gcm)) != 0;
  return aes ? Cipher::kAes256Gcm : Cipher::kChaCha20Poly1305;
}

SealKey::~SealKey() { sodium_memzero(bytes_.data(), bytes_.size()); }

Sealer::Sealer(Cipher cipher, const SealKey& key, Protection protection)
    : aead_(new Aead(cipher, key)), encrypts_(protection == Protection::kEncrypt) {
  GXP_ASSERT(protection != Protection::kNone);
}

RecordHeader Sealer::seal(Bytes body, std::byte* sealed) {
  GXP_ASSERT(body.size() <= kMaxRecordBytes);
  RecordHeader header{};
  store_u32(u8(header.data()), uint32_t(body.size()));
  const Bytes message = encrypts_ ? body : Bytes();
  const Bytes known = encrypts_ ? Bytes() : body;
  std::byte nothing{};
  aead_->seal(next_++, message, known, encrypts_ ? sealed : &nothing, &header[kBodyTagAt]);
  aead_->seal(next_++, {}, Bytes(header).first(kHeaderTagAt), &nothing, &header[kHeaderTagAt]);
  return header;
}

Opener::Opener(Cipher cipher, const SealKey& key, Protection protection)
    : aead_(new Aead(cipher, key)), encrypted_(protection == Protection::kEncrypt) {
  GXP_ASSERT(protection != Protection::kNone);
}

std::optional<size_t> Opener::open_header(const RecordHeader& header) {
  const Bytes known = Bytes(header).first(kHeaderTagAt);
  if (!aead_->open(next_ + 1, {}, known, &header[kHeaderTagAt])) return std::nullopt;
  const size_t bytes = load_u32(u8(header.data()));
  if (bytes > kMaxRecordBytes) return std::nullopt;
  header_ = header;
  return bytes;
}

bool Opener::open(std::span<std::byte> body) {
  const std::byte* tag = &header_[kBodyTagAt];
  const uint64_t number = std::exchange(next_, next_ + 2);
  return encrypted_ ? aead_->open(number, body, {}, tag) : aead_->open(number, {}, body, tag);
}

void append_sealed(std::string& out, std::string_view text, Sealer& sealer) {
  while (!text.empty()) {
    const std::string_view body = text.substr(0, kMaxRecordBytes);
    text.remove_prefix(body.size());
    const size_t at = out.size();
    out.resize(at + kRecordHeaderBytes);
    out += body;
    auto* record = reinterpret_cast<std::byte*>(out.data() + at);
    const std::span<std::byte> place(record + kRecordHeaderBytes, body.size());
    const RecordHeader header = sealer.seal(place, place.data());
    std::copy(header.begin(), header.end(), record);
  }
}

void open_sealed(std::string_view in, size_t* offset, Opener& opener, std::string_view what,
                 std::string& out) {
  const auto check = [&](bool good) {
    if (!good) throw Tampered(what);
  };
  while (in.size() - *offset >= kRecordHeaderBytes) {
    RecordHeader header;
    std::memcpy(header.data(), in.data() + *offset, header.size());
    const auto bytes = opener.open_header(header);
    check(bytes.has_value());
    if (in.size() - *offset - kRecordHeaderBytes < *bytes) return;
    const size_t at = out.size();
    out += in.substr(*offset + kRecordHeaderBytes, *bytes);
    check(opener.open({reinterpret_cast<std::byte*>(out.data() + at), *bytes}));
    *offset += kRecordHeaderBytes + *bytes;
  }
}

}  // namespace gxp
