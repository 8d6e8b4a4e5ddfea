#include "lib/net/socket/authenticate.h"

#include <sodium.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "lib/base/error.h"
#include "lib/net/socket/frame.h"
#include "lib/net/socket/socket.h"

namespace gxp {
namespace {

constexpr std::string_view kMagic = "gxp-auth";
constexpr uint32_t kVersion = 3;
constexpr size_t kVersionAt = 8;
constexpr size_t kRankAt = 12;
constexpr size_t kCiphersAt = 16;
constexpr size_t kNonceAt = 20;
constexpr size_t kPublicKeyAt = 52;
static_assert(kPublicKeyAt + crypto_kx_PUBLICKEYBYTES == Handshake::kHelloBytes);
static_assert(crypto_kx_SECRETKEYBYTES == SealKey::kBytes);
static_assert(crypto_scalarmult_BYTES == SealKey::kBytes);
static_assert(Handshake::kProofBytes == crypto_auth_BYTES);
static_assert(Secret::kBytes == crypto_auth_KEYBYTES);

}  // namespace

Handshake::Handshake(Role role, const Secret& secret, std::string purpose, int my_rank,
                     std::string peer, uint32_t ciphers)
    : role_(role), secret_(secret), purpose_(std::move(purpose)), peer_(std::move(peer)), mine_{} {
  std::copy(kMagic.begin(), kMagic.end(), mine_.begin());
  store_u32(&mine_[kVersionAt], kVersion);
  store_u32(&mine_[kRankAt], uint32_t(my_rank));
  store_u32(&mine_[kCiphersAt], ciphers);
  if (sodium_init() < 0)
    fail(ErrorKind::kUnavailable, "start libsodium: there is no source of random numbers");
  randombytes_buf(&mine_[kNonceAt], kPublicKeyAt - kNonceAt);
  crypto_kx_keypair(&mine_[kPublicKeyAt], private_key_.data());
}

Handshake::Proof Handshake::answer(const Hello& theirs) {
  if (!std::equal(kMagic.begin(), kMagic.end(), theirs.begin()))
    fail(ErrorKind::kPeer, "authenticate {}: it does not speak gxp's protocol", peer_);
  const uint32_t version = load_u32(&theirs[kVersionAt]);
  if (version != kVersion)
    fail(ErrorKind::kPeer,
         "authenticate {}: it speaks protocol version {}, this gxp version {}; install the same "
         "gxp on all hosts",
         peer_, version, kVersion);
  theirs_ = theirs;
  return prove(role_);
}

// All that both ends have said and know before, for add(data, bytes).
template <class Add>
void Handshake::add_transcript(Add add, Role role) const {
  const bool client = role_ == Role::kClient;
  const Hello& client_hello = client ? mine_ : theirs_;
  const Hello& server_hello = client ? theirs_ : mine_;
  std::array<uint8_t, 4> length{};
  store_u32(length.data(), uint32_t(purpose_.size()));
  add(&role, 1);
  add(length.data(), length.size());
  add(purpose_.data(), purpose_.size());
  add(client_hello.data(), kHelloBytes);
  add(server_hello.data(), kHelloBytes);
}

Handshake::Proof Handshake::prove(Role role) const {
  crypto_auth_hmacsha512256_state state;
  crypto_auth_hmacsha512256_init(&state, secret_.bytes().data(), Secret::kBytes);
  add_transcript(
      [&state](const void* data, size_t bytes) {
        crypto_auth_hmacsha512256_update(&state, static_cast<const uint8_t*>(data), bytes);
      },
      role);
  Proof proof{};
  crypto_auth_hmacsha512256_final(&state, proof.data());
  sodium_memzero(&state, sizeof state);
  return proof;
}

int Handshake::verify(const Proof& theirs) const {
  const Proof expected = prove(role_ == Role::kClient ? Role::kServer : Role::kClient);
  if (sodium_memcmp(expected.data(), theirs.data(), kProofBytes) != 0)
    fail(ErrorKind::kPeer,
         "authenticate {}: the job secret differs, or someone tampers with the connection; {}",
         peer_, secret_.remedy());
  return int(load_u32(&theirs_[kRankAt]));
}

SealKeys Handshake::keys() const {
  SealKey shared;
  if (crypto_scalarmult(shared.data(), private_key_.data(), &theirs_[kPublicKeyAt]) != 0)
    fail(ErrorKind::kPeer, "authenticate {}: its public key is invalid", peer_);
  const Role other = role_ == Role::kClient ? Role::kServer : Role::kClient;
  const uint32_t ours = load_u32(&mine_[kCiphersAt]);
  return {choose_cipher(ours, load_u32(&theirs_[kCiphersAt])), key_of(role_, shared),
          key_of(other, shared)};
}

SealKey Handshake::key_of(Role sender, const SealKey& shared) const {
  crypto_generichash_state state;
  crypto_generichash_init(&state, secret_.bytes().data(), Secret::kBytes, SealKey::kBytes);
  const auto add = [&state](const void* data, size_t bytes) {
    crypto_generichash_update(&state, static_cast<const uint8_t*>(data), bytes);
  };
  add_transcript(add, sender);
  add(shared.data(), SealKey::kBytes);
  SealKey key;
  crypto_generichash_final(&state, key.data(), SealKey::kBytes);
  sodium_memzero(&state, sizeof state);
  return key;
}

Authenticated authenticate_client(int socket, const Secret& secret, std::string_view purpose,
                                  int my_rank, Deadline deadline,
                                  const std::function<void(int socket)>& await) {
  const std::string peer = fmt::format("{} ({} connection)", peer_address(socket), purpose);
  Handshake handshake(Handshake::Role::kClient, secret, std::string(purpose), my_rank, peer);
  Handshake::Hello hello{};
  Handshake::Proof proof{};
  write_all(socket, std::as_bytes(std::span(handshake.hello())), peer, deadline);
  if (await) await(socket);
  read_exact(socket, std::as_writable_bytes(std::span(hello)), peer, deadline);
  const Handshake::Proof answer = handshake.answer(hello);
  write_all(socket, std::as_bytes(std::span(answer)), peer, deadline);
  read_exact(socket, std::as_writable_bytes(std::span(proof)), peer, deadline);
  const int rank = handshake.verify(proof);
  return {rank, handshake.keys()};
}

std::pair<Fd, Authenticated> connect_and_authenticate(
    const std::function<Fd()>& connect,
    const std::function<Authenticated(int socket)>& authenticate, Deadline deadline) {
  constexpr int kMostRetries = 50;
  constexpr std::chrono::milliseconds kPause{20};
  for (int retries = 0;; ++retries) {
    Fd socket = connect();
    try {
      Authenticated proved = authenticate(socket.get());
      return {std::move(socket), std::move(proved)};
    } catch (const ConnectionClosed&) {
      if (retries == kMostRetries || deadline.expired()) throw;
    }
    std::this_thread::sleep_for(std::min<Deadline::Duration>(kPause, deadline.remaining()));
  }
}

}  // namespace gxp
