// write_checkpoint(): what may be replaced, and how it is.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/finished_files.h"
#include "lib/ckpt/format.h"
#include "lib/ckpt/own_files.h"
#include "lib/ckpt/peft/peft.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

// Any format's: a conversion may replace what another one has written.
bool is_any_format_file(std::string_view name) {
  return name == kFinishedFiles ||
         std::ranges::any_of(kFormats, [&](const auto& format) { return format.owns(name); });
}

bool is_any_checkpoint(const std::string& path) {
  return std::ranges::any_of(kFormats, [&](const auto& format) { return format.recognises(path); });
}

// Why the file or the directory must stay; "" if all of it is what gxp writes.
std::string reason_to_keep(const std::string& path) {
  struct stat status = {};
  check_sys(::lstat(path.c_str(), &status), "look at " + path);
  if (S_ISREG(status.st_mode)) {
    const bool weights = !path.ends_with(".json") && is_any_checkpoint(path);
    return weights ? "" : "it is a file without a checkpoint";
  }
  if (!S_ISDIR(status.st_mode)) return "it is neither a directory nor a regular file";
  const std::string foreign = find_foreign(OwnDirectory::enter(path), is_any_format_file);
  return foreign.empty() ? "" : fmt::format("it holds {}, which no conversion writes", foreign);
}

void check_target(const std::string& path, bool replace) {
  if (!path_exists(path)) return;
  if (!replace) fail(ErrorKind::kUsage, "write {}: it exists; --force replaces it", path);
  std::string reason = reason_to_keep(path);
  if (reason.empty() && !is_any_checkpoint(path)) reason = "it is a directory without a checkpoint";
  if (!reason.empty())
    fail(ErrorKind::kUsage,
         "write {}: {}, which is not replaced; move it away, or choose another path", path, reason);
}

// What a conversion that was killed has left under a name that is needed.
void clear(const std::string& path, const std::string& target) {
  if (!path_exists(path)) return;
  std::string left = reason_to_keep(path);
  if (left.empty()) left = remove_own(path, is_any_format_file);
  if (!left.empty())
    fail(ErrorKind::kUsage, "write {}: {} is in the way: {}; move it away", target, path, left);
}

// Whether files in the directory in the making are kept.
bool goes_on(const std::string& partial, const WriteOptions& options) {
  return options.resume && FinishedFiles::are_of(options.conversion, partial);
}

void prepare(const std::string& partial, const std::string& target, const WriteOptions& options) {
  if (goes_on(partial, options)) return log_info("{}: keeping the files that are complete", target);
  if (options.resume && path_exists(partial))
    log_info("{}: starting over, since no file of the same conversion is complete", target);
  clear(partial, target);
}

// An earlier checkpoint that a conversion which was killed has moved aside.
void recover(const std::string& target) {
  const std::string aside = aside_path(target);
  if (path_exists(target) || !path_exists(aside) || !reason_to_keep(aside).empty()) return;
  if (take_back(target))
    log_info("{} is restored from {}, where a killed conversion left it", target, aside);
}

// What of the optimizer cannot be kept is left out only if the user asks for it.
void check_optimizer(const NamedTensors& tensors, const CheckpointFormat& format) {
  const std::string lost = lost_parts(tensors.optimizer);
  if (lost.empty()) return;
  if (!format.keeps_optimizer_state)
    return log_info("left out: {}: {} holds weights only", lost, format.name);
  fail(ErrorKind::kConfig,
       "write {}: gxp cannot keep these parts of the source's optimizer: {}; --drop-optimizer "
       "leaves the optimizer out and keeps the weights",
       format.name, lost);
}

// The parameters whose moments are told, but not after how many steps.
void check_steps(const NamedTensors& tensors, const CheckpointFormat& format) {
  if (!format.needs_steps) return;
  for (const NamedTensor& tensor : tensors.tensors)
    if (tensor.info.role == Role::kAdamV && !step_of(tensors, tensor.info.name))
      fail(ErrorKind::kConfig,
           "write {}: the source does not record the optimizer's step, without which its moments "
           "are useless; give it with --step, or leave the optimizer out with --drop-optimizer",
           format.name);
}

NamedTensors what_is_written(const NamedTensors& source, const CheckpointFormat& format,
                             const WriteOptions& options) {
  NamedTensors tensors = options.drop_optimizer ? without_optimizer(source) : source;
  check_optimizer(tensors, format);
  check_steps(tensors, format);
  return tensors;
}

fs::path target_of(const std::string& path) {
  fs::path target = fs::path(path).lexically_normal();
  return target.has_filename() ? target : target.parent_path();  // "out/" is "out"
}

// Formats of whole models would take adapters for weights of their own.
void check_adapters(const NamedTensors& tensors, const CheckpointFormat& format) {
  constexpr std::array<std::string_view, 3> kOfModels = {"huggingface", "gguf", "llmc"};
  if (std::ranges::find(kOfModels, format.name) == kOfModels.end() || !has_adapters(tensors))
    return;
  fail(ErrorKind::kConfig,
       "write {}: the source has LoRA adapters beside the weights; --merge adds them to the "
       "weights, "
       "and --to peft writes them alone",
       format.name);
}

// What write() of the format would not check.
void check_fits(const NamedTensors& tensors, const CheckpointFormat& format) {
  check_adapters(tensors, format);
  if (format.check_fits != nullptr) format.check_fits(tensors);
  const bool has_codes = std::ranges::any_of(tensors.tensors, [](const NamedTensor& tensor) {
    return tensor.info.role == Role::kAdamMScales || tensor.info.role == Role::kAdamVScales;
  });
  if (has_codes && format.keeps_optimizer_state && format.write != find_format("gxp").write)
    fail(ErrorKind::kConfig,
         "write {}: this format cannot store int8 moments (optim.state_dtype = \"int8\"); gxp's "
         "own format can. --drop-optimizer leaves the optimizer out and keeps the weights",
         format.name);
  const bool has_pending = std::ranges::any_of(tensors.tensors, [](const NamedTensor& tensor) {
    return tensor.info.role == Role::kCodecResidual;
  });
  if (has_pending && format.keeps_optimizer_state && format.write != find_format("gxp").write)
    fail(ErrorKind::kConfig,
         "write {}: this format cannot store the parts of gradients that comm.codec has not sent "
         "yet; gxp's own format can. --drop-optimizer leaves them and the optimizer out and keeps "
         "the weights",
         format.name);
}

void report_left_out(const NamedTensors& tensors, const CheckpointFormat& format) {
  const auto left_out = std::ranges::count_if(
      tensors.tensors, [](const NamedTensor& tensor) { return tensor.info.role != Role::kWeight; });
  if (left_out > 0 && !format.keeps_optimizer_state)
    log_info("{} tensors of optimizer state are left out: {} holds weights only", left_out,
             format.name);
  if (format.keeps_tokenizer) return;
  std::vector<std::string> names;
  for (const fs::path file : tensors.companions) names.push_back(file.filename());
  if (!names.empty())
    log_info("left out: {}: {} cannot store them", joined(names, ", "), format.name);
  if (!tensors.tokenizer.gguf_keys.empty())
    log_info("left out: the GGUF file's tokenizer: {} cannot store it", format.name);
}

}  // namespace

std::vector<PlannedFile> plan_checkpoint(const NamedTensors& source, const CheckpointFormat& format,
                                         const std::string& path, const WriteOptions& options) {
  const fs::path target = target_of(path);
  check_target(target, options.replace);
  const NamedTensors tensors = what_is_written(source, format, options);
  check_fits(tensors, format);
  report_left_out(tensors, format);
  if (format.plan != nullptr) return format.plan(tensors, target, options);
  PlannedFile all{target.filename()};
  for (const NamedTensor& tensor : tensors.tensors) {
    if (tensor.info.role == Role::kWeight || format.keeps_optimizer_state) ++all.tensors;
  }
  return {all};
}

void write_checkpoint(const NamedTensors& source, const CheckpointFormat& format,
                      const std::string& path, const WriteOptions& options) {
  const fs::path target = target_of(path);
  // The name keeps its end, which decides what safetensors writes.
  const fs::path partial = target.parent_path() / (".partial-" + target.filename().string());
  recover(target);
  check_target(target, options.replace);
  const NamedTensors tensors = what_is_written(source, format, options);
  check_fits(tensors, format);
  report_left_out(tensors, format);
  prepare(partial, target, options);
  clear(aside_path(target), target);
  create_directory(parent_of(target));
  std::string replaced;
  try {
    format.write(tensors, partial, options);
    FinishedFiles::forget(partial);
    if (is_real_directory(partial)) sync_directory(partial);
    if (options.confirm) options.confirm();
    replaced = replace_path(partial, target);
  } catch (...) {
    if (!goes_on(partial, options)) remove_own(partial, is_any_format_file);
    throw;
  }
  const std::string left = replaced.empty() ? "" : remove_own(replaced, is_any_format_file);
  if (!left.empty()) log_warn("remove the replaced {}: {}", target.string(), left);
}

}  // namespace gxp
