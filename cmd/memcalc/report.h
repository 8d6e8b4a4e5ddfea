// The output of gxp memcalc: a table of results and, on request, a table that explains them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/report/report.h"
#include "lib/tools/planner/compatibility.h"
#include "lib/tools/planner/padding.h"
#include "lib/tools/planner/predict_memory.h"
#include "lib/tools/planner/quantities.h"

namespace gxp {

// How byte counts are shown in text: one unit for all tables.
struct Unit {
  std::string name;  // "GiB"
  Style style;
};

Column bytes_column(const char* key, const char* heading, const Unit& unit);

// kUsage if it is none of GB, GiB, MB, MiB.
Unit find_unit(const std::string& name);

struct MemcalcView {
  Unit unit;
  bool explain = false;
  std::optional<uint64_t> limit_bytes;  // of one GPU: what is larger does not fit
};

// JSON: results[] of {gpus, stage, parameters_bytes, gradients_bytes, master_weights_bytes,
// moments_bytes, optimizer_bytes (the two before)[, activations_bytes, logits_bytes, buffers_bytes,
// context_bytes], total_bytes[, fits, binding (the largest part)]}, of one GPU; terms[] of {gpus,
// stage, component, formula, numbers, bytes, source}. For a single case that does not fit,
// changes[] of {change, total_bytes, saved_bytes}: changes that make it fit.
void add_memory(Report& report, const std::vector<TrainCase>& cases, const MemcalcView& view);

// JSON: results[] of {gpus, stage, options, total_bytes, host_bytes, printed[, fits]}; terms[] as
// above, with options.
void add_answers(Report& report, const Calculator& calculator,
                 const std::vector<CalculatorInput>& inputs, const MemcalcView& view);

// The smallest number of GPUs per stage. JSON: results[] of {stage, gpus, total_bytes, fits}; where
// no number fits, gpus is null and total_bytes those on as many GPUs as a job may have.
void add_least_gpus(Report& report, const std::vector<TrainCase>& cases, const MemcalcView& view);

// JSON: results[] of {gpus, stage, option, value, total_bytes, next_total_bytes, binding}: the
// largest value that fits, null if none does; with one more the bytes, and the largest part.
void add_most(Report& report, const Quantity<ModelPlan>& quantity,
              const std::vector<TrainCase>& cases, const MemcalcView& view);

// The padding that shards add to the model, for each number of GPUs. JSON: padding[] of {gpus,
// layout, elements, percent, meaning}.
void add_padding(Report& report, const PublishedModel& model, const std::vector<int>& gpus);

// The published models that fit: their states on `gpus` GPUs, at the lowest stage at which they
// fit. JSON: fits[] of {name, parameters, gpus, stage, total_bytes}; stage is null where none fits,
// and total_bytes then of stage 3.
void add_fitting_models(Report& report, Training training, const std::vector<int>& gpus,
                        const MemcalcView& view);

// JSON: models[] of {name, parameters, layers, hidden, ..., source}.
void add_published_models(Report& report);

}  // namespace gxp
