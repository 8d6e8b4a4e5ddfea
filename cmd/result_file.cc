#include "cmd/result_file.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "lib/base/error.h"
#include "lib/base/text/visible_text.h"

namespace gxp {

void write_stdout(const std::string& text) {
  const std::string shown = visible(text, "\n\t");
  const bool written = std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size();
  if (!written || std::fflush(stdout) != 0)
    fail(ErrorKind::kIo, "write to stdout: the OS refused it");
}

void check_writable(const std::string& path) {
  if (path.empty()) return;
  std::error_code error;
  const bool is_new = !std::filesystem::exists(std::filesystem::symlink_status(path, error));
  const bool can_write = bool(std::ofstream(path, std::ios::app));
  if (is_new && can_write) std::filesystem::remove(path, error);  // there is no result yet
  if (!can_write)
    fail(ErrorKind::kIo, "write {}: it cannot be opened; does its directory exist?", path);
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) fail(ErrorKind::kIo, "write {}: the OS refused it", path);
}

}  // namespace gxp
