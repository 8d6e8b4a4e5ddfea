#include "lib/net/secret.h"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "lib/base/text_file.h"

namespace gxp {
namespace {

void start_sodium() {
  if (sodium_init() < 0)
    fail(ErrorKind::kUnavailable, "start libsodium: no source of random numbers");
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

Secret Secret::from_file(const std::string& path) {
  const Fd file = open_regular_file(path, "open the job secret file " + path);
  struct stat status {};
  check_sys(::fstat(file.get(), &status), "examine the job secret file " + path);
  if ((status.st_mode & 077) != 0)
    fail(ErrorKind::kConfig,
         "read the job secret file {}: others may access it (mode {:o}); run `chmod 600 {}`", path,
         status.st_mode & 0777, path);
  std::array<char, 256> text{};
  const long length =
      check_sys(::read(file.get(), text.data(), text.size()), "read the job secret file " + path);
  const Secret secret = from_hex({text.data(), size_t(length)}, path);
  sodium_memzero(text.data(), text.size());
  return secret;
}

Secret::~Secret() { sodium_memzero(bytes_.data(), kBytes); }

std::string Secret::hex() const {
  std::string text(2 * kBytes + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes_.data(), kBytes);
  text.resize(2 * kBytes);
  return text;
}

std::optional<Secret> find_secret(const Environment& environment) {
  if (const std::string* text = find_variable(environment, kSecretVariable))
    return Secret::from_hex(*text, kSecretVariable);
  if (const std::string* path = find_variable(environment, kSecretFileVariable))
    return Secret::from_file(*path);
  return std::nullopt;
}

Secret require_secret(const Environment& environment) {
  auto secret = find_secret(environment);
  if (!secret)
    fail(ErrorKind::kConfig,
         "read the job secret: neither {} nor {} is set; make one with `(umask 077; openssl rand "
         "-hex 32 > FILE)`, give every host a copy and set {}=FILE for all ranks",
         kSecretVariable, kSecretFileVariable, kSecretFileVariable);
  return *secret;
}

}  // namespace gxp
