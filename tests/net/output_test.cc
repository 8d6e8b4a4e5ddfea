#include "lib/net/socket/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>

#include "lib/base/fd.h"
#include "tests/catch.h"

namespace gxp {
namespace {

// A pipe of 4 KiB.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_NONBLOCK) == 0);
    read = Fd(ends[0]);
    write = Fd(ends[1]);
    ::fcntl(write.get(), F_SETPIPE_SZ, 4096);
  }
  [[nodiscard]] std::string take() const {
    std::array<char, 4096> bytes;
    const ssize_t count = ::read(read.get(), bytes.data(), bytes.size());
    return {bytes.data(), size_t(count < 0 ? 0 : count)};
  }
  Fd read;
  Fd write;
};

}  // namespace

TEST_CASE("a full disk is remembered, a reader that leaves is not", "[net]") {
  std::signal(SIGPIPE, SIG_IGN);
  const Fd full(::open("/dev/full", O_WRONLY));
  Output out(full.get());
  out.add("a result\n");
  out.flush();
  CHECK(out.error() == ENOSPC);
  CHECK_FALSE(out.pending());
  Pipe pipe;
  pipe.read.reset();
  Output left(pipe.write.get());
  left.add("a result\n");
  left.flush();
  CHECK(left.error() == 0);
}

TEST_CASE("after a disk was full a log goes on, and results do not", "[net]") {
  const size_t most_kept = GENERATE(0, 10000);
  const Fd full(::open("/dev/full", O_WRONLY));
  const Pipe pipe;
  const Fd disk(::dup(full.get()));
  Output out(disk.get(), most_kept);
  out.add("lost\n");
  out.flush();
  REQUIRE(::dup2(pipe.write.get(), disk.get()) == disk.get());
  out.add("after\n");
  out.flush();
  CHECK(pipe.take() == (most_kept == 0 ? "" : "after\n"));
}

TEST_CASE("lines beyond the limit are dropped and counted, the others arrive in order", "[net]") {
  const Pipe pipe;
  Output out(pipe.write.get(), 10000);
  const std::string line(99, 'x');
  for (int i = 0; i < 200; ++i) {
    out.add(line + "\n");
    out.flush();
  }
  std::string text;
  for (std::string piece = pipe.take(); !piece.empty(); piece = pipe.take()) {
    text += piece;
    out.flush();
  }
  CHECK(text.size() < 16000);
  CHECK(text.starts_with(line + "\n" + line));
  CHECK(text.ends_with(" lines were dropped here, since their reader was too slow\n"));
  CHECK_FALSE(out.pending());
}

TEST_CASE("results are kept, however far the reader is behind", "[net]") {
  const Pipe pipe;
  Output out(pipe.write.get());
  std::string all, text;
  for (int i = 0; i < 20000; ++i) {
    all += std::to_string(i) + "\n";
    out.add(std::to_string(i) + "\n");
    out.flush();
  }
  for (std::string piece = pipe.take(); !piece.empty(); piece = pipe.take()) {
    text += piece;
    out.flush();
  }
  CHECK(text == all);
}

}  // namespace gxp
