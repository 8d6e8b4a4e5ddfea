#include "lib/net/socket/secret.h"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/host_name.h"
#include "lib/base/text/ascii.h"
#include "lib/base/text_file.h"

namespace gxp {
namespace {

void start_sodium() {
  if (sodium_init() < 0)
    fail(ErrorKind::kUnavailable, "start libsodium: there is no source of random numbers");
}

void check_file(const std::string& path, const struct stat& status, std::optional<uid_t> owner) {
  if (owner && status.st_uid != *owner)
    fail(ErrorKind::kConfig,
         "read the job secret file {}: it belongs to user {}, not to {}; remove it, or set "
         "{} to a file of your own",
         path, status.st_uid, *owner, kSecretFileVariable);
  if ((status.st_mode & 077) != 0)
    fail(ErrorKind::kConfig,
         "read the job secret file {}: others may access it (mode {:o}); run `chmod 600 {}`", path,
         status.st_mode & 0777, path);
}

Secret read_file(const std::string& path, std::optional<uid_t> owner) {
  const Fd file = open_regular_file(path, "open the job secret file " + path);
  struct stat status {};
  check_sys(::fstat(file.get(), &status), "examine the job secret file " + path);
  check_file(path, status, owner);
  std::array<char, 256> text{};
  const long length =
      check_sys(::read(file.get(), text.data(), text.size()), "read the job secret file " + path);
  const Secret secret = Secret::from_hex({text.data(), size_t(length)}, path);
  sodium_memzero(text.data(), text.size());
  return secret;
}

}  // namespace

Secret Secret::generate() {
  start_sodium();
  Secret secret;
  randombytes_buf(secret.bytes_.data(), kBytes);
  return secret;
}

Secret Secret::from_hex(std::string_view text, std::string_view origin) {
  text = trimmed(text);
  Secret secret;
  size_t length = 0;
  const char* end = nullptr;
  const int result = sodium_hex2bin(secret.bytes_.data(), kBytes, text.data(), text.size(), nullptr,
                                    &length, &end);
  if (result != 0 || length != kBytes || end != text.data() + text.size())
    fail(ErrorKind::kConfig,
         "read the job secret from {}: expected 64 hexadecimal digits; `openssl rand -hex 32` "
         "makes some",
         origin);
  return secret;
}

Secret Secret::from_file(const std::string& path) { return read_file(path, std::nullopt); }

Secret Secret::from_users_file(const std::string& path) {
  Secret secret = read_file(path, ::geteuid());
  secret.users_file_ = path;
  return secret;
}

Secret::~Secret() { sodium_memzero(bytes_.data(), kBytes); }

std::string Secret::hex() const {
  std::string text(2 * kBytes + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes_.data(), kBytes);
  text.resize(2 * kBytes);
  return text;
}

Secret Secret::for_job(std::string_view job) const {
  start_sodium();
  Secret derived;
  const auto* name = reinterpret_cast<const uint8_t*>(job.data());
  crypto_generichash(derived.bytes_.data(), kBytes, name, job.size(), bytes_.data(), kBytes);
  derived.users_file_ = users_file_;
  return derived;
}

std::string Secret::remedy() const {
  if (is_users()) {
    const std::string host = host_name();
    return fmt::format(
        "{} has its own secret file, {}: copy it to all hosts, or let them share the home",
        host.empty() ? "this host" : host, users_file_);
  }
  return fmt::format("give all ranks the same {} or {}", kSecretVariable, kSecretFileVariable);
}

std::optional<Secret> find_secret(const Environment& environment) {
  if (const std::string* text = find_variable(environment, kSecretVariable))
    return Secret::from_hex(*text, kSecretVariable);
  if (const std::string* path = find_variable(environment, kSecretFileVariable))
    return Secret::from_file(*path);
  return std::nullopt;
}

}  // namespace gxp
