// Documents as packed rows, and as rows of their own, for runs that train on either.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lib/train/run_data.h"
#include "tests/data/document_dataset.h"
#include "tests/data/token_samples.h"
#include "tests/train/golden.h"

namespace gxp {

inline constexpr size_t kPackedRows = 8;
inline constexpr size_t kPackedLength = 21;  // of a row: data.sequence + 1

class PackedDocuments {
 public:
  explicit PackedDocuments(int vocab_size) : vocab_size_(vocab_size) {
    std::mt19937 random(4);
    std::vector<int32_t> packed, apart;
    for (const DocumentPlace& place : places_of(lengths_)) {
      std::vector<int32_t> row(kPackedLength), labels(kPackedLength, kNoLabel);
      for (size_t i = 0; i < place.length; ++i)
        labels[i] = row[i] = int32_t(random() % unsigned(vocab_size));
      packed.insert(packed.end(), row.begin(), row.begin() + std::ptrdiff_t(place.length));
      for (const auto& plane : {row, labels}) apart.insert(apart.end(), plane.begin(), plane.end());
    }
    directory_.write("packed.i32", packed);
    directory_.write_numpy("apart.npy", "<i4", fmt::format("({}, 2, {})", count(), kPackedLength),
                           apart, 1);
  }

  [[nodiscard]] size_t count() const { return places_of(lengths_).size(); }
  // Of a run of steps of all packed rows.
  [[nodiscard]] Settings settings() const {
    return {"data.train=" + directory_ / "packed.i32",
            fmt::format("data.sequence={}", kPackedLength - 1),
            fmt::format("train.micro_batch={}", kPackedRows),
            "train.grad_accum=1",
            "train.steps=3",
            "lr_schedule.name=constant",
            "lr_schedule.warmup_steps=0"};
  }
  // Of one of steps of all documents, each in a row of its own; on one rank.
  [[nodiscard]] Settings settings_apart() const {
    return settings() + Settings{"data.train=" + directory_ / "apart.npy",
                                 fmt::format("train.micro_batch={}", count())};
  }
  // Of the packed rows, whose documents are known.
  [[nodiscard]] std::unique_ptr<const Dataset> dataset() const {
    return std::make_unique<const DocumentDataset>(
        directory_ / "packed.i32", RunEncoder(run_of_rows(int(kPackedLength) - 1, vocab_size_)),
        lengths_);
  }
  [[nodiscard]] RunData data() const { return {dataset(), nullptr}; }

 private:
  const int vocab_size_;
  const TokenDirectory directory_;
  const DocumentLengths lengths_ = random_lengths(kPackedRows, kPackedLength, 12, 5);
};

}  // namespace gxp
