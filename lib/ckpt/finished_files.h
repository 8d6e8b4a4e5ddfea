// The complete files of a conversion, so that an interrupted conversion continues with the others.
// A file in the directory that is being written lists them: a line that names the conversion, then
// "HASH BYTES NAME" for each file, when that is durable. The directory loses it before it is
// published.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/fd.h"
#include "lib/ckpt/format.h"

namespace gxp {

inline constexpr std::string_view kFinishedFiles = ".finished";

class FinishedFiles {
 public:
  // Makes the directory, or, with options.resume, enters the one that an earlier attempt at
  // options.conversion has left. kIo: anything else has this name.
  static FinishedFiles enter(const std::string& directory, const WriteOptions& options);
  // Whether `directory` exists, belongs to this user and has a record of this conversion.
  static bool are_of(const std::string& conversion, const std::string& directory);
  // Without a record, does nothing.
  static void forget(const std::string& directory);

  struct File {
    uint64_t bytes;
    std::string hash;
  };
  // The file of that name in the directory, if it is recorded and has these bytes still: reads it.
  [[nodiscard]] std::optional<File> find(const std::string& name) const;
  // kIo.
  void add(const std::string& name, const File& file);

 private:
  explicit FinishedFiles(std::string directory) : directory_(std::move(directory)) {}

  void append(const std::string& text) const;

  std::string directory_;
  std::map<std::string, File> earlier_;
  Fd record_;  // appended to
};

}  // namespace gxp
