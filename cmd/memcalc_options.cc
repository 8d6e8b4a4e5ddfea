#include "cmd/memcalc_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <ranges>

#include "cmd/options.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

// "7e9", "7000000000", "7B", "350M": a whole number of parameters; nothing otherwise.
std::optional<uint64_t> parse_count(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view suffix(rest, size_t(end - rest));
  if (suffix == "K" || suffix == "k")
    value *= 1e3;
  else if (suffix == "M")
    value *= 1e6;
  else if (suffix == "B")
    value *= 1e9;
  else if (suffix == "T")
    value *= 1e12;
  else if (!suffix.empty())
    return std::nullopt;
  value = std::round(value * 1e3) / 1e3;  // 1.3B is 1.3e9 though 1.3 is no binary fraction
  if (!(value >= 1 && value <= double(kMostParameters)) || value != std::floor(value))
    return std::nullopt;
  return uint64_t(value);
}

uint64_t read_count(const char* option, const std::string& text) {
  const std::optional<uint64_t> count = parse_count(text);
  if (!count)
    fail(
        ErrorKind::kUsage,
        "{} '{}': no whole number of parameters from 1 to 1e15; give one such as 7e9, 350M or 1.5B",
        option, text);
  return *count;
}

// "1,8,64"
std::vector<int> read_list(const char* option, const std::string& text) {
  std::vector<int> numbers;
  for (const auto& part : std::views::split(text, ',')) {
    const std::string word(part.begin(), part.end());
    int number = 0;
    const char* end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, number);
    if (word.empty() || error != std::errc() || rest != end)
      fail(ErrorKind::kUsage, "{} '{}': '{}' is no whole number; give a list such as 1,2,3", option,
           text, word);
    numbers.push_back(number);
  }
  return numbers;
}

template <class Table>
std::string names_of(const Table& table) {
  std::vector<std::string_view> names;
  for (const auto& row : table) names.push_back(row.name);
  return fmt::format("{}", fmt::join(names, "|"));
}

std::vector<int> gpus_of(const MemcalcOptions& options) {
  if (!options.gpus.empty()) return read_list("--gpus", options.gpus);
  if (!options.compat.empty()) return {8};
  if (options.shard > 0) return {options.shard};
  return {1, 8, 64};
}

// GPUs of one host: 8, as most have, if that divides; else all of them.
int gpus_per_host(const MemcalcOptions& options, int gpus) {
  if (options.gpus_per_host == 0) return gpus % 8 == 0 ? 8 : gpus;
  if (gpus % options.gpus_per_host != 0)
    fail(ErrorKind::kUsage,
         "plan {} GPUs on hosts of {}: {} does not divide {}; give --gpus-per-host a divisor of "
         "--gpus",
         gpus, options.gpus_per_host, options.gpus_per_host, gpus);
  return options.gpus_per_host;
}

uint64_t parameters_of(const MemcalcOptions& options) {
  const PublishedModel* model = model_of(options);
  return model != nullptr ? parameter_count(*model) : read_count("--params", options.params);
}

void refuse(bool condition, const char* message) {
  if (condition) fail(ErrorKind::kUsage, "memcalc: {}", message);
}

// The attention scores of all layers, which grow fastest; 0 without a MODEL.
double attention_bytes(const MemcalcOptions& options) {
  const PublishedModel* model = model_of(options);
  if (model == nullptr) return 0;
  const auto sequence = double(options.eleuther.sequence);
  return 5.0 * double(model->heads * model->layers) * sequence * sequence *
         options.eleuther.micro_batch;
}

// gxp's own formula for activations needs a GPT block and 16-bit values.
void check_activations(const MemcalcOptions& options, bool eleuther) {
  const Question& question = options.eleuther;
  refuse(
      question.sequence == 0 && !eleuther && (options.recompute_asked || question.micro_batch > 1),
      "activations depend on the length of a sequence; add --sequence");
  refuse(options.recompute_asked && !options.compat.empty(),
         "--recompute is no option of another calculator; leave it or --compat out");
  refuse(attention_bytes(options) > 1e18,
         "the activations pass 1e18 bytes; give a smaller --micro-batch or a shorter --sequence");
  if (question.sequence == 0 || eleuther) return;
  refuse(!options.compat.empty() || !options.solve.empty(),
         "--sequence goes with --compat eleuther or gxp's own estimate; leave the rest out");
  const PublishedModel* model = model_of(options);
  refuse(model == nullptr || model->kind != BlockKind::kGpt,
         "the formula for activations is that of a GPT block; give a GPT-2 or GPT-3 as MODEL, or "
         "leave out --sequence");
  refuse(
      options.precision == "fp32",
      "the formula for activations is for 16 bits; use --precision bf16 or leave out --sequence");
}

void add_compat_options(CLI::App& app, MemcalcOptions& options) {
  app.add_option("--compat", options.compat,
                 "Answer as another calculator does, with its units and defects")
      ->type_name(names_of(compatible_tools()));
  app.add_option("--largest-layer", options.largest_layer,
                 "--compat deepspeed, stage 3: parameters of the largest module; a model's name "
                 "tells it")
      ->type_name("COUNT");
  add_number_option(app, "--gpus-per-host", options.gpus_per_host, 1, kMostGpus,
                    "--compat deepspeed: GPUs of one host; without it 8 if that divides, else all");
}

// What activations depend on.
void add_activation_options(CLI::App& app, MemcalcOptions& options) {
  Question& question = options.eleuther;
  add_number_option(
      app, "--sequence", question.sequence, 1, 1 << 20,
      "With a GPT MODEL or --compat eleuther: tokens of a sequence; adds activations");
  add_number_option(app, "--micro-batch", question.micro_batch, 1, 1 << 16,
                    "With --sequence: sequences of a micro-batch (1)");
  const auto parse = [&options](const std::string& name) {
    const std::optional<Recompute> parsed = parse_recompute(name);
    if (!parsed)
      throw CLI::ValidationError(
          "--recompute",
          fmt::format("must be one of: {}, is '{}'", fmt::join(kRecomputeNames, ", "), name));
    options.recompute = *parsed;
    options.recompute_asked = true;
  };
  app.add_option_function<std::string>("--recompute", parse,
                                       "With --sequence: activations that are computed again")
      ->type_name(fmt::format("{}", fmt::join(kRecomputeNames, "|")))
      ->default_str("none");
  add_number_option(app, "--tensor-parallel", question.tensor_parallel, 1, 1 << 20,
                    "--compat eleuther: GPUs that share each layer (1)");
  app.add_flag("--checkpoint-activations", question.checkpoint_activations,
               "--compat eleuther: activations are recomputed");
  app.add_flag("--partition-activations", question.partition_activations,
               "--compat eleuther: activations are divided by --tensor-parallel");
  for (const char* name :
       {"--tensor-parallel", "--checkpoint-activations", "--partition-activations"}) {
    app.get_option(name)->each([&options](const std::string&) { options.eleuther_asked = true; });
  }
}

}  // namespace

void add_memcalc_options(CLI::App& app, MemcalcOptions& options) {
  app.add_option("MODEL", options.model, "A published model, such as gpt2-xl; --list shows all");
  app.add_option("--params", options.params, "In place of MODEL: the number of parameters, 7e9")
      ->type_name("COUNT");
  app.add_option("--stage", options.stages, "ZeRO stages, a list; without it all of 0 to 3")
      ->type_name("0|1|2|3");
  app.add_option("--gpus", options.gpus,
                 "Numbers of GPUs, a list; without it 1,8,64 (8 with --compat)")
      ->type_name("LIST");
  add_number_option(app, "--shard", options.shard, 1, kMostGpus,
                    "Hybrid sharding: GPUs that share one copy; replicas of it on the others");
  app.add_option("--precision", options.precision, "Types of parameters, gradients and states")
      ->type_name(names_of(precisions()))
      ->capture_default_str();
  app.add_option("--optimizer", options.optimizer, "Which states there are")
      ->type_name(names_of(optimizer_states()))
      ->capture_default_str();
  app.add_option("--limit", options.limit, "Memory of a GPU (80GB, 80GiB): mark what fits")
      ->type_name("SIZE");
  app.add_option("--solve", options.solve, "With --limit: the fewest GPUs per stage that fit")
      ->type_name("gpus");
  add_activation_options(app, options);
  add_compat_options(app, options);
  app.add_flag("--explain", options.explain, "Show formula, numbers and source of each part");
  app.add_option("--unit", options.unit, "Of all sizes in text; JSON and CSV are in bytes")
      ->type_name("GB|GiB|MB|MiB")
      ->capture_default_str();
  app.add_flag("--list", options.list, "List the published models");
  add_format_option(app, options.format);
}

void check(const MemcalcOptions& options) {
  refuse(options.model.empty() == options.params.empty(),
         "what to plan is not clear: give MODEL or --params, one of them");
  refuse(!options.solve.empty() && options.solve != "gpus",
         "--solve finds a number of GPUs only; use --solve gpus");
  const bool solve = !options.solve.empty();
  refuse(solve && options.limit.empty(), "--solve lacks the memory to fit in; add --limit 80GB");
  refuse(solve && (!options.gpus.empty() || options.shard > 0 || !options.compat.empty() ||
                   options.explain),
         "--solve stands alone; leave out --gpus, --shard, --compat and --explain");
  const bool compat = !options.compat.empty();
  refuse(compat && options.shard > 0,
         "no other calculator knows hybrid sharding; leave out --shard or --compat");
  refuse(compat && options.optimizer != "adamw" && options.optimizer != "adam",
         "every other calculator assumes Adam; leave out --optimizer or --compat");
  const bool deepspeed = options.compat.starts_with("deepspeed");
  refuse(!deepspeed && (options.gpus_per_host > 0 || !options.largest_layer.empty()),
         "--gpus-per-host and --largest-layer go with --compat deepspeed");
  const bool eleuther = options.compat == "eleuther" && !options.model.empty();
  refuse(options.eleuther_asked && !eleuther,
         "tensor parallelism and checkpointed or partitioned activations go with --compat eleuther "
         "and a MODEL");
  check_activations(options, eleuther);
}

const PublishedModel* model_of(const MemcalcOptions& options) {
  return options.model.empty() ? nullptr : &find_published_model(options.model);
}

std::optional<ActivationShape> activation_shape_of(const MemcalcOptions& options) {
  const Question& question = options.eleuther;
  if (question.sequence == 0) return std::nullopt;
  const PublishedModel& model = *model_of(options);
  return ActivationShape{.layers = model.layers,
                         .hidden = model.hidden,
                         .heads = model.heads,
                         .vocabulary = model.vocabulary,
                         .sequence = uint64_t(question.sequence),
                         .micro_batch = uint64_t(question.micro_batch)};
}

Training training_of(const MemcalcOptions& options) {
  return {.parameters = parameters_of(options),
          .precision = find_precision(options.precision),
          .optimizer = find_optimizer_state(options.optimizer)};
}

std::vector<int> stages_of(const MemcalcOptions& options) {
  if (options.stages.empty()) return {0, 1, 2, 3};
  std::vector<int> stages = read_list("--stage", options.stages);
  for (const int stage : stages) check(Placement{.stage = stage});
  return stages;
}

std::vector<Placement> placements_of(const MemcalcOptions& options) {
  std::vector<Placement> placements;
  for (const int gpus : gpus_of(options)) {
    for (const int stage : stages_of(options)) {
      placements.push_back({.stage = stage, .gpus = gpus, .shard = options.shard});
      check(placements.back());
    }
  }
  return placements;
}

std::vector<Question> questions_of(const MemcalcOptions& options, const Tool& tool) {
  const PublishedModel* model = model_of(options);
  Question question = options.eleuther;
  question.model = model;
  question.parameters = parameters_of(options);
  question.precision = find_precision(options.precision).name;
  if (!options.largest_layer.empty()) {
    question.largest_layer = read_count("--largest-layer", options.largest_layer);
  } else if (model != nullptr) {
    question.largest_layer = largest_module(*model);
  }
  std::vector<Question> questions;
  for (const Placement& placement : placements_of(options)) {
    question.gpus = placement.gpus;
    question.stage = placement.stage;
    question.gpus_per_host = gpus_per_host(options, placement.gpus);
    if (!options.stages.empty() || answers(tool, question)) questions.push_back(question);
  }
  // Where no stage has an answer, the reason for the last one is the error.
  if (questions.empty()) questions.push_back(question);
  return questions;
}

}  // namespace gxp
