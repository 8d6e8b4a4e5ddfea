#include "lib/net/socket/unix_socket.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <span>

#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

Deadline before_long() { return Deadline::after(std::chrono::seconds(10)); }

// While it lives, this process may open no more files.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &former_);
    const Fd lowest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const rlimit limit{rlim_t(lowest.get()), former_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &former_); }

 private:
  rlimit former_{};
};

}  // namespace

TEST_CASE("a socket is a file for this user alone, at a path of any length", "[net]") {
  const TemporaryDirectory top;
  const std::string directory = top / std::string(200, 'd');
  std::filesystem::create_directory(directory);
  CHECK_FALSE(connect_unix_file(directory, "socket").valid());
  std::ofstream(directory + "/socket") << "in its place";
  const Fd listener = listen_unix_file(directory, "socket");
  struct stat status = {};
  REQUIRE(::lstat((directory + "/socket").c_str(), &status) == 0);
  CHECK((S_ISSOCK(status.st_mode) && (status.st_mode & 0777) == 0600));
  const Fd client = connect_unix_file(directory, "socket");
  REQUIRE(client.valid());
  CHECK((peer_process(client.get()) == ::getpid() && is_own_peer(client.get())));
  const auto files = std::filesystem::directory_iterator(directory);
  CHECK(std::distance(begin(files), end(files)) == 1);
  CHECK(error_of([&] { (void)connect_unix_file(top / "nowhere", "socket"); }).kind ==
        ErrorKind::kIo);
}

TEST_CASE("messages between two processes stay apart, with a descriptor or without", "[net]") {
  const auto [here, there] = make_message_sockets();
  const std::array sent = {std::byte{1}, std::byte{2}, std::byte{3}};
  send_message(there.get(), sent, -1, "rank 0", before_long());
  send_message(there.get(), std::span(sent).first(2), there.get(), "rank 0", before_long());
  std::array<std::byte, 3> three{};
  CHECK(!receive_message(here.get(), three, "rank 1", before_long()).valid());
  CHECK(three == sent);
  std::array<std::byte, 2> two{};
  CHECK(receive_message(here.get(), two, "rank 1", before_long()).valid());
  CHECK(two == std::array{std::byte{1}, std::byte{2}});
}

TEST_CASE("a message of another size, or from an end that is closed, is the peer's fault",
          "[net]") {
  auto [here, there] = make_message_sockets();
  std::array<std::byte, 2> two{};
  for (const size_t size : {1, 3}) {
    const std::array<std::byte, 3> sent{};
    send_message(there.get(), std::span(sent).first(size), -1, "rank 0", before_long());
    const Caught caught =
        error_of([&] { receive_message(here.get(), two, "rank 1", before_long()); });
    CHECK(caught.kind == ErrorKind::kPeer);
    CHECK(caught.says("bytes, not 2"));
  }
  there.reset();
  CHECK(error_of([&] {
          receive_message(here.get(), two, "rank 1", before_long());
        }).says("receive a descriptor from rank 1: it closed the connection"));
}

TEST_CASE("a descriptor that this process may not open is its limit's fault", "[net]") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const Fd here(ends[0]), there(ends[1]);
  send_fd(there.get(), there.get(), "rank 0", before_long());
  send_fd(there.get(), there.get(), "rank 0", before_long());
  CHECK(receive_fd(here.get(), "rank 1", before_long()).valid());
  const Caught caught = [&] {
    const NoMoreFiles none;
    return error_of([&] { receive_fd(here.get(), "rank 1", before_long()); });
  }();
  CAPTURE(caught.message);
  CHECK(caught.kind == ErrorKind::kIo);
  CHECK(caught.says("receive a descriptor from rank 1: this process has "));
  CHECK(caught.says("(`ulimit -n`); raise it"));
}

}  // namespace gxp
