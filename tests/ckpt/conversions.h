// What the tests of checkpoints of other programs share: conversions, and what is refused.
#pragma once

#include <filesystem>
#include <string>

#include "lib/ckpt/format.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {

// What is read of `source` as `format` in place of what is at `path`.
inline NamedTensors converted(const NamedTensors& source, const std::string& format,
                              const std::string& path, const WriteOptions& options = {}) {
  std::filesystem::remove_all(path);
  write_checkpoint(source, find_format(format), path, options);
  return read_checkpoint(path);
}

// Why the format does not take `source`.
inline std::string refused_conversion(const NamedTensors& source, const std::string& format,
                                      const TemporaryDirectory& dir) {
  const auto error =
      error_of([&] { write_checkpoint(source, find_format(format), dir / "refused", {}); });
  CHECK(error.kind == ErrorKind::kConfig);
  CHECK_FALSE(std::filesystem::exists(dir / "refused"));
  return error.message;
}

}  // namespace gxp
