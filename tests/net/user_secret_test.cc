#include "lib/net/identity/user_secret.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "lib/net/socket/authenticate.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

using namespace gxp;
namespace fs = std::filesystem;

namespace {

Environment home_in(const std::string& path) { return {{"HOME", path}}; }

// What a rank with `mine` says to a peer whose proof is made with `theirs`.
Caught mismatch(const Secret& mine, const Secret& theirs) {
  Handshake client(Handshake::Role::kClient, mine, "store", 1, "rank 0 at host0:4711");
  Handshake server(Handshake::Role::kServer, theirs, "store", 0, "rank 1");
  client.answer(server.hello());
  const Handshake::Proof proof = server.answer(client.hello());
  return error_of([&] { client.verify(proof); });
}

}  // namespace

TEST_CASE("a user's secret is made at first use, for that user alone, and found again", "[net]") {
  const TemporaryDirectory home;
  const Environment environment = home_in(home.path());
  const Secret first = user_secret(environment);
  CHECK(first.is_users());
  CHECK(user_secret(environment).hex() == first.hex());
  struct stat status {};
  REQUIRE(stat((home / ".config/gxp/job.secret").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  REQUIRE(stat((home / ".config/gxp").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  CHECK(std::distance(fs::directory_iterator(home / ".config/gxp"), {}) == 1);
}

TEST_CASE("ranks that start at once make one secret", "[net]") {
  const TemporaryDirectory home;
  std::vector<std::string> found(8);
  {
    std::vector<std::jthread> ranks;
    for (std::string& hex : found)
      ranks.emplace_back([&] { hex = user_secret(home_in(home.path())).hex(); });
  }
  CHECK(std::set<std::string>(found.begin(), found.end()).size() == 1);
  CHECK(std::distance(fs::directory_iterator(home / ".config/gxp"), {}) == 1);
}

TEST_CASE("the user's secret lies where XDG says, else in the home", "[net]") {
  const Environment xdg = {{"XDG_CONFIG_HOME", "/x/conf"}, {"HOME", "/home/a"}};
  CHECK(user_secret_path(xdg) == "/x/conf/gxp/job.secret");
  CHECK(user_secret_path(home_in("/home/a")) == "/home/a/.config/gxp/job.secret");
  CHECK(user_secret_path({{"XDG_CONFIG_HOME", "conf"}, {"HOME", "/home/a"}}) ==
        "/home/a/.config/gxp/job.secret");
  CHECK(user_secret_path({}).ends_with("/.config/gxp/job.secret"));  // of the user database
}

TEST_CASE("a user's secret that others may read, or have given, is refused", "[net]") {
  const TemporaryDirectory home;
  const std::string path = home / ".config/gxp/job.secret";
  user_secret(home_in(home.path()));
  chmod(path.c_str(), 0640);
  CHECK(error_of([&] { user_secret(home_in(home.path())); }).says("chmod 600 " + path));
  if (geteuid() != 0) return;
  REQUIRE((chmod(path.c_str(), 0600) == 0 && chown(path.c_str(), 65534, 65534) == 0));
  const Caught caught = error_of([&] { user_secret(home_in(home.path())); });
  CHECK((caught.kind == ErrorKind::kConfig && caught.says("belongs to user 65534, not to 0")));
}

TEST_CASE("a home that takes no file is told with the way around it", "[net]") {
  const TemporaryDirectory home;
  std::ofstream(home / ".config") << "in the way";
  const Caught caught = error_of([&] { user_secret(home_in(home.path())); });
  CHECK(caught.kind == ErrorKind::kIo);
  CHECK(caught.says(home / ".config/gxp/job.secret"));
  CHECK(caught.says(kSecretFileVariable));
}

TEST_CASE("what the environment gives comes before the user's secret", "[net]") {
  const TemporaryDirectory home;
  const std::string hex = Secret::generate().hex();
  Environment environment = home_in(home.path());
  environment[kSecretVariable] = hex;
  CHECK(given_or_user_secret(environment).hex() == hex);
  CHECK_FALSE(fs::exists(home / ".config"));
}

TEST_CASE("hosts with secret files of their own are told which file and host", "[net]") {
  const TemporaryDirectory one, other;
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const Secret mine = user_secret(home_in(one.path())).for_job("7.0");
  const Caught caught = mismatch(mine, user_secret(home_in(other.path())).for_job("7.0"));
  CHECK(caught.says("the job secret differs"));
  CHECK(caught.says(host.data() + std::string(" has its own secret file, ") +
                    (one / ".config/gxp/job.secret")));
  CHECK(mismatch(Secret::generate(), mine).says(kSecretFileVariable));
}
