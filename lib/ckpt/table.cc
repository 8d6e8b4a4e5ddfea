#include <algorithm>
#include <array>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/near_match.h"
#include "lib/ckpt/checkpoint.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/format.h"
#include "lib/ckpt/huggingface.h"
#include "lib/ckpt/safetensors.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

void write_gxp(const NamedTensors& tensors, const std::string& path, const WriteOptions&) {
  write_gxp_checkpoint(with_gpt2_names(tensors), path);
}

uint64_t verify_gxp(const std::string& path) {
  const auto checkpoint = Checkpoint::open(path);
  checkpoint.verify();
  return checkpoint.manifest().files.size() + 1;  // opening has checked the manifest
}

// A name that ends in .safetensors is one file, any other a directory.
void write_safetensors(const NamedTensors& tensors, const std::string& path,
                       const WriteOptions& options) {
  if (path.ends_with(".safetensors")) return write_safetensors_file(tensors, path);
  create_directory(path);
  write_safetensors_directory(tensors, path, options.shard_bytes);
}

void write_huggingface_directory(const NamedTensors& tensors, const std::string& path,
                                 const WriteOptions& options) {
  create_directory(path);
  write_huggingface(tensors, path, options.shard_bytes);
}

constexpr std::array<CheckpointFormat, 3> kTable = {
    {{"gxp", "gxp's own: logical tensors in one directory a step, of any number of ranks",
      is_gxp_checkpoint, read_gxp_checkpoint, write_gxp, verify_gxp, true},
     {"huggingface", "a model directory with config.json and safetensors", is_huggingface,
      read_huggingface, write_huggingface_directory, nullptr, false},
     {"safetensors", "weights: one .safetensors file, or a directory of shards with an index",
      is_safetensors, read_safetensors, write_safetensors, nullptr, false}}};

void check_target(const std::string& path, bool replace) {
  if (!fs::exists(fs::symlink_status(path))) return;
  if (!replace) fail(ErrorKind::kUsage, "write {}: it exists; --force replaces it", path);
  const auto recognises = [&](const CheckpointFormat& row) { return row.recognises(path); };
  if (fs::is_directory(path) && std::none_of(kTable.begin(), kTable.end(), recognises))
    fail(ErrorKind::kUsage, "write {}: it is a directory without a checkpoint, not replaced", path);
}

void report_left_out(const NamedTensors& tensors, const CheckpointFormat& format) {
  const auto left_out =
      std::count_if(tensors.tensors.begin(), tensors.tensors.end(),
                    [](const NamedTensor& tensor) { return tensor.info.role != Role::kWeight; });
  if (left_out > 0 && !format.keeps_optimizer_state)
    log_info("{} tensors of optimizer state are left out: {} holds weights only", left_out,
             format.name);
}

}  // namespace

constinit const std::span<const CheckpointFormat> kFormats = kTable;

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const CheckpointFormat& row : kFormats) names.emplace_back(row.name);
  return names;
}

const CheckpointFormat& find_format(const std::string& name) {
  for (const CheckpointFormat& row : kFormats) {
    if (row.name == name) return row;
  }
  fail(ErrorKind::kUsage, "'{}' is no checkpoint format{}", name,
       did_you_mean(name, format_names()));
}

const CheckpointFormat& format_at(const std::string& path) {
  for (const CheckpointFormat& row : kFormats) {
    if (row.recognises(path)) return row;
  }
  if (!fs::exists(path)) fail(ErrorKind::kIo, "open {}: no such file or directory", path);
  fail(ErrorKind::kCorrupt, "open {}: no checkpoint in a format that gxp reads ({})", path,
       fmt::join(format_names(), ", "));
}

NamedTensors read_checkpoint(const std::string& path) { return format_at(path).read(path); }

NamedTensors read_weights(const std::string& path) {
  return with_gpt2_names(read_checkpoint(path));
}

void write_checkpoint(const NamedTensors& tensors, const CheckpointFormat& format,
                      const std::string& path, const WriteOptions& options) {
  fs::path target = fs::path(path).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "out/" is "out"
  check_target(target, options.replace);
  report_left_out(tensors, format);
  if (target.has_parent_path()) create_directory(target.parent_path());
  // The name keeps its end, which decides what safetensors writes.
  const fs::path partial = target.parent_path() / (".partial-" + target.filename().string());
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  try {
    format.write(tensors, partial, options);
    replace_path(partial, target);
  } catch (...) {
    fs::remove_all(partial, ignored);
    throw;
  }
}

}  // namespace gxp
