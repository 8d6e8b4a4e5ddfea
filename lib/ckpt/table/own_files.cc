#include "lib/ckpt/own_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <exception>

#include "lib/base/error.h"
#include "lib/ckpt/native/export_directory.h"
#include "lib/ckpt/native/manifest.h"
#include "lib/ckpt/native/part_files.h"
#include "lib/ckpt/native/step_directory.h"
#include "lib/ckpt/native/unchanged_file.h"

namespace gxp {
namespace {

enum class Act { kLook, kRemove };

// Invalid, with errno, if the name is a link or no directory.
Fd open_real_directory(int parent, const char* name) {
  return Fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char digit) { return digit >= '0' && digit <= '9'; });
}

// What is done, and where: `below` is the part of the names that leads to the directory: "", "a/".
struct Sweep {
  OwnsFile owns;
  Act act;
  std::string below = "";
};

// The first entry of an open directory that is not gxp's or does not go away; "" if there is none.
std::string sweep(const Fd& directory, const std::string& path, const Sweep& rule);

std::string sweep_below(const Fd& parent, const std::string& path, const std::string& name,
                        const Sweep& rule) {
  const Fd directory = open_real_directory(parent.get(), name.c_str());
  if (!directory.valid()) return name;
  const std::string left = sweep(directory, path + "/" + name, rule);
  if (!left.empty()) return name + "/" + left;
  const bool gone =
      rule.act == Act::kLook || ::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0;
  return gone ? "" : name;
}

std::string sweep_entry(const Fd& parent, const std::string& path, const std::string& name,
                        const Sweep& rule) {
  struct stat status = {};
  if (::fstatat(parent.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) < 0)
    return errno == ENOENT ? "" : name;
  const bool is_top = rule.owns != is_checkpoint_file && rule.below.empty();
  if (S_ISDIR(status.st_mode) && is_top && is_step_entry(name))
    return sweep_below(parent, path, name, {is_checkpoint_file, rule.act});
  const std::string whole = rule.below + name;
  if (S_ISDIR(status.st_mode) && rule.owns(whole + "/"))
    return sweep_below(parent, path, name, {rule.owns, rule.act, whole + "/"});
  if (!S_ISREG(status.st_mode) || !rule.owns(whole)) return name;
  const bool gone = rule.act == Act::kLook || ::unlinkat(parent.get(), name.c_str(), 0) == 0;
  return gone || errno == ENOENT ? "" : name;
}

std::string sweep(const Fd& directory, const std::string& path, const Sweep& rule) {
  std::vector<std::string> names = list_names(directory.get(), path);
  // A manifest goes first, so that no checkpoint is seen half.
  std::stable_partition(names.begin(), names.end(),
                        [](const auto& name) { return name == kManifestName; });
  std::string first;
  for (const std::string& name : names) {
    const std::string left = sweep_entry(directory, path, name, rule);
    if (first.empty()) first = left;
  }
  return first;
}

std::string remove_directory(const std::string& path, OwnsFile owns) {
  const OwnDirectory directory = OwnDirectory::enter(path);
  const std::string left = sweep(directory.fd(), path, {owns, Act::kRemove});
  if (!left.empty())
    return fmt::format("{}/{} was not written by gxp, or cannot be removed", path, left);
  return ::rmdir(path.c_str()) == 0 ? "" : fmt::format("remove {}: {}", path, system_text(errno));
}

}  // namespace

bool is_data_file(std::string_view name) {
  return is_numbered_file(name, "shard-", ".bin") || is_numbered_file(name, "frozen-", ".bin");
}

bool is_checkpoint_file(std::string_view name) {
  return name == kManifestName || is_data_file(name) || is_shared_name(name) ||
         is_part_file(name) || is_export_file(name);
}

bool is_numbered_file(std::string_view name, std::string_view begin, std::string_view end) {
  constexpr std::string_view kMiddle = "-of-";
  if (name.size() < begin.size() + end.size()) return false;
  if (!name.starts_with(begin) || !name.ends_with(end)) return false;
  const std::string_view numbers =
      name.substr(begin.size(), name.size() - begin.size() - end.size());
  const size_t middle = numbers.find(kMiddle);
  return middle != std::string_view::npos && is_number(numbers.substr(0, middle)) &&
         is_number(numbers.substr(middle + kMiddle.size()));
}

OwnDirectory OwnDirectory::enter(const std::string& path) {
  OwnDirectory directory;
  directory.path_ = path;
  directory.fd_ = open_real_directory(AT_FDCWD, path.c_str());
  if (directory.fd_.valid()) return directory;
  const int cause = errno;
  if (!path_exists(path) || is_real_directory(path))
    fail(ErrorKind::kIo, "enter directory {}: {}", path, system_text(cause));
  fail(ErrorKind::kIo, "enter directory {}: a link or a file has that name; move it away", path);
}

std::unique_ptr<OutputFile> OwnDirectory::create(const std::string& name) const {
  auto file = std::make_unique<OutputFile>(path_ + "/" + name, fd_.get());
  struct stat status = {};
  check_sys(::fstat(fd_.get(), &status), "look at " + path_);
  // Not our own number, which a file server may have mapped to another one.
  if (status.st_uid != file->owner())
    fail(ErrorKind::kIo,
         "write into {}: it belongs to user {}, and gxp runs as user {}; remove it, or name "
         "another directory",
         path_, status.st_uid, file->owner());
  return file;
}

void OwnDirectory::sync() const {
  check_sys(::fsync(fd_.get()), fmt::format("sync directory {}", path_));
}

void blame_a_failed_rank(const std::string& path, const Error& error) {
  if (!path_exists(path))
    fail(ErrorKind::kPeer, "{}; a rank that failed has removed it", error.what());
}

std::string find_foreign(const OwnDirectory& directory, OwnsFile owns) {
  return sweep(directory.fd(), directory.path(), {owns, Act::kLook});
}

std::string remove_own(const std::string& path, OwnsFile owns) noexcept {
  try {
    struct stat status = {};
    if (::lstat(path.c_str(), &status) < 0)
      return errno == ENOENT ? "" : fmt::format("stat {}: {}", path, system_text(errno));
    if (!S_ISREG(status.st_mode)) return remove_directory(path, owns);
    return ::unlink(path.c_str()) == 0 ? ""
                                       : fmt::format("remove {}: {}", path, system_text(errno));
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace gxp
