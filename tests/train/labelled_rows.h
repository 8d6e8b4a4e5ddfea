// The rows of gpt2-accum with labels, in a file that goes away with its owner, as
// numpy.save(path, numpy.stack([tokens, labels], axis=1)) writes it.
#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "lib/data/dataset.h"
#include "tests/data/token_samples.h"
#include "tests/train/golden.h"

namespace gxp {

inline constexpr size_t kLabelledLength = 21;
inline constexpr int kLabelledStepRows = 24;

// Which token i of a row is to be predicted.
using IsPredicted = std::function<bool(size_t row, size_t i)>;

// That of tests/data/train/gpt2-labels/trace.py: the rows count uneven numbers of targets, and two
// neighbours of every six rows none.
inline bool is_predicted_unevenly(size_t row, size_t i) {
  return row % 6 < 4 && i >= 7 * row % 20 && (row + i) % 6 != 0;
}

class LabelledRows {
 public:
  explicit LabelledRows(const IsPredicted& is_predicted, size_t first = 0, size_t count = 144) {
    std::vector<int32_t> tokens(count * kLabelledLength), elements;
    std::ifstream file(golden_path("gpt2-accum", "tokens.i32"), std::ios::binary);
    file.seekg(std::streamoff(first * kLabelledLength * sizeof(int32_t)));
    REQUIRE(file.read(reinterpret_cast<char*>(tokens.data()),
                      std::streamsize(tokens.size() * sizeof(int32_t))));
    for (size_t row = 0; row < count; ++row) {
      const int32_t* const ids = tokens.data() + row * kLabelledLength;
      elements.insert(elements.end(), ids, ids + kLabelledLength);
      for (size_t i = 0; i < kLabelledLength; ++i)
        elements.push_back(is_predicted(first + row, i) ? ids[i] : kNoLabel);
    }
    directory_.write_numpy("rows.npy", "<i4", fmt::format("({}, 2, {})", count, kLabelledLength),
                           elements, 1);
  }
  [[nodiscard]] std::string path() const { return directory_ / "rows.npy"; }

 private:
  const TokenDirectory directory_;
};

// Settings for gpt2-accum: five steps of kLabelledStepRows rows of a file at one rate, on `world_size` ranks.
inline Settings labelled_steps(const std::string& path, int world_size, int grad_accum,
                               const Settings& more = {}) {
  return Settings{"data.train=" + path,
                  "train.steps=5",
                  fmt::format("train.grad_accum={}", grad_accum),
                  fmt::format("train.micro_batch={}", kLabelledStepRows / world_size / grad_accum),
                  "lr_schedule.name=constant",
                  "lr_schedule.warmup_steps=0"} +
         more;
}

}  // namespace gxp
