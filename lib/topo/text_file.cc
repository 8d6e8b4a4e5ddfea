#include "lib/topo/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace gxp {

std::string read_text_file(const std::string& path, size_t limit) {
  const std::string act = fmt::format("read {}", path);
  const Fd fd(int(check_sys(::open(path.c_str(), O_RDONLY | O_CLOEXEC), act)));
  std::string text;
  std::array<char, 1 << 16> piece;
  while (const long got = check_sys(::read(fd.get(), piece.data(), piece.size()), act)) {
    text.append(piece.data(), size_t(got));
    if (text.size() > limit) {
      fail(ErrorKind::kCorrupt, "{}: it has more than {}; is it the right file?", act,
           format_bytes(limit));
    }
  }
  return text;
}

}  // namespace gxp
