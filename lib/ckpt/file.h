// Files that checkpoints are made of: read by position, written once and made durable.
//
// Reading is pread, not a mapping: a file that shrinks or a disk that fails is an error here, where
// a mapping would end the process (SIGBUS).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/fd.h"
#include "lib/base/hash.h"
#include "lib/device/memory.h"

namespace gxp {

// Threads: const functions from any.
class InputFile {
 public:
  // kIo: missing, not readable, or no regular file (a pipe could block for ever).
  explicit InputFile(std::string path);
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }  // when it was opened
  // Fills all of `out` from `offset` on. kCorrupt: the file ends before; kIo: the system's reason.
  void read(uint64_t offset, Memory out) const;

 private:
  std::string path_;
  Fd fd_;
  uint64_t bytes_ = 0;
};

// A new file, removed again by the destructor unless close() returned.
// Errors: kIo, naming the path, the bytes and the system's reason ("No space left on device").
class OutputFile {
 public:
  // Replaces a file of that name; replaces a link itself, not its target. With `directory`, a
  // descriptor of the directory in which `path` lies, the directory is not looked up again, so a
  // link put in its place has no effect. The caller keeps it open.
  explicit OutputFile(std::string path, int directory = -1);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();
  void write(ConstMemory data);
  void write(std::string_view text);
  [[nodiscard]] uint64_t bytes() const { return bytes_; }  // written so far
  [[nodiscard]] uint32_t owner() const { return owner_; }  // user, as the file system sees us
  // Makes the content durable (fsync) and keeps the file. Returns the hash of all that was written.
  std::string close();

 private:
  void remove() const noexcept;
  void start_writeback();

  std::string path_;
  int directory_;
  std::string name_;  // in directory_
  Fd fd_;
  uint32_t owner_ = 0;
  uint64_t bytes_ = 0;
  uint64_t submitted_ = 0;  // bytes that the disk has been asked for
  Hasher hasher_;
};

// hash_hex() of the content. Cost: reads all of it through a buffer of 4 MiB.
std::string hash_of(const InputFile& file);
// The whole file as text. kCorrupt if it is larger than `limit`.
std::string read_text(const std::string& path, uint64_t limit);
void write_text(const std::string& path, std::string_view text);
// A new file with the content of another regular one.
void copy_file(const std::string& from, const std::string& to);

// Whether anything has this name, even a dangling link. kIo if this cannot be determined.
bool path_exists(const std::string& path);
// Whether `path` itself is a directory; not so a link to one.
bool is_real_directory(const std::string& path);
// The parent directory of `path`, "." for a bare name.
std::string parent_of(const std::string& path);
// The names in an open directory, sorted, without "." and "..". kIo names `path`.
std::vector<std::string> list_names(int directory, const std::string& path);

// Creates the directory and its parents and makes the new names durable; existing ones are fine.
// kIo otherwise.
void create_directory(const std::string& path);
// Creates one directory; kIo if anything with this name exists.
void create_new_directory(const std::string& path);

// Makes names that were created, renamed or removed in `directory` durable.
void sync_directory(const std::string& directory);

// Moves `from` to `to`, both in one directory, and makes that durable. Returns the new path of the
// previous `to`, for the caller to remove; "" if there is none. If the file system can exchange two
// names, `to` exists at all times. Elsewhere (NFS) an old directory is first renamed to
// aside_path(to), which must be free: if the process ends before `from` has taken its place, it
// lies there whole, until take_back().
std::string replace_path(const std::string& from, const std::string& to);
std::string aside_path(const std::string& path);  // "DIR/.replaced-NAME"
// Renames aside_path(path) to `path` if only the former is there. Returns whether it was so.
bool take_back(const std::string& path);

// One component of a path: not empty, no '/', no NUL, not "." or "..". File names that stand inside
// files must pass it, so that no file can point outside its directory.
bool is_plain_name(std::string_view name);

}  // namespace gxp
