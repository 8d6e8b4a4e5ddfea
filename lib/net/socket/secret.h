// The job secret: 32 random bytes that all ranks of a job share and nobody else has. It never
// appears on a command line, in a log or in an error. Cryptography: libsodium.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/environment.h"

namespace gxp {

inline constexpr const char* kSecretVariable = "GXP_JOB_SECRET";           // 64 hex digits
inline constexpr const char* kSecretFileVariable = "GXP_JOB_SECRET_FILE";  // a path

// Wiped on destruction. Copies are independent.
class Secret {
 public:
  static constexpr size_t kBytes = 32;

  static Secret generate();
  // `origin` names the text's source in the error, which does not show the text. Throws kConfig
  // unless `text` is 64 hexadecimal digits, with white space around them at most.
  static Secret from_hex(std::string_view text, std::string_view origin);
  // Reads a file of 64 hexadecimal digits. Throws kIo if it cannot be read; kConfig if it is no
  // regular file, malformed, or if anyone but its owner may access it (`chmod 600` mends that).
  static Secret from_file(const std::string& path);
  // The same for this user's own file (lib/net/identity/user_secret.h); kConfig also if another
  // user owns it.
  static Secret from_users_file(const std::string& path);

  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  [[nodiscard]] std::span<const uint8_t, kBytes> bytes() const { return bytes_; }
  // For the launcher, which passes it to its ranks. The caller's string is not wiped.
  [[nodiscard]] std::string hex() const;
  // A secret of one job, derived from this one, so that one user's jobs, which may share one
  // port, do not accept each other's ranks.
  [[nodiscard]] Secret for_job(std::string_view job) const;
  // Whether it is, or was made from, this user's own file.
  [[nodiscard]] bool is_users() const { return !users_file_.empty(); }
  // The remedy if the peer has a different secret.
  [[nodiscard]] std::string remedy() const;

 private:
  Secret() = default;
  std::array<uint8_t, kBytes> bytes_{};
  std::string users_file_;
};

// The secret that GXP_JOB_SECRET or else GXP_JOB_SECRET_FILE gives; nothing if neither is set.
std::optional<Secret> find_secret(const Environment& environment);

}  // namespace gxp
