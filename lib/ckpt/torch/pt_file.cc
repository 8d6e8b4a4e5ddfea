#include "lib/ckpt/torch/pt_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <tuple>

#include "lib/base/json/json.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/torch/optimizer_settings.h"
#include "lib/ckpt/torch/optimizer_state.h"
#include "lib/ckpt/torch/pt_metadata.h"
#include "lib/ckpt/torch/state_dict.h"
#include "lib/ckpt/torch/torch_archive.h"
#include "lib/ckpt/weight_index.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::string_view, 4> kModelKeys = {"model", "state_dict", "model_state_dict",
                                                        "module"};
constexpr std::array<std::string_view, 4> kOptimizerKeyNames = {"optimizer", "optimizer_state_dict",
                                                                "optim", "optimizer_states"};
constexpr int kMaxPartDepth = 8;
constexpr uint64_t kMaxPartVisits = uint64_t{1} << 20;
constexpr std::array<std::string_view, 4> kStepKeys = {"step", "global_step", "iteration",
                                                       "iter_num"};
constexpr uint64_t kMaxClaim = 8;  // in the file's bytes
constexpr const char* kPtSingle = "pytorch_model.bin";
constexpr const char* kPtIndex = "pytorch_model.bin.index.json";

// Which parts of the pickle are what.
struct PtParts {
  PickleValue weights;
  std::string weights_key = "";  // "": the root
  std::optional<PickleValue> optimizer = {};
  std::vector<std::string> optimizer_keys = {};
  size_t optimizer_count = 0;
  // Of those, the ones that have tensors beside the optimizer: Megatron's fp32 weights, for one.
  std::vector<std::string> keys_with_more = {};
};

// A torch.optim's state_dict(), whatever it is called; without groups of parameters only under one of
// the usual keys.
bool is_optimizer(PickleValue value, std::string_view key, const std::string& where) {
  if (!value.is(PickleKind::kDict)) return false;
  const auto state = find_member(value, "state", where);
  const bool is_usual = std::ranges::find(kOptimizerKeyNames, key) != kOptimizerKeyNames.end();
  return state && state->is(PickleKind::kDict) &&
         (is_usual || find_member(value, "param_groups", where));
}

// One, or a list or dict of some, as Lightning and scripts with several have it.
std::vector<PickleValue> optimizers_in(PickleValue value, std::string_view key,
                                       const std::string& where) {
  if (is_optimizer(value, key, where)) return {value};
  const bool is_dict = value.is(PickleKind::kDict);
  if (!is_dict && !value.is(PickleKind::kList) && !value.is(PickleKind::kTuple)) return {};
  std::vector<PickleValue> found;
  for (size_t i = 0; i < value.size(); ++i) {
    const PickleValue part = is_dict ? value.value(i) : value.item(i);
    if (is_optimizer(part, key, where)) found.push_back(part);
  }
  return found;
}

// Whether there is a tensor in it, down to some depth; `visits` bounds the cost.
bool has_tensors(PickleValue value, int depth, uint64_t& visits) {
  if (is_tensor(value)) return true;
  if (visits == 0) return false;
  --visits;
  const bool is_dict = value.is(PickleKind::kDict);
  if (depth == 0 || (!is_dict && !value.is(PickleKind::kList) && !value.is(PickleKind::kTuple)))
    return false;
  for (size_t i = 0; i < value.size(); ++i)
    if (has_tensors(is_dict ? value.value(i) : value.item(i), depth - 1, visits)) return true;
  return false;
}

// Whether a list or dict of optimizers has other tensors, too.
bool has_more_tensors(PickleValue value, std::string_view key, const std::string& where) {
  if (is_optimizer(value, key, where)) return false;
  const bool is_dict = value.is(PickleKind::kDict);
  for (size_t i = 0; i < value.size(); ++i) {
    const PickleValue part = is_dict ? value.value(i) : value.item(i);
    uint64_t visits = kMaxPartVisits;
    if (!is_optimizer(part, key, where) && has_tensors(part, kMaxPartDepth, visits)) return true;
  }
  return false;
}

// Takes the one optimizer there is; of several, none can be told to be the weights'.
void find_optimizer(PickleValue root, const std::string& where, PtParts& parts) {
  std::vector<PickleValue> found;
  for (size_t i = 0; i < root.size(); ++i) {
    if (!root.key(i).is(PickleKind::kText)) continue;
    const std::string key(root.key(i).text());
    if (key == parts.weights_key) continue;
    const auto here = optimizers_in(root.value(i), key, where);
    if (here.empty()) continue;
    parts.optimizer_keys.push_back(key);
    if (has_more_tensors(root.value(i), key, where)) parts.keys_with_more.push_back(key);
    found.insert(found.end(), here.begin(), here.end());
  }
  if (found.size() == 1) parts.optimizer = found[0];
  parts.optimizer_count = found.size();
}

std::string key_in_words(PickleValue key) {
  return key.is(PickleKind::kText) ? std::string(key.text()) : key.describe();
}

// The weights beside an optimizer, under a key of the script's own: the one member that has tensors.
void find_weights(PickleValue root, const std::string& where, PtParts& parts) {
  std::vector<std::string> keys, with_tensors;
  for (size_t i = 0; i < root.size(); ++i) {
    std::string key = key_in_words(root.key(i));
    keys.push_back(key);
    uint64_t visits = kMaxPartVisits;
    if (std::ranges::find(parts.optimizer_keys, key) != parts.optimizer_keys.end() ||
        !has_tensors(root.value(i), kMaxPartDepth, visits))
      continue;
    parts.weights = root.value(i);
    with_tensors.push_back(std::move(key));
  }
  if (with_tensors.size() != 1 || !parts.weights.is(PickleKind::kDict))
    fail(ErrorKind::kCorrupt,
         "{}: it has an optimizer ({}), but no key that clearly holds the weights (keys: {}); save "
         "them as {{\"model\": model.state_dict(), \"optimizer\": ...}}",
         where, joined(parts.optimizer_keys, ", "), joined(keys, ", "));
  parts.weights_key = with_tensors.front();
}

// The usual key under which there are weights; "" if there is none.
std::string model_key(PickleValue root, const std::string& where) {
  for (const std::string_view key : kModelKeys) {
    const auto found = find_member(root, key, where);
    if (found && found->is(PickleKind::kDict) && found->size() > 0) return std::string(key);
  }
  return "";
}

// The dict that has the model and its optimizer: the root, or of Composer "state", which is beside
// random states.
PickleValue training_dict(PickleValue root, const std::string& path) {
  const std::string where = "read " + path;
  if (!root.is(PickleKind::kDict) || !model_key(root, where).empty()) return root;
  std::vector<size_t> found;
  std::vector<std::string> keys;
  for (size_t i = 0; i < root.size(); ++i) {
    const PickleValue part = root.value(i);
    PtParts parts{.weights = part};
    keys.push_back(key_in_words(root.key(i)));
    if (!part.is(PickleKind::kDict) || model_key(part, where).empty()) continue;
    find_optimizer(part, where, parts);
    if (parts.optimizer_count > 0) found.push_back(i);
  }
  if (found.size() != 1) return root;
  const std::string taken = keys[found[0]];
  keys.erase(keys.begin() + std::ptrdiff_t(found[0]));
  if (!keys.empty())
    log_info("{}: the model and its optimizer are in '{}'; left out beside it: {}", path, taken,
             joined(keys, ", "));
  return root.value(found[0]);
}

PtParts parts_of(PickleValue root, const std::string& where) {
  if (!root.is(PickleKind::kDict))
    fail(ErrorKind::kCorrupt, "{}: a dict of tensors expected, found {}; save a state_dict()",
         where, root.describe());
  if (is_optimizer(root, "", where))
    fail(ErrorKind::kCorrupt,
         "{}: the state_dict() of an optimizer alone, without the weights that it is of; save them "
         "as {{\"model\": model.state_dict(), \"optimizer\": ...}}",
         where);
  PtParts parts{.weights = root};
  parts.weights_key = model_key(root, where);
  if (!parts.weights_key.empty()) parts.weights = member(root, parts.weights_key, where);
  find_optimizer(root, where, parts);
  if (parts.weights_key.empty() && parts.optimizer_count > 0) find_weights(root, where, parts);
  return parts;
}

// nanoGPT's arguments of its model.
std::string model_args_json(PickleValue args) {
  std::vector<std::string> pairs;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto json = setting_json(args.value(i));
    if (json && args.key(i).is(PickleKind::kText))
      pairs.push_back(fmt::format("{}: {}", write_json(std::string(args.key(i).text())), *json));
  }
  return fmt::format("{{{}}}", joined(pairs, ", "));
}

// What stands beside the parts.
void take_others(PickleValue root, const PtParts& parts, const std::string& path,
                 NamedTensors& result) {
  std::vector<std::string> left_out;
  for (size_t i = 0; i < root.size(); ++i) {
    if (!root.key(i).is(PickleKind::kText)) continue;
    std::string key(root.key(i).text());
    if (key == parts.weights_key ||
        std::ranges::find(parts.optimizer_keys, key) != parts.optimizer_keys.end())
      continue;
    const PickleValue value = root.value(i);
    const bool is_step = std::ranges::find(kStepKeys, key) != kStepKeys.end();
    if (is_step && value.is(PickleKind::kInteger) && value.integer() >= 0) {
      if (!result.step) result.step = uint64_t(value.integer());
    } else if (const auto text = scalar_text(value)) {
      result.metadata.emplace(std::move(key), *text);
    } else if (key == kModelArgsKey && value.is(PickleKind::kDict)) {
      result.metadata.emplace(key, model_args_json(value));
    } else if (!value.is_none()) {
      left_out.push_back(std::move(key));
    }
  }
  if (!left_out.empty())
    log_info("{}: left out, since they are neither weights nor optimizer state: {}", path,
             joined(left_out, ", "));
}

// Views share bytes; a small file must not become a large one.
void check_claim(const NamedTensors& tensors, uint64_t file_bytes, const std::string& where) {
  uint64_t claimed = 0;
  for (const NamedTensor& tensor : tensors.tensors) {
    if (__builtin_add_overflow(claimed, tensor.info.bytes(), &claimed) ||
        claimed / kMaxClaim > file_bytes + kMaxExpandedBytes / kMaxClaim)
      fail(ErrorKind::kCorrupt,
           "{}: its tensors claim more than {} times the file's {} bytes, up to '{}'", where,
           kMaxClaim, file_bytes, tensor.info.name);
  }
}

// Whether the first member, which torch.save writes first, is the pickle.
bool begins_with_pickle(const FileRange& range) {
  std::string head(std::min<uint64_t>(range.bytes, 512), '\0');
  range.read(0, memory_of(head));
  return head.starts_with("PK\3\4") && head.find("/data.pkl") != std::string::npos;
}

// The index or the file that a directory or a path means.
std::string find_pt_root(const std::string& path) {
  std::error_code error;  // which opening the file will tell
  if (!fs::is_directory(path, error)) return path;
  const std::string index = fs::path(path) / kPtIndex;
  return path_exists(index) ? index : std::string(fs::path(path) / kPtSingle);
}

bool is_pt_index(const std::string& path) { return path.ends_with(".bin.index.json"); }

NamedTensors read_pt_file(const std::string& path) {
  const std::string where = "read " + path;
  const FileRange range = FileRange::open(path);
  const TorchArchive archive = TorchArchive::open(range);
  const PickleValue root = training_dict(archive.root(), path);
  const PtParts parts = parts_of(root, where);
  NamedTensors result{.format = "pt"};
  const auto weights = take_pt_weights(archive, parts.weights, where, result);
  take_pt_metadata(parts.weights, where, result);
  if (!parts.weights_key.empty()) take_others(root, parts, path, result);
  if (parts.optimizer) take_pt_optimizer(archive, *parts.optimizer, weights, path, result);
  if (parts.optimizer_count > 1)
    result.optimizer.lost.push_back(fmt::format("{} optimizers of one file ({})",
                                                parts.optimizer_count,
                                                joined(parts.optimizer_keys, ", ")));
  for (const std::string& key : parts.keys_with_more)
    result.optimizer.lost.push_back(fmt::format("the tensors beside the optimizer in '{}'", key));
  check_claim(result, range.bytes, where);
  return result;
}

bool verify_pt_file(const std::string& path) {
  return TorchArchive::open(FileRange::open(path)).verify();
}

}  // namespace

bool is_pt(const std::string& path) {
  std::error_code error;  // which opening the file will tell
  if (fs::is_directory(path, error)) return path_exists(find_pt_root(path));
  if (!fs::is_regular_file(path, error)) return false;
  if (path.ends_with(".pt") || path.ends_with(".pth") || is_pt_index(path)) return true;
  try {
    const FileRange range = FileRange::open(path);
    return TorchArchive::begins(range) && (!ZipArchive::begins(range) || begins_with_pickle(range));
  } catch (const Error&) {
    return false;  // another format, or opening it tells
  }
}

std::vector<OptimizerWeight> take_pt_weights(const TorchArchive& archive, PickleValue weights,
                                             const std::string& where, NamedTensors& result) {
  std::vector<OptimizerWeight> list;
  using Place = std::tuple<std::string, uint64_t, std::vector<uint64_t>, std::vector<uint64_t>>;
  std::set<Place> places;
  for (const StateDictTensor& found : tensors_in(weights, where)) {
    result.tensors.push_back(archive.tensor(found.value, found.name));
    const TorchTensor tensor = to_tensor(found.value, where);
    const Place place{tensor.storage.key, tensor.offset, tensor.shape, tensor.strides};
    list.push_back({result.tensors.back().info, !places.insert(place).second});
  }
  return list;
}

void take_pt_optimizer(const TorchArchive& archive, PickleValue optimizer,
                       const std::vector<OptimizerWeight>& weights, const std::string& path,
                       NamedTensors& result) {
  const std::string where = "read " + path + ": optimizer";
  OptimizerTensors kept = read_optimizer_state(archive, optimizer, weights, where);
  std::ranges::move(kept.tensors, std::back_inserter(result.tensors));
  std::ranges::move(kept.record.lost, std::back_inserter(result.optimizer.lost));
  // gxp has written the file, and knows the rest.
  if (!result.config.empty() || !result.optimizer.groups.empty()) return;
  OptimizerGroups settings;
  if (const auto groups = find_member(optimizer, "param_groups", where))
    settings.add_all(*groups, where);
  settings.finish(result);
  result.optimizer.groups = std::move(kept.record.groups);
  result.optimizer.steps = std::move(kept.record.steps);
  settle_steps(result);
}

NamedTensors read_pt(const std::string& path) {
  const std::string root = find_pt_root(path);
  if (root != path && is_pt_index(root)) check_no_rival(root, kPtSingle);
  NamedTensors result =
      is_pt_index(root) ? read_weight_index(root, read_pt_file) : read_pt_file(root);
  result.format = "pt";
  return result;
}

uint64_t verify_pt(const std::string& path) {
  const std::string root = find_pt_root(path);
  const auto files = is_pt_index(root) ? indexed_files(root) : std::set<std::string>{root};
  bool recorded = true;
  for (const std::string& file : files) recorded &= verify_pt_file(file);
  return recorded ? files.size() : 0;
}

}  // namespace gxp
