// Mutual proof that both ends of a connected stream socket hold the job secret.
//
//   both     hello = "gxp-auth", version (u32), rank (i32), 32 random bytes       48 bytes
//   both     proof = HMAC-SHA-512-256(secret, role, purpose, client's hello, server's hello)
// Neither end waits for the other before it sends, so one round trip and a half suffice. The random
// bytes make a replayed proof fail, the role a reflected one, the purpose one from another kind of
// connection. Ranks are part of the hello, so a returned rank is one that the peer has proved with.
// Nothing but these 80 bytes is read, and nothing that follows may be believed before. Numbers are
// little-endian. Source: crypto_auth of libsodium; ISO/IEC 9798-4, three-pass mutual
// authentication.
//
// Errors: kPeer if the peer is not gxp, speaks another version, has another secret, closes or is
// late.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/deadline.h"
#include "lib/net/secret.h"

namespace gxp {

// `purpose` names the kind of connection ("store", "tcp") and must be the same at both ends.
// Returns the peer's rank. After a throw the socket must be closed.
int authenticate_client(int socket, const Secret& secret, std::string_view purpose, int my_rank,
                        Deadline deadline);
int authenticate_server(int socket, const Secret& secret, std::string_view purpose, int my_rank,
                        Deadline deadline);

// The same without a socket, for a server that must not wait: send hello(), give it the peer's
// hello, send the proof it returns, give it the peer's proof. `peer` is for messages.
class Handshake {
 public:
  enum class Role : uint8_t { kClient = 'c', kServer = 's' };
  static constexpr size_t kHelloBytes = 48;
  static constexpr size_t kProofBytes = 32;
  using Hello = std::array<uint8_t, kHelloBytes>;
  using Proof = std::array<uint8_t, kProofBytes>;

  Handshake(Role role, const Secret& secret, std::string purpose, int my_rank, std::string peer);

  [[nodiscard]] const Hello& hello() const { return mine_; }
  Proof answer(const Hello& theirs);
  // Returns the peer's rank.
  int verify(const Proof& theirs) const;

 private:
  [[nodiscard]] Proof prove(Role role) const;

  Role role_;
  Secret secret_;
  std::string purpose_;
  std::string peer_;
  Hello mine_;
  Hello theirs_{};
};

}  // namespace gxp
