#include "lib/data/files/source_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/text_file.h"

namespace gxp {

SourceFile::SourceFile(std::string path, std::optional<uint64_t> bytes) : path_(std::move(path)) {
  const std::string act = fmt::format("read data from {}", path_);
  fd_ = open_regular_file(path_, act);
  struct stat status = {};
  check_sys(::fstat(fd_.get(), &status), act);
  bytes_ = bytes.value_or(uint64_t(status.st_size));
}

void SourceFile::read(uint64_t at, std::span<std::byte> out) const {
  for (size_t done = 0; done < out.size();) {
    const ssize_t got = ::pread(fd_.get(), out.data() + done, out.size() - done, off_t(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ErrorKind::kIo, "read data from {}: {}", path_, system_text(errno));
    if (got == 0)
      fail(ErrorKind::kCorrupt,
           "read data from {}: it now ends at byte {}, and had {} bytes when it was opened; do "
           "not change files while a run reads them",
           path_, at + done, bytes_);
    done += size_t(got);
  }
}

std::string content_hash(const std::string& path) {
  constexpr size_t kPiece = size_t{1} << 20;  // fits the second-level cache of a core
  const SourceFile file(path);
  std::vector<std::byte> buffer(std::min<uint64_t>(kPiece, file.bytes()));
  Hasher hasher;
  for (uint64_t at = 0; at < file.bytes(); at += buffer.size()) {
    const auto piece =
        std::span(buffer).first(std::min<uint64_t>(buffer.size(), file.bytes() - at));
    file.read(at, piece);
    hasher.update(piece);
  }
  return hasher.hex();
}

}  // namespace gxp
