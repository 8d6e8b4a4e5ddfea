// Which sample is at each position of the endless sequence that a run reads: the order of all
// samples (sample_order.h) or, where data.weights mixes the entries of data.train, that of
// source_mixer.h.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "lib/data/dataset.h"
#include "lib/data/sample_order.h"
#include "lib/data/source_mixer.h"

namespace gxp {

class DataOrder {
 public:
  // Of data without weights; for at() alone.
  DataOrder(SampleOrder order) : order_(order) {}  // NOLINT(google-explicit-constructor)
  // config.weights has one for each entry of `data`, or none.
  DataOrder(const DataConfig& config, uint64_t seed, const Dataset& data);

  [[nodiscard]] uint64_t at(uint64_t position) const;
  // How often the first `position` samples have read each entry of data.train, where weights mix
  // them, else all data.
  [[nodiscard]] std::vector<double> epochs(uint64_t position) const;

 private:
  std::variant<SampleOrder, SourceMixer> order_;
  std::vector<uint64_t> first_samples_;  // of each entry
};

}  // namespace gxp
