#include "lib/ckpt/native/unchanged_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/native/step_directory.h"

namespace gxp {
namespace {

constexpr std::string_view kSharedEnd = ".same";

// Of a regular file; not of what a link points to.
std::optional<struct stat> look_at(const OwnDirectory& directory, const std::string& name) {
  struct stat status = {};
  const int flags = AT_SYMLINK_NOFOLLOW;
  if (::fstatat(directory.fd().get(), name.c_str(), &status, flags) < 0) return std::nullopt;
  return S_ISREG(status.st_mode) ? std::optional(status) : std::nullopt;
}

// Whether the manifest has the file's hash: then it is worth to read the file.
bool lists(const OwnDirectory& step, const DataFile& file) {
  const std::string text = read_text(step.path() + "/" + kManifestName, kMaxManifestBytes);
  return text.find("\"" + file.hash + "\"") != std::string::npos;
}

// Whether the file of that name in `step` may be the one in `partial`.
bool is_likely(const OwnDirectory& step, const OwnDirectory& partial, const DataFile& file) {
  const auto older = look_at(step, file.name), newer = look_at(partial, file.name);
  return older && newer && uint64_t(older->st_size) == file.bytes &&
         older->st_uid == newer->st_uid && older->st_ino != newer->st_ino && lists(step, file);
}

// What has the name in the partial directory now is what was linked, whatever happens to the step.
bool replace_if_same(const OwnDirectory& partial, const std::string& shared, const DataFile& file) {
  const int directory = partial.fd().get();
  return look_at(partial, shared) &&
         hash_of(InputFile(partial.path() + "/" + shared)) == file.hash &&
         ::renameat(directory, shared.c_str(), directory, file.name.c_str()) == 0;
}

bool share(const OwnDirectory& partial, const DataFile& file, const std::string& dir) {
  const auto steps = complete_steps(dir);
  if (file.bytes == 0 || steps.empty()) return false;
  const OwnDirectory step = OwnDirectory::enter(step_path(dir, steps.back()));
  if (!is_likely(step, partial, file)) return false;
  const std::string shared = file.name + std::string(kSharedEnd);
  const int directory = partial.fd().get();
  if (::linkat(step.fd().get(), file.name.c_str(), directory, shared.c_str(), 0) < 0) {
    log_info("{}/{} is unchanged but stored twice, since it cannot be hard-linked: {}", step.path(),
             file.name, system_text(errno));
    return false;
  }
  bool same = false;
  try {
    same = replace_if_same(partial, shared, file);
  } catch (const Error& error) {
    log_info("{}/{} is stored twice: {}", step.path(), file.name, error.what());
  }
  if (!same) ::unlinkat(directory, shared.c_str(), 0);
  return same;
}

}  // namespace

bool share_unchanged(const OwnDirectory& partial, const DataFile& file,
                     const std::string& dir) noexcept {
  try {
    return share(partial, file, dir);
  } catch (const std::exception&) {
    return false;  // of the older checkpoint: who reads it is told
  }
}

bool is_shared_name(std::string_view name) {
  if (!name.ends_with(kSharedEnd)) return false;
  name.remove_suffix(kSharedEnd.size());
  return is_data_file(name);
}

}  // namespace gxp
