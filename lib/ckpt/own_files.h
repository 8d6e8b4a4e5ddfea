// Directories and files that gxp may enter and remove in checkpoint directories.
//
// Others may have put something there, by mistake or on purpose: a link in place of a directory
// that gxp is about to fill or to clear would lead it to someone else's files. gxp therefore enters
// only real directories, and removes only regular files with names that gxp gives. All other files
// are reported, not removed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/ckpt/file.h"

namespace gxp {

// Whether a file of that name is one that gxp writes. A file below the directory has the name
// "a/b.pt"; a directory is gxp's if "a/" is, and entered only then. Besides those, directories of
// steps (step_directory.h) with files of a checkpoint in them are gxp's.
using OwnsFile = bool (*)(std::string_view name);

// In a step directory: "manifest.json", "shard-00000-of-00002.bin", "frozen-00000-of-00002.bin",
// "part-00000-of-00002.json", and what has such names for a while; below it, the files of
// "huggingface/" (export_directory.h).
bool is_checkpoint_file(std::string_view name);
// The second and the third.
bool is_data_file(std::string_view name);
// "BEGIN00001-of-00003END": one file of several.
bool is_numbered_file(std::string_view name, std::string_view begin, std::string_view end);

class OwnDirectory {
 public:
  OwnDirectory() = default;
  // kIo: a link or no directory is there, or the system's reason.
  static OwnDirectory enter(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const Fd& fd() const { return fd_; }
  // A new file, which must not outlive the directory. kIo also if the directory is another user's,
  // who could change the file.
  [[nodiscard]] std::unique_ptr<OutputFile> create(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names() const { return list_names(fd_.get(), path_); }
  void sync() const;

 private:
  std::string path_;
  Fd fd_;
};

// kPeer if `path`, the partial directory in which `error` occurred or a complete file there, has
// gone: a failed rank has removed it, and reports the cause.
void blame_a_failed_rank(const std::string& path, const Error& error);

// The first entry that is not gxp's, by its path in the directory; "" if all are. kIo.
std::string find_foreign(const OwnDirectory& directory, OwnsFile owns);

// Removes the regular file `path`; or of the directory `path` what is gxp's, and, if nothing is
// left, the directory. Returns what is left and why, "" if all is gone or nothing was there.
std::string remove_own(const std::string& path, OwnsFile owns) noexcept;

}  // namespace gxp
