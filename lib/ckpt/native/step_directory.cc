#include "lib/ckpt/native/step_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <set>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/native/manifest.h"

namespace gxp {
namespace {

constexpr std::string_view kPartialEnd = ".partial";

// The number in "step-00000010", if the name is one that step_name() makes.
std::optional<uint64_t> parse_step(std::string_view name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  uint64_t step = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return name == step_name(step) ? std::optional(step) : std::nullopt;
}

// The same of a name that replace_path() gives.
std::optional<uint64_t> parse_aside(std::string_view name) {
  const std::string prefix = aside_path("");
  return name.starts_with(prefix) ? parse_step(name.substr(prefix.size())) : std::nullopt;
}

// A listing may have been made before a directory went, so that a name which is gone is no error.
bool leads_nowhere(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

}  // namespace

std::string step_name(uint64_t step) { return fmt::format("step-{:08}", step); }

std::string partial_name(uint64_t step) {
  return fmt::format(".{}{}", step_name(step), kPartialEnd);
}

std::string data_file_name(int rank, int files, bool frozen) {
  return fmt::format("{}-{:05}-of-{:05}.bin", frozen ? "frozen" : "shard", rank, files);
}

std::string partial_path(const std::string& dir, uint64_t step) {
  return dir + "/" + partial_name(step);
}

bool is_partial_name(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kPartialEnd)) return false;
  name.remove_suffix(kPartialEnd.size());
  return name.size() > 1 && parse_step(name.substr(1)).has_value();
}

bool is_step_entry(std::string_view name) {
  return parse_step(name) || parse_aside(name) || is_partial_name(name);
}

bool has_manifest(const std::string& directory) {
  const std::string path = directory + "/" + kManifestName;
  struct stat status = {};
  std::string cause = "not a regular file";
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISREG(status.st_mode)) return true;
  } else {
    cause = system_text(errno);
    if (errno == ENOENT && !leads_nowhere(directory) && !leads_nowhere(path)) return false;
  }
  fail(ErrorKind::kIo,
       "look for a checkpoint at {}: {}; it may be the newest: make it readable, or move it away",
       path, cause);
}

std::vector<uint64_t> complete_steps(const std::string& dir) {
  const Fd directory(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() && errno == ENOENT) return {};
  if (!directory.valid())
    fail(ErrorKind::kIo, "look for checkpoints in {}: {}; fix it, or set another directory", dir,
         system_text(errno));
  std::set<uint64_t> steps;
  for (const std::string& name : list_names(directory.get(), dir)) {
    const auto step = name.starts_with('.') ? parse_aside(name) : parse_step(name);
    if (step && has_manifest(step_path(dir, *step))) steps.insert(*step);
  }
  return {steps.begin(), steps.end()};
}

std::string step_path(const std::string& dir, uint64_t step) {
  std::string path = fmt::format("{}/{}", dir, step_name(step));
  if (has_manifest(path)) return path;
  const std::string aside = aside_path(path);
  return has_manifest(aside) ? aside : path;
}

}  // namespace gxp
