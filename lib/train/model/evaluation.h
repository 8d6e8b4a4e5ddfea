// The loss of data that a model does not train on.
#pragma once

#include <cstdint>

#include "lib/data/dataset.h"
#include "lib/train/model/rank_model.h"

namespace gxp {

// Of all ranks.
struct EvaluatedLoss {
  double sum = 0;        // nats
  uint64_t targets = 0;  // that count
  [[nodiscard]] double mean() const { return sum / double(targets); }
};

// [collective] Of all of the data's samples, once each; their number need not be a multiple of
// anything. kCorrupt: none of its targets counts.
EvaluatedLoss evaluate(RankModel& model, const Dataset& data);
// [collective] Of so many micro-batches per rank, which begin again where the data end.
EvaluatedLoss evaluate(RankModel& model, const Dataset& data, int micro_batches);

}  // namespace gxp
