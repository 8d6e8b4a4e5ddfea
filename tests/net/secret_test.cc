#include "lib/net/socket/secret.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

using namespace gxp;

namespace {

// A file that is removed again.
class SecretFile {
 public:
  SecretFile(const std::string& text, mode_t mode)
      : path_(std::filesystem::temp_directory_path() / ("gxp_secret." + std::to_string(getpid()))) {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), mode);
  }
  ~SecretFile() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("a generated secret is new each time and survives as hexadecimal", "[net]") {
  const Secret secret = Secret::generate();
  CHECK(secret.hex() != Secret::generate().hex());
  CHECK(secret.hex().size() == 64);
  CHECK(Secret::from_hex(" " + secret.hex() + "\n", "test").hex() == secret.hex());
}

TEST_CASE("a secret that is not 64 hexadecimal digits is refused without being shown", "[net]") {
  const std::string hex = Secret::generate().hex();
  for (const std::string& bad : {std::string(), hex.substr(1), hex + "0", hex.substr(2) + "zz"}) {
    const Caught caught = error_of([&] { Secret::from_hex(bad, "GXP_JOB_SECRET"); });
    CHECK(caught.kind == ErrorKind::kConfig);
    CHECK(caught.says("GXP_JOB_SECRET"));
    CHECK_FALSE(caught.says(hex.substr(2, 8)));
  }
}

TEST_CASE("a secret file counts only if nobody but its owner may access it", "[net]") {
  const std::string hex = Secret::generate().hex();
  CHECK(Secret::from_file(SecretFile(hex + "\n", 0600).path()).hex() == hex);
  for (const mode_t mode : {0644, 0640, 0602}) {
    const SecretFile file(hex, mode);
    const Caught caught = error_of([&] { Secret::from_file(file.path()); });
    CHECK(caught.kind == ErrorKind::kConfig);
    CHECK(caught.says("chmod 600"));
  }
  CHECK(error_of([] { Secret::from_file("/nonexistent"); }).kind == ErrorKind::kIo);
}

TEST_CASE("a secret file that is a named pipe or a directory is refused at once", "[net]") {
  const TemporaryDirectory directory;
  REQUIRE(mkfifo((directory / "pipe").c_str(), 0600) == 0);
  for (const std::string& path : {directory / "pipe", directory.path()}) {
    const Caught caught = error_of([&] { Secret::from_file(path); });
    CHECK(caught.kind == ErrorKind::kIo);
    CHECK((caught.says("it is a pipe, not a regular file") || caught.says("Is a directory")));
  }
}

TEST_CASE("the environment gives the secret itself before a file", "[net]") {
  const std::string hex = Secret::generate().hex();
  const SecretFile file(Secret::generate().hex(), 0600);
  const Environment both = {{kSecretVariable, hex}, {kSecretFileVariable, file.path()}};
  CHECK(find_secret(both)->hex() == hex);
  CHECK(find_secret({{kSecretFileVariable, file.path()}})->hex() != hex);
  CHECK_FALSE(find_secret({}).has_value());
}

TEST_CASE("each job's secret is another, and the same from the same secret", "[net]") {
  const Secret secret = Secret::generate();
  CHECK(secret.for_job("7.0").hex() == secret.for_job("7.0").hex());
  CHECK(secret.for_job("7.0").hex() != secret.for_job("7.1").hex());
  CHECK(secret.for_job("7.0").hex() != Secret::generate().for_job("7.0").hex());
  CHECK(secret.for_job("").hex() != secret.hex());
}
