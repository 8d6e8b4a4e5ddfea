// The options of gxp memcalc, as typed, and values derived from them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/report/report.h"
#include "lib/tools/planner/compatibility.h"
#include "lib/tools/planner/model_file.h"
#include "lib/tools/planner/train_plan.h"

namespace CLI {
class App;
}

namespace gxp {

// What --solve finds: GPUs, or the row of model_quantities() or run_quantities() with that name.
enum class Unknown : uint8_t { kGpus, kBatch, kSequence, kLayers };
inline constexpr std::array<std::string_view, 4> kUnknowns = {"gpus", "batch", "seq", "layers"};
constexpr std::string_view name_of(Unknown unknown) { return kUnknowns[size_t(unknown)]; }

struct MemcalcOptions {
  std::string model;  // a published model's name, its files or a run file; "" with --params
  std::optional<ModelFile> file{};  // what `model` names, if that is a file of a model
  std::string params;               // "7e9", "7B"
  std::string stages;               // "2" or "0,1,2,3"; "": all that there is an answer for
  std::string gpus;                 // "8" or "1,8,64"
  std::vector<std::string> sets;    // of a run file
  int nnodes = 1;                   // hosts of a run file's GPUs
  std::string svg;                  // file for a picture; "": none
  std::string precision = "bf16";
  std::string optimizer = "adamw";
  std::string compat;
  std::string largest_layer;
  int gpus_per_host = 0;
  int sequence = 0;                      // tokens; 0: model states alone
  TrainPlan plan = {.accumulation = 0};  // all but stage, GPUs and sequence
  std::string software = "megatron";
  bool padding = false;
  std::string limit;
  std::optional<Unknown> solve;
  std::string unit = "GiB";
  bool explain = false;
  bool list = false;
  Format format = Format::kText;
};

void add_memcalc_options(CLI::App& app, MemcalcOptions& options);

// Reads MODEL if it names files. Errors: as read_model_file().
void read_model(MemcalcOptions& options);

// kUsage if options exclude each other, or one lacks another. `app` knows which were given.
void check(const CLI::App& app, const MemcalcOptions& options);
// kUsage for an option that does not go with a run file.
void check_run_options(const CLI::App& app, const MemcalcOptions& options);

// Whether MODEL is a run file: it ends in .toml.
bool asks_for_run(const MemcalcOptions& options);

// The model that is asked about; null where only the number of its parameters is known.
const PublishedModel* model_of(const MemcalcOptions& options);

// GPUs that one copy of the model is cut over before anything is sharded.
int model_parallel_of(const MemcalcOptions& options);

// The numbers of GPUs that are asked about; without --gpus those that suit the question.
std::vector<int> gpus_of(const MemcalcOptions& options);

uint64_t parameters_of(const MemcalcOptions& options);
// Every GPU count with every stage, in that order. Each is possible; their model is `options`' own.
std::vector<TrainCase> cases_of(const MemcalcOptions& options);
// The same, as inputs of `calculator`; without --stage, those that it has an answer for.
std::vector<CalculatorInput> inputs_of(const MemcalcOptions& options, const Calculator& calculator);

}  // namespace gxp
