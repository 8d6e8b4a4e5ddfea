// Mutual proof that both ends of a connected stream socket hold the job secret, and keys for what
// follows on that connection.
//
//   both     hello = "gxp-auth", version u32, rank i32, ciphers u32, 32 random bytes,
//                    an X25519 public key made for this connection                     84 bytes
//   both     proof = HMAC-SHA-512-256(secret, role, purpose, client's hello, server's hello)
//   neither  keys  = BLAKE2b(secret, sender's role, purpose, both hellos, X25519 shared secret)
// Neither end waits for the other before it sends, so one round trip and a half suffice. The random
// bytes prevent replay of a proof, the role prevents reflection, and the purpose prevents use on
// another kind of connection. All of both hellos is proved: a returned rank is one that the peer
// has proved with, and the cipher is the fastest that both have. The keys differ per connection and
// direction, and who learns the secret later cannot find them. Nothing but these 116 bytes is read,
// and nothing that follows may be believed but what is sealed with the keys (seal.h). Numbers are
// little-endian. Source: crypto_auth, crypto_generichash and crypto_scalarmult of libsodium;
// ISO/IEC 9798-4, three-pass mutual authentication.
//
// Cost: 0.1 ms of CPU at each end. Errors: kPeer if the peer is not gxp, speaks another version,
// has another secret, closes or is late.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"
#include "lib/net/socket/seal.h"
#include "lib/net/socket/secret.h"

namespace gxp {

// The peer's rank, and the keys of the connection to it.
struct Authenticated {
  int rank = -1;
  SealKeys keys;
};

// The client's end. `purpose` names the kind of connection ("store", "tcp") and must be the same at
// both ends. `await`, if given, is called when the server's answer is awaited, which comes once it
// lets the client in. After a throw the socket must be closed.
Authenticated authenticate_client(int socket, const Secret& secret, std::string_view purpose,
                                  int my_rank, Deadline deadline,
                                  const std::function<void(int socket)>& await = {});
// Connects by `connect` and authenticates by `authenticate`; again if the server drops the
// connection, as it may do with unauthenticated connections when strangers flood it, or if the
// traffic was altered.
std::pair<Fd, Authenticated> connect_and_authenticate(
    const std::function<Fd()>& connect,
    const std::function<Authenticated(int socket)>& authenticate, Deadline deadline);

// Either end without a socket, for a server that must not wait: send hello(), give it the peer's
// hello, send the proof it returns, give it the peer's proof. `peer` is used in messages.
class Handshake {
 public:
  enum class Role : uint8_t { kClient = 'c', kServer = 's' };
  static constexpr size_t kHelloBytes = 84;
  static constexpr size_t kProofBytes = 32;
  using Hello = std::array<uint8_t, kHelloBytes>;
  using Proof = std::array<uint8_t, kProofBytes>;

  // `ciphers`: those to choose from.
  Handshake(Role role, const Secret& secret, std::string purpose, int my_rank, std::string peer,
            uint32_t ciphers = supported_ciphers());

  [[nodiscard]] const Hello& hello() const { return mine_; }
  Proof answer(const Hello& theirs);
  // Returns the peer's rank.
  int verify(const Proof& theirs) const;
  // After verify(). Throws kPeer if the peer's public key is none.
  [[nodiscard]] SealKeys keys() const;

 private:
  template <class Add>
  void add_transcript(Add add, Role role) const;
  [[nodiscard]] Proof prove(Role role) const;
  [[nodiscard]] SealKey key_of(Role sender, const SealKey& shared) const;

  Role role_;
  Secret secret_;
  std::string purpose_;
  std::string peer_;
  SealKey private_key_;  // of X25519
  Hello mine_;
  Hello theirs_{};
};

}  // namespace gxp
