#include "lib/ckpt/deepspeed/zero_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <map>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/name_parts.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxTagBytes = 4096;
constexpr std::string_view kModelEnd = "_model_states.pt";
constexpr std::string_view kOptimEnd = "_optim_states.pt";

struct ZeroFileName {
  std::optional<uint64_t> rank;  // data-parallel; nothing: the file of all
  uint64_t tensor_rank = 0;
  bool is_model = false;
};

// Nothing if it is no such name.
std::optional<ZeroFileName> parse_zero_name(std::string_view name) {
  ZeroFileName parsed;
  const bool is_bf16 = skip(name, "bf16_");
  if (skip(name, "zero_pp_rank_")) {
    uint64_t rank = 0;
    if (!skip_number(name, rank) || !skip(name, "_")) return std::nullopt;
    parsed.rank = rank;
  }
  if (!skip(name, "mp_rank_") || !skip_number(name, parsed.tensor_rank)) return std::nullopt;
  parsed.is_model = name == kModelEnd;
  const bool is_optim = name == kOptimEnd && parsed.rank;
  if (!is_optim && (!parsed.is_model || is_bf16)) return std::nullopt;
  return parsed;
}

using FilesByRank = std::map<uint64_t, std::string>;

void add_rank(FilesByRank& files, uint64_t rank, const std::string& path) {
  const auto [place, fresh] = files.emplace(rank, path);
  if (!fresh)
    fail(ErrorKind::kCorrupt, "read {}: {} has the same rank; the files are of two checkpoints",
         path, place->second);
}

std::vector<std::string> in_order(const FilesByRank& files, std::string_view end,
                                  const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& [rank, path] : files) {
    if (rank != paths.size())
      fail(ErrorKind::kCorrupt,
           "read {}: the file *{} is missing for rank {} but present for rank {}", directory, end,
           paths.size(), rank);
    paths.push_back(path);
  }
  return paths;
}

[[noreturn]] void refuse_part(const std::string& path, std::string_view what) {
  fail(ErrorKind::kCorrupt, "read {}: {}, which gxp does not read", path, what);
}

}  // namespace

std::vector<std::string> names_in(const std::string& directory) {
  const Fd fd(int(check_sys(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                            "list " + directory)));
  return list_names(fd.get(), directory);
}

bool is_zero_file(std::string_view name) {
  return name.ends_with(kModelEnd.substr(1)) || name.ends_with(kOptimEnd.substr(1));
}

std::string tag_directory(const std::string& path, const std::string& latest) {
  const std::string file = path + "/" + latest;
  if (!path_exists(file)) return path;
  std::string tag = read_text(file, kMaxTagBytes);
  while (!tag.empty() && (tag.back() == '\n' || tag.back() == '\r' || tag.back() == ' '))
    tag.pop_back();
  if (!is_plain_name(tag))
    fail(ErrorKind::kCorrupt, "read {}: '{}' is not the name of a directory next to it", file,
         tag.substr(0, 80));
  std::string directory = path + "/" + tag;
  if (!path_exists(directory))
    fail(ErrorKind::kCorrupt, "read {}: it names '{}', which does not exist", file, tag);
  return directory;
}

ZeroFiles list_zero_files(const std::string& directory) {
  ZeroFiles files{.directory = directory};
  FilesByRank module_states, rank_states, optim_states;
  for (const std::string& name : names_in(directory)) {
    const std::string path = directory + "/" + name;
    if (name == "offloaded_tensors") refuse_part(path, "tensors offloaded to NVMe");
    if (!is_zero_file(name)) continue;
    const auto parsed = parse_zero_name(name);
    if (!parsed) refuse_part(path, "a file of experts (MoE) or of a pipeline stage");
    if (parsed->tensor_rank != 0)
      refuse_part(path, fmt::format("tensor parallel rank {}", parsed->tensor_rank));
    FilesByRank& of_kind = !parsed->is_model ? optim_states
                           : parsed->rank    ? rank_states
                                             : module_states;
    add_rank(of_kind, parsed->rank.value_or(0), path);
  }
  if (!module_states.empty()) files.module_states = module_states.at(0);
  files.rank_states = in_order(rank_states, kModelEnd, directory);
  files.optim_states = in_order(optim_states, kOptimEnd, directory);
  return files;
}

}  // namespace gxp
