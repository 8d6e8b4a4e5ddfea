// A tar.gz of the tests' data, unpacked to a directory of the test's own.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tests/temporary_directory.h"

namespace gxp {

class Unpacked {
 public:
  explicit Unpacked(const std::string& archive) {
    const std::string command = "tar -xzf '" + archive + "' -C '" + directory_.path() + "'";
    if (std::system(command.c_str()) != 0) throw std::runtime_error(command + " failed");
  }
  [[nodiscard]] const std::string& path() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace gxp
