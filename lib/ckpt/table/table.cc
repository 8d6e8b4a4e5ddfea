#include <fmt/format.h>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <set>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/find_row.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/word_aliases.h"
#include "lib/ckpt/deepspeed/universal.h"
#include "lib/ckpt/deepspeed/zero_checkpoint.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/format.h"
#include "lib/ckpt/gguf/gguf.h"
#include "lib/ckpt/huggingface/huggingface.h"
#include "lib/ckpt/huggingface/wrapped_names.h"
#include "lib/ckpt/llmc/llmc.h"
#include "lib/ckpt/native/checkpoint.h"
#include "lib/ckpt/own_files.h"
#include "lib/ckpt/peft/peft.h"
#include "lib/ckpt/safetensors/safetensors.h"
#include "lib/ckpt/torch/dcp.h"
#include "lib/ckpt/torch/pt_file.h"
#include "lib/ckpt/trainer/megatron.h"
#include "lib/ckpt/trainer/meta_llama.h"
#include "lib/ckpt/trainer/trainer_folder.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

void write_gxp(const NamedTensors& tensors, const std::string& path, const WriteOptions& options) {
  write_gxp_checkpoint(with_gpt2_names(tensors), path, options);
}

std::vector<PlannedFile> plan_gxp(const NamedTensors& tensors, const std::string&,
                                  const WriteOptions& options) {
  return plan_gxp_checkpoint(with_gpt2_names(tensors), options);
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
  write_safetensors_directory(tensors, path, options);
}

// For formats that are one file, or that are only read.
bool owns_nothing(std::string_view) { return false; }

void write_llmc_file(const NamedTensors& tensors, const std::string& path, const WriteOptions&) {
  write_llmc(tensors, path);
}

void write_gguf_file(const NamedTensors& tensors, const std::string& path, const WriteOptions&) {
  write_gguf(tensors, path);
}

constexpr CheckpointFormat kTable[] = {
    {.name = "gxp",
     .summary = "gxp's own: logical tensors in one directory a step, of any number of ranks",
     .recognises = is_gxp_checkpoint,
     .owns = is_checkpoint_file,
     .read = read_gxp_checkpoint,
     .write = write_gxp,
     .verify = verify_gxp,
     .keeps_optimizer_state = true,
     .takes_shards = true,
     .plan = plan_gxp},
    {.name = "trainer",
     .summary = "a folder of transformers' Trainer or accelerate, with the optimizer; only read",
     .recognises = is_trainer_folder,
     .owns = owns_nothing,
     .read = read_trainer_folder,
     .write = nullptr,
     .verify = verify_trainer_folder,
     .keeps_optimizer_state = true},
    {.name = "huggingface",
     .summary = "a model directory with config.json and safetensors",
     .recognises = is_huggingface,
     .owns = is_huggingface_file,
     .read = read_huggingface,
     .write = write_huggingface,
     .verify = verify_huggingface,
     .takes_shards = true,
     .plan = plan_huggingface,
     .keeps_tokenizer = true},
    {.name = "peft",
     .summary = "LoRA adapters: a directory with adapter_config.json, as PEFT saves them",
     .recognises = is_peft,
     .owns = is_peft_file,
     .read = read_peft,
     .check_fits = check_fits_peft,
     .write = write_peft},
    {.name = "safetensors",
     .summary = "weights: one .safetensors file, or a directory of shards with an index",
     .recognises = is_safetensors,
     .owns = is_safetensors_file,
     .read = read_safetensors,
     .write = write_safetensors,
     .takes_shards = true,
     .plan = plan_safetensors},
    {.name = "pt",
     .summary = "PyTorch's torch.save: a state dict, or a dict of model, optimizer and step",
     .recognises = is_pt,
     .owns = owns_nothing,
     .read = read_pt,
     .write = write_pt,
     .verify = verify_pt,
     .keeps_optimizer_state = true,
     .needs_steps = true},
    {.name = "meta-llama",
     .summary =
         "Meta's Llama: consolidated.00.pth and params.json; only read, with --map meta-llama",
     .recognises = is_meta_llama,
     .owns = owns_nothing,
     .read = read_meta_llama,
     .write = nullptr},
    {.name = "megatron",
     .summary = "Megatron-LM's; neither read nor written",
     .recognises = is_megatron,
     .owns = owns_nothing,
     .read = read_megatron,
     .write = nullptr},
    {.name = "dcp",
     .summary = "PyTorch's distributed checkpoint, as FSDP saves it: a directory of .distcp files",
     .recognises = is_dcp,
     .owns = is_dcp_file,
     .read = read_dcp,
     .write = write_dcp,
     .verify = verify_dcp,
     .keeps_optimizer_state = true,
     .needs_steps = true,
     .takes_shards = true},
    {.name = "gguf",
     .summary = "weights and tokenizer: one file for llama.cpp, or named tensors",
     .recognises = is_gguf,
     .owns = owns_nothing,
     .read = read_gguf,
     .check_fits = check_fits_gguf,
     .write = write_gguf_file,
     .keeps_tokenizer = true},
    {.name = "llmc",
     .summary = "weights: one file for llm.c, of a GPT-2",
     .recognises = is_llmc,
     .owns = owns_nothing,
     .read = read_llmc,
     .check_fits = check_fits_llmc,
     .write = write_llmc_file},
    {.name = "universal",
     .summary = "what DeepSpeed loads with load_universal_checkpoint, at any ZeRO stage",
     .recognises = is_universal,
     .owns = is_universal_file,
     .read = read_universal,
     .write = write_universal,
     .keeps_optimizer_state = true,
     .needs_steps = true},
    {.name = "deepspeed",
     .summary = "DeepSpeed's ZeRO, stages 0 to 3; only read: runs of it load what universal writes",
     .recognises = is_zero_checkpoint,
     .owns = owns_nothing,
     .read = read_zero_checkpoint,
     .write = nullptr,
     .keeps_optimizer_state = true}};

// For an error: which of a directory's files have tensors, though it is no checkpoint itself.
std::string tensor_files_in(const std::string& path) {
  constexpr std::array<std::string_view, 5> kEnds = {".safetensors", ".bin", ".pt", ".pth",
                                                     ".gguf"};
  std::set<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (std::ranges::any_of(kEnds, [&](std::string_view last) { return name.ends_with(last); }))
      files.insert(name);
  }
  if (files.empty()) return "";
  const auto others = files.size() == 1 ? "" : fmt::format(" and {} more", files.size() - 1);
  return fmt::format("; it holds {}{}: name one file, or add the missing {}", *files.begin(),
                     others,
                     files.begin()->ends_with(".bin") ? "pytorch_model.bin.index.json"
                                                      : "model.safetensors.index.json");
}

}  // namespace

constinit const std::span<const CheckpointFormat> kFormats = kTable;

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const CheckpointFormat& row : kFormats) {
    if (row.write != nullptr) names.emplace_back(row.name);
  }
  return names;
}

std::vector<std::string> file_format_names() {
  std::vector<std::string> names = format_names();
  std::erase_if(names,
                [](const std::string& name) { return find_format(name).owns != owns_nothing; });
  return names;
}

const CheckpointFormat& find_format(const std::string& name) {
  const std::vector<std::string_view> words = row_names(kFormats);
  const auto word = find_word(words, name);
  const auto row = std::ranges::find(kFormats, word.value_or(name), &CheckpointFormat::name);
  if (row == kFormats.end()) fail_unknown(ErrorKind::kUsage, "--to", name, format_names());
  if (row->write == nullptr)
    fail(ErrorKind::kUsage, "gxp does not write format '{}': {}", name, row->summary);
  return *row;
}

const CheckpointFormat& format_at(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) < 0) {
    const int cause = errno;
    const std::string aside = aside_path(path);
    const bool moved = cause == ENOENT && path_exists(aside);
    fail(ErrorKind::kIo, "open {}: {}{}", path, system_text(cause),
         moved ? fmt::format("; an interrupted conversion left it at {}", aside) : "");
  }
  for (const CheckpointFormat& row : kFormats) {
    if (row.recognises(path)) return row;
  }
  std::vector<std::string_view> names;
  for (const CheckpointFormat& row : kFormats) names.push_back(row.name);
  fail(ErrorKind::kCorrupt, "open {}: no checkpoint in a format that gxp reads ({}){}", path,
       joined(names, ", "), tensor_files_in(path));
}

NamedTensors read_checkpoint(const std::string& given) {
  raise_descriptor_limit();  // runs of many ranks have many files, which stay open
  const std::string path = checkpoint_at(given);
  NamedTensors tensors = format_at(path).read(path);
  if (tensors.tensors.empty())
    fail(ErrorKind::kCorrupt, "read {}: it is a {} checkpoint without tensors", path,
         tensors.format);
  return tensors;
}

NamedTensors read_weights(const std::string& path) {
  NamedTensors weights = read_checkpoint(path);
  unwrap_names(weights);
  add_neighbouring_config(path, weights);
  return with_gpt2_names(std::move(weights));
}

}  // namespace gxp
