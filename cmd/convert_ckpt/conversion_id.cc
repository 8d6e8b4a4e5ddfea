#include "cmd/convert_ckpt/conversion_id.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/hash.h"

namespace gxp {
namespace {
namespace fs = std::filesystem;

std::string file_facts(const fs::path& path) {
  struct stat status = {};
  check_sys(::stat(path.c_str(), &status), "look at " + path.string());
  return fmt::format("{} {} {}.{:09}\n", path.string(), status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

// Of a file, or of all files below a directory.
std::vector<std::string> source_facts(const fs::path& source) {
  std::error_code error;
  if (!fs::is_directory(source, error)) return {file_facts(source)};
  std::vector<std::string> facts;
  for (const auto& entry : fs::recursive_directory_iterator(source, error)) {
    if (entry.is_regular_file(error)) facts.push_back(file_facts(entry.path()));
  }
  if (error) fail(ErrorKind::kIo, "list {}: {}", source.string(), error.message());
  std::ranges::sort(facts);
  return facts;
}

}  // namespace

std::string conversion_id(const ConvertOptions& options) {
  const fs::path source = fs::absolute(options.source).lexically_normal();
  std::string facts =
      fmt::format("{} {} {} {} {} {} {}\n", GXP_VERSION, options.to, int(options.dtype),
                  options.step, options.shards, options.max_shard_size, options.drop_optimizer);
  if (!options.map.empty()) facts += file_facts(fs::absolute(options.map));
  for (const std::string& fact : source_facts(source)) facts += fact;
  return hash_hex(std::as_bytes(std::span(facts)));
}

}  // namespace gxp
