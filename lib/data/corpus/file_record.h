// What was found out about a file by reading all of it, kept until the file changes, so that the
// ranks of a host, and later runs, need not read it again.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/fd.h"

namespace gxp {

// What a file system says of a file: its device and inode, its size, when its content was changed
// and when all this was. The last time cannot be set, so that another content has another stamp.
// "": there is none to rely on, for the file was changed within the last two seconds, and times have
// steps. kIo: the file is missing.
std::string file_stamp(const std::string& path);

// A small file that one process at a time holds, with flock(); the others wait, and a line of the log
// says so. Threads: one at a time.
class FileRecord {
 public:
  // `act`: what its holder does, for the log: "reads corpus.jsonl". kIo: it cannot be made, or is
  // not readable.
  FileRecord(std::string path, std::string_view act);

  // What note() has kept for this stamp; "": nothing, or for another stamp.
  [[nodiscard]] std::string find(std::string_view stamp) const;
  // Keeps a line of text; without a stamp, nothing. A file system that refuses it costs time later,
  // and a warning.
  void note(std::string_view stamp, std::string_view text);

 private:
  std::string path_;
  Fd fd_;
};

}  // namespace gxp
