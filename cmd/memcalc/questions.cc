// What gxp memcalc's options ask: numbers from their texts, and every combination of the lists.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

#include "cmd/memcalc/options.h"
#include "cmd/memcalc/run.h"
#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
#include "lib/base/text/read_number.h"

namespace gxp {
namespace {

// "7e9", "7000000000", "7B", "7b", "350M": a whole number of parameters; nothing otherwise.
std::optional<uint64_t> parse_count(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view suffix(rest, size_t(end - rest));
  const std::string unit = lower_case(suffix);
  if (unit == "k")
    value *= 1e3;
  else if (unit == "m")
    value *= 1e6;
  else if (unit == "b")
    value *= 1e9;
  else if (unit == "t")
    value *= 1e12;
  else if (!unit.empty())
    return std::nullopt;
  value = std::round(value * 1e3) / 1e3;  // 1.3B is 1.3e9 though 1.3 is no binary fraction
  if (!(value >= 1 && value <= double(kMostParameters)) || value != std::floor(value))
    return std::nullopt;
  return uint64_t(value);
}

uint64_t read_count(const char* option, const std::string& text) {
  const std::optional<uint64_t> count = parse_count(text);
  if (!count)
    fail(ErrorKind::kUsage,
         "{} '{}': must be a number of parameters from 1 to 1e15, such as 7e9, 350M or 1.5B",
         option, text);
  return *count;
}

// "1,8,64"
std::vector<int> read_list(const char* option, const std::string& text) {
  std::vector<int> numbers;
  std::istringstream words(text + ',');
  for (std::string word; std::getline(words, word, ',');) {
    const std::optional<int> number = read_number<int>(word);
    if (!number)
      fail(ErrorKind::kUsage, "{} '{}': '{}' is not a whole number; give a list such as 1,2,3",
           option, text, word);
    numbers.push_back(*number);
  }
  return numbers;
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

std::vector<int> stages_of(const MemcalcOptions& options) {
  if (options.stages.empty()) return {0, 1, 2, 3};
  return read_list("--stage", options.stages);
}

}  // namespace

std::vector<int> gpus_of(const MemcalcOptions& options) {
  if (!options.gpus.empty()) return read_list("--gpus", options.gpus);
  if (!options.compat.empty()) return {8};
  if (options.solve == Unknown::kGpus) return {model_parallel_of(options)};
  if (options.plan.shard > 0) return {options.plan.shard * model_parallel_of(options)};
  if (asks_for_run(options)) return {1};
  const int parallel = model_parallel_of(options);
  return {parallel, 8 * parallel, 64 * parallel};
}

void read_model(MemcalcOptions& options) {
  const auto same = [&](const PublishedModel& model) { return model.name == options.model; };
  if (std::ranges::any_of(published_models(), same)) return;
  if (names_model_file(options.model)) options.file = read_model_file(options.model);
}

int model_parallel_of(const MemcalcOptions& options) {
  return options.plan.tensor * options.plan.pipeline * options.plan.context;
}

const PublishedModel* model_of(const MemcalcOptions& options) {
  if (options.file) return options.file->shape ? &*options.file->shape : nullptr;
  return options.model.empty() ? nullptr : &find_published_model(options.model);
}

uint64_t parameters_of(const MemcalcOptions& options) {
  if (options.file) return options.file->parameters;
  const PublishedModel* model = model_of(options);
  return model != nullptr ? parameter_count(*model) : read_count("--params", options.params);
}

std::vector<TrainCase> cases_of(const MemcalcOptions& options) {
  TrainCase question{.model = model_of(options),
                     .software = &find_software(options.software),
                     .plan = options.plan,
                     .precision = &find_precision(options.precision),
                     .optimizer = &find_optimizer_state(options.optimizer),
                     .parameters = parameters_of(options)};
  question.plan.sequence = uint64_t(options.sequence);
  std::vector<TrainCase> cases;
  for (const int gpus : gpus_of(options)) {
    for (const int stage : stages_of(options)) {
      question.plan.gpus = gpus;
      question.plan.stage = stage;
      check(question);
      cases.push_back(question);
    }
  }
  return cases;
}

std::vector<CalculatorInput> inputs_of(const MemcalcOptions& options,
                                       const Calculator& calculator) {
  CalculatorInput input{.parameters = parameters_of(options),
                        .precision = &find_precision(options.precision)};
  if (!options.largest_layer.empty()) {
    input.largest_layer = read_count("--largest-layer", options.largest_layer);
  } else if (const PublishedModel* model = model_of(options)) {
    input.largest_layer = largest_module(*model);
  }
  std::vector<CalculatorInput> inputs;
  for (const TrainCase& question : cases_of(options)) {
    input.gpus = question.plan.gpus;
    input.stage = question.plan.stage;
    input.gpus_per_host = gpus_per_host(options, input.gpus);
    if (!options.stages.empty() || answers(calculator, input)) inputs.push_back(input);
  }
  // Where no stage has an answer, the reason for the last one is the error.
  if (inputs.empty()) inputs.push_back(input);
  return inputs;
}

}  // namespace gxp
