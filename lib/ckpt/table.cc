#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cerrno>

#include "lib/base/error.h"
#include "lib/base/text/near_match.h"
#include "lib/ckpt/checkpoint.h"
#include "lib/ckpt/deepspeed/universal.h"
#include "lib/ckpt/deepspeed/zero_checkpoint.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/format.h"
#include "lib/ckpt/huggingface.h"
#include "lib/ckpt/own_files.h"
#include "lib/ckpt/safetensors.h"
#include "lib/ckpt/torch/pt_file.h"

namespace gxp {
namespace {

void write_gxp(const NamedTensors& tensors, const std::string& path, const WriteOptions&) {
  create_new_directory(path);
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
  create_new_directory(path);
  write_safetensors_directory(tensors, path, options.shard_bytes);
}

void write_huggingface_directory(const NamedTensors& tensors, const std::string& path,
                                 const WriteOptions& options) {
  create_new_directory(path);
  write_huggingface(tensors, path, options.shard_bytes);
}

// For formats that are one file, or that are only read.
bool owns_nothing(std::string_view) { return false; }

constexpr CheckpointFormat kTable[] = {
    {"gxp", "gxp's own: logical tensors in one directory a step, of any number of ranks",
     is_gxp_checkpoint, is_checkpoint_file, read_gxp_checkpoint, write_gxp, verify_gxp, true},
    {"huggingface", "a model directory with config.json and safetensors", is_huggingface,
     is_huggingface_file, read_huggingface, write_huggingface_directory, nullptr, false},
    {"safetensors", "weights: one .safetensors file, or a directory of shards with an index",
     is_safetensors, is_safetensors_file, read_safetensors, write_safetensors, nullptr, false},
    {"pt", "PyTorch's torch.save: a state dict, or a dict of model, optimizer and step", is_pt,
     owns_nothing, read_pt, write_pt, verify_pt, true},
    {"universal", "what DeepSpeed loads with load_universal_checkpoint, at any ZeRO stage",
     is_universal, is_universal_file, read_universal, write_universal, nullptr, true},
    {"deepspeed",
     "DeepSpeed's ZeRO, stages 1 to 3; only read: runs of it load what universal writes",
     is_zero_checkpoint, owns_nothing, read_zero_checkpoint, nullptr, nullptr, true}};

}  // namespace

constinit const std::span<const CheckpointFormat> kFormats = kTable;

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const CheckpointFormat& row : kFormats) {
    if (row.write != nullptr) names.emplace_back(row.name);
  }
  return names;
}

const CheckpointFormat& find_format(const std::string& name) {
  for (const CheckpointFormat& row : kFormats) {
    if (row.name != name) continue;
    if (row.write == nullptr)
      fail(ErrorKind::kUsage, "'{}' is a format that gxp does not write: {}", name, row.summary);
    return row;
  }
  fail(ErrorKind::kUsage, "'{}' is no checkpoint format{}", name,
       did_you_mean(name, format_names()));
}

const CheckpointFormat& format_at(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) < 0) {
    const int cause = errno;
    const std::string aside = aside_path(path);
    const bool moved = cause == ENOENT && path_exists(aside);
    fail(ErrorKind::kIo, "open {}: {}{}", path, system_text(cause),
         moved ? fmt::format("; an interrupted conversion has left it as {}", aside) : "");
  }
  for (const CheckpointFormat& row : kFormats) {
    if (row.recognises(path)) return row;
  }
  std::vector<std::string_view> names;
  for (const CheckpointFormat& row : kFormats) names.push_back(row.name);
  fail(ErrorKind::kCorrupt, "open {}: no checkpoint in a format that gxp reads ({})", path,
       fmt::join(names, ", "));
}

NamedTensors read_checkpoint(const std::string& path) { return format_at(path).read(path); }

NamedTensors read_weights(const std::string& path) {
  return with_gpt2_names(read_checkpoint(path));
}

}  // namespace gxp
