// Runs of tests/data/train as a user would start them: a run file in a directory of its own.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cmd/run_gxp.h"
#include "tests/temporary_directory.h"

namespace gxp {

class GoldenRun {
 public:
  // Writes the run file of a folder's spec.json, with `micro_batch` rows per rank.
  explicit GoldenRun(const std::string& folder = "gpt2-accum", int micro_batch = 1);

  // A path in the run's directory, which is gone with this object.
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ / name; }
  [[nodiscard]] std::string golden(const std::string& file) const;
  // "train RUN_FILE --metrics FILE" and more arguments.
  [[nodiscard]] std::vector<std::string> train(const std::vector<std::string>& more = {}) const;
  Outcome run(const std::vector<std::string>& more = {},
              const Surroundings& surroundings = {}) const {
    return run_gxp(train(more), surroundings);
  }
  // The lines of the metrics file; one that is still being written is left out.
  [[nodiscard]] std::vector<nlohmann::json> metrics() const;
  // The bytes of the newest checkpoint's weights as `gxp convert-ckpt` writes them.
  std::string weights() const;

 private:
  std::string folder_;
  TemporaryDirectory directory_;
};

std::string read_file(const std::string& path);
void make_file(const std::string& path, const std::string& bytes);

}  // namespace gxp
