// What `gxp convert-ckpt` prints.
#pragma once

#include <vector>

#include "lib/ckpt/format.h"
#include "lib/ckpt/named_tensors.h"
#include "lib/report/report.h"
#include "lib/tools/checkpoints/compare.h"

namespace gxp {

// Format, step, world size and stage: what is known of all checkpoints.
void add_checkpoint_facts(const NamedTensors& tensors, Report& report);

// For --inspect: what is in it, in numbers, the model and why gxp does not train it, and a table of
// the tensors; with `hash`, of their SHA-256 too, which reads all of them.
void add_inspection(const NamedTensors& tensors, bool hash, Report& report);

// For --dry-run: the files that would be written.
void add_plan(const std::vector<PlannedFile>& files, Report& report);

// For --diff: how many tensors are alike, and a row for each.
void add_comparison(const std::vector<TensorComparison>& rows, Report& report);

}  // namespace gxp
