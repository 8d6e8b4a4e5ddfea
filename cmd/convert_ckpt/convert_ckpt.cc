// gxp convert-ckpt: any checkpoint format to any other; shows, verifies and compares checkpoints.
// One tensor's buffer of memory, whatever the size of the model.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cmd/command.h"
#include "cmd/convert_ckpt/options.h"
#include "cmd/convert_ckpt/progress.h"
#include "cmd/convert_ckpt/reports.h"
#include "cmd/exit_codes.h"
#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/ckpt/cast.h"
#include "lib/ckpt/huggingface/huggingface.h"
#include "lib/ckpt/huggingface/model_check.h"
#include "lib/ckpt/peft/peft.h"
#include "lib/ckpt/trainer/optimizer_file.h"
#include "lib/tools/checkpoints/rename.h"

namespace gxp {
namespace {
namespace fs = std::filesystem;

// Of what --dtype names, in its order, but for the first.
constexpr std::array kCastTypes = {StorageDType::kF32, StorageDType::kBF16, StorageDType::kF16};

// The files of `path` with the recorded hash.
uint64_t verify(const CheckpointFormat& format, const std::string& path) {
  return format.verify == nullptr ? 0 : format.verify(path);
}

void add_verified(const CheckpointFormat& format, const ConvertOptions& options, uint64_t files,
                  Report& report) {
  if (files == 0 && !options.verify) return;
  if (files == 0)
    log_info("{}: {} records no hashes: headers and sizes are checked, contents are not",
             options.source, format.name);
  report.facts.push_back({{"verified_files", "files with the recorded hash"}, int64_t(files)});
}

int diff(const ConvertOptions& options) {
  const auto read = [](const std::string& path) { return with_gpt2_prefix(read_checkpoint(path)); };
  const auto rows = compare_tensors(read(options.source), read(options.target));
  Report report{.schema = "gxp.convert-ckpt.diff/1"};
  add_comparison(rows, report);
  print(report, options.format);
  const bool equal = std::ranges::all_of(
      rows, [](const TensorComparison& row) { return row.likeness == Likeness::kEqual; });
  return equal ? kExitOk : exit_code(ErrorKind::kMismatch);
}

void set_step(NamedTensors& tensors, const ConvertOptions& options) {
  if (options.step == 0) return;
  const auto& steps = tensors.optimizer.steps;
  const bool is_optimizers = !steps.empty() && std::ranges::all_of(steps, [&](const auto& entry) {
    return entry.second == options.step;
  });
  if (tensors.step && *tensors.step != options.step && !is_optimizers)
    fail(ErrorKind::kUsage, "convert-ckpt: --step {}: {} was saved at step {}", options.step,
         options.source, *tensors.step);
  tensors.step = options.step;
  settle_steps(tensors);
}

// Writes while another thread verifies the source: what it finds stops the target from being
// published, since a damaged source must not become one that looks sound.
void write_verified(const NamedTensors& tensors, const CheckpointFormat& to,
                    const ConvertOptions& options, const WriteOptions& writing, Report& report) {
  const CheckpointFormat& from = format_at(options.source);
  std::packaged_task<uint64_t()> task([&] { return verify(from, options.source); });
  std::future<uint64_t> files = task.get_future();
  const std::jthread verifier(std::move(task));
  WriteOptions confirmed = writing;
  confirmed.confirm = [&] { add_verified(from, options, files.get(), report); };
  write_checkpoint(tensors, to, options.target, confirmed);
}

std::string file_facts(const fs::path& path) {
  struct stat status = {};
  check_sys(::stat(path.c_str(), &status), "look at " + path.string());
  return fmt::format("{} {} {}.{:09}\n", path.string(), status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

// Of a file, or of all files below a directory.
std::vector<std::string> source_facts(const fs::path& source) {
  std::error_code error;
  if (!fs::is_directory(source, error)) return {file_facts(source)};
  std::vector<std::string> facts;
  for (const auto& entry : fs::recursive_directory_iterator(source, error)) {
    if (entry.is_regular_file(error)) facts.push_back(file_facts(entry.path()));
  }
  if (error) fail(ErrorKind::kIo, "list {}: {}", source.string(), error.message());
  std::ranges::sort(facts);
  return facts;
}

// Identifies a conversion: the same for the same source, while none of its files changes (place,
// size, time), and the same options, whose files are then the same. 32 hexadecimal digits. kIo.
std::string conversion_id(const ConvertOptions& options) {
  const fs::path source = fs::absolute(options.source).lexically_normal();
  std::string facts =
      fmt::format("{} {} {} {} {} {} {}\n", GXP_VERSION, options.to, int(options.dtype),
                  options.step, options.shards, options.max_shard_size, options.drop_optimizer);
  facts += options.map + "\n";
  std::error_code error;
  if (fs::exists(options.map, error)) facts += file_facts(fs::absolute(options.map));
  for (const std::string& other : {options.merge, options.config}) {
    if (other.empty()) continue;
    for (const std::string& fact : source_facts(fs::absolute(other))) facts += fact;
  }
  for (const std::string& fact : source_facts(source)) facts += fact;
  return hash_hex(std::as_bytes(std::span(facts)));
}

void convert(NamedTensors tensors, const CheckpointFormat& to, const ConvertOptions& options,
             Report& report) {
  const CheckpointFormat& from = format_at(options.source);
  const auto overflowed = std::make_shared<OverflowCount>(0);  // owners: here and the readers
  if (!options.dry_run) tensors = with_progress(std::move(tensors));
  if (options.dtype != CastTo::kStored)
    tensors = cast_weights(std::move(tensors), kCastTypes[size_t(options.dtype) - 1], overflowed);
  if (options.dry_run)
    return add_plan(plan_checkpoint(tensors, to, options.target, write_options(options)), report);
  WriteOptions writing = write_options(options);
  writing.conversion = conversion_id(options);
  if (options.verify || from.verify != nullptr)
    write_verified(tensors, to, options, writing, report);
  else
    write_checkpoint(tensors, to, options.target, writing);
  report.facts.push_back({{"written"}, options.target});
  if (options.dtype != CastTo::kStored)
    report.facts.push_back({{"overflowed", "elements that became infinite"}, int64_t(*overflowed)});
  if (*overflowed > 0)
    log_warn("{}: {} elements exceed the largest {} and have become infinite", options.target,
             overflowed->load(), kCastNames[size_t(options.dtype)]);
}

// Scales of quantized weights would be rounded, and the weights not.
void check_cast(const NamedTensors& tensors, const ConvertOptions& options) {
  if (options.dtype == CastTo::kStored) return;
  const std::string how = quantization_of(tensors);
  if (!how.empty())
    fail(ErrorKind::kConfig,
         "--dtype: the weights of {} are quantized (quantization_config is {}), which gxp does not "
         "undo; leave out --dtype to keep them as they are",
         options.source, how);
}

void apply_map(NamedTensors& tensors, const ConvertOptions& options, Report& report) {
  const KeyValues settings =
      options.config.empty() ? tensors.config : model_settings_at(options.config);
  const RuleCounts counts = rename_tensors(tensors, options.map, settings);
  const auto add = [&](const char* key, const char* heading, RuleKind kind) {
    report.facts.push_back({{key, heading}, int64_t(counts[size_t(kind)])});
  };
  add("renamed", "tensors renamed", RuleKind::kRename);
  add("dropped", "tensors dropped", RuleKind::kDrop);
  add("reordered", "tensors reordered", RuleKind::kReorder);
  add("transposed", "tensors transposed", RuleKind::kTranspose);
}

int run(const ConvertOptions& given) {
  check(given);
  if (given.diff) return diff(given);
  (void)write_options(given);  // wrong ones are told before anything is read
  const CheckpointFormat* target = target_format(given);
  ConvertOptions options = given;
  options.source = checkpoint_at(given.source);
  const CheckpointFormat& format = format_at(options.source);
  NamedTensors tensors = read_checkpoint(options.source);
  Report report{.schema = "gxp.convert-ckpt/1"};
  if (!options.map.empty()) apply_map(tensors, options, report);
  if (!options.config.empty()) tensors = as_model_of(options.config, std::move(tensors));
  name_optimizer(tensors);
  if (!options.merge.empty())
    tensors = merge_adapters(std::move(tensors), read_checkpoint(options.merge));
  set_step(tensors, options);
  add_checkpoint_facts(tensors, report);
  if (options.verify && (target == nullptr || options.dry_run))
    add_verified(format, options, verify(format, options.source), report);
  if (const std::string lost = lost_parts(tensors.optimizer); target == nullptr && !lost.empty())
    log_warn("{}: gxp cannot keep these parts of its optimizer: {}", options.source, lost);
  if (options.inspect) add_inspection(tensors, options.hash, report);
  if (const auto reason = foreign_model(without_adapters(tensors));
      target != nullptr && !reason.empty())
    log_warn("{}: {}: tensors and config.json are kept, but gxp cannot train the model",
             options.source, reason);
  check_cast(tensors, options);
  if (target != nullptr) convert(std::move(tensors), *target, options, report);
  print(report, options.format);
  return kExitOk;
}

}  // namespace

std::function<int()> define_convert_ckpt(CLI::App& app) {
  auto options = std::make_shared<ConvertOptions>();  // kept alive by the returned action
  add_convert_options(app, *options);
  return [options] { return run(*options); };
}

}  // namespace gxp
