#include "lib/base/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

std::string_view kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

std::string read_all(int fd, size_t limit, std::string_view act) {
  std::string text;
  std::array<char, 1 << 16> piece;
  while (const long got = check_sys(::read(fd, piece.data(), piece.size()), act)) {
    text.append(piece.data(), size_t(got));
    if (text.size() > limit) {
      fail(ErrorKind::kCorrupt, "{}: it has more than {}; is it the right file?", act,
           format_bytes(limit));
    }
  }
  return text;
}

}  // namespace

Fd open_regular_file(const std::string& path, std::string_view act) {
  // O_NONBLOCK: to open a pipe would wait for its writer.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  Fd fd(int(check_sys(::open(path.c_str(), kFlags), act)));
  struct stat status {};
  check_sys(::fstat(fd.get(), &status), act);
  if (S_ISDIR(status.st_mode)) fail(ErrorKind::kIo, "{}: {}", act, system_text(EISDIR));
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorKind::kIo, "{}: it is {}, not a regular file; copy its contents to one", act,
         kind_of(status.st_mode));
  }
  return fd;
}

std::string read_text_file(const std::string& path, size_t limit, std::string_view what) {
  const std::string act = fmt::format("read {}{}{}", what, what.empty() ? "" : " ", path);
  return read_all(open_regular_file(path, act).get(), limit, act);
}

std::string read_standard_input(size_t limit) {
  return read_all(STDIN_FILENO, limit, "read standard input");
}

void write_fully(int fd, std::string_view text, std::string_view act) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    text.remove_prefix(size_t(check_sys(count, act)));
  }
}

}  // namespace gxp
