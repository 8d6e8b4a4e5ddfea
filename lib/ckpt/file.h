// Files that checkpoints are made of: read by position, written once and made durable.
//
// Reading is pread, not a mapping: a file that shrinks or a disk that fails is an error here, where
// a mapping would end the process (SIGBUS).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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
  // Replaces a file of that name, and a link itself, not what it points to.
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();
  void write(ConstMemory data);
  void write(std::string_view text);
  [[nodiscard]] uint64_t bytes() const { return bytes_; }  // written so far
  // Makes the content durable (fsync) and keeps the file. Returns the hash of all that was written.
  std::string close();

 private:
  std::string path_;
  Fd fd_;
  uint64_t bytes_ = 0;
  Hasher hasher_;
};

// The whole file as text. kCorrupt if it is larger than `limit`.
std::string read_text(const std::string& path, uint64_t limit);
void write_text(const std::string& path, std::string_view text);

// Creates the directory and its parents; existing ones are fine. kIo otherwise.
void create_directory(const std::string& path);

// Makes names that were created, renamed or removed in `directory` durable.
void sync_directory(const std::string& directory);

// Moves `from` to `to` in one step, both in one directory, and makes that durable. What `to` named
// before is removed; where the file system can exchange two names, `to` exists at every moment.
void replace_path(const std::string& from, const std::string& to);

// One component of a path: not empty, no '/', no NUL, not "." or "..". File names that stand inside
// files must pass it, so that no file can point outside its directory.
bool is_plain_name(std::string_view name);

}  // namespace gxp
