#include "lib/ckpt/torch/pt_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <tuple>

#include "lib/base/log.h"
#include "lib/ckpt/torch/optimizer_settings.h"
#include "lib/ckpt/torch/optimizer_state.h"
#include "lib/ckpt/torch/pt_metadata.h"
#include "lib/ckpt/torch/state_dict.h"
#include "lib/ckpt/torch/torch_archive.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::string_view, 4> kModelKeys = {"model", "state_dict", "model_state_dict",
                                                        "module"};
constexpr std::array<std::string_view, 4> kOptimizerParts = {"optimizer", "optimizer_state_dict",
                                                             "optim", "optimizer_states"};
constexpr std::array<std::string_view, 4> kStepKeys = {"step", "global_step", "iteration",
                                                       "iter_num"};
constexpr uint64_t kMaxClaim = 8;  // in the file's bytes

// Which parts of the pickle are what.
struct PtParts {
  PickleValue weights;
  std::string weights_key = "";  // "": the root
  std::optional<PickleValue> optimizer = {};
  std::string optimizer_key = "";
};

PtParts parts_of(PickleValue root, const std::string& where) {
  if (!root.is(PickleKind::kDict))
    fail(ErrorKind::kCorrupt, "{}: a dict of tensors expected, found {}; save a state_dict()",
         where, root.describe());
  PtParts parts{.weights = root};
  for (const std::string_view key : kModelKeys) {
    const auto found = find_member(root, key, where);
    if (!found || !found->is(PickleKind::kDict) || found->size() == 0) continue;
    parts.weights = *found;
    parts.weights_key = key;
    break;
  }
  if (parts.weights_key.empty()) return parts;
  for (const std::string_view key : kOptimizerParts) {
    auto found = find_member(root, key, where);
    if (found && found->is(PickleKind::kList) && found->size() == 1) found = found->item(0);
    if (!found || !found->is(PickleKind::kDict) || !find_member(*found, "state", where)) continue;
    parts.optimizer = found;
    parts.optimizer_key = key;
    break;
  }
  return parts;
}

// What stands beside the parts.
void take_others(PickleValue root, const PtParts& parts, const std::string& path,
                 NamedTensors& result) {
  std::vector<std::string> left_out;
  for (size_t i = 0; i < root.size(); ++i) {
    if (!root.key(i).is(PickleKind::kText)) continue;
    std::string key(root.key(i).text());
    if (key == parts.weights_key || key == parts.optimizer_key) continue;
    const PickleValue value = root.value(i);
    const bool is_step = std::ranges::find(kStepKeys, key) != kStepKeys.end();
    if (is_step && value.is(PickleKind::kInteger) && value.integer() >= 0) {
      if (!result.step) result.step = uint64_t(value.integer());
    } else if (const auto text = scalar_text(value)) {
      result.metadata.emplace(std::move(key), *text);
    } else if (!value.is_none()) {
      left_out.push_back(std::move(key));
    }
  }
  if (!left_out.empty())
    log_info("{}: left out, as it is neither weights nor their optimizer state: {}", path,
             fmt::join(left_out, ", "));
}

// The weights, and for each whether it lies where an earlier one does.
std::vector<OptimizerWeight> take_weights(const TorchArchive& archive, PickleValue weights,
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

void take_optimizer(const TorchArchive& archive, PickleValue optimizer,
                    const std::vector<OptimizerWeight>& weights, const std::string& path,
                    NamedTensors& result) {
  const std::string where = "read " + path + ": optimizer";
  OptimizerTensors kept = read_optimizer_state(archive, optimizer, weights, where);
  OptimizerGroups settings;
  if (const auto groups = find_member(optimizer, "param_groups", where))
    settings.add_all(*groups, where);
  settings.finish(result);
  std::ranges::move(kept.tensors, std::back_inserter(result.tensors));
  if (!result.step) result.step = kept.step;
  if (!kept.problem.empty())
    log_warn(
        "{}: the optimizer state is left out: {}; make the optimizer of named_parameters() "
        "(torch 2.6), which records the names",
        path, kept.problem);
  if (!kept.left_out.empty())
    log_warn("{}: of the optimizer state, gxp has no place for {}", path,
             fmt::join(kept.left_out, ", "));
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

}  // namespace

bool is_pt(const std::string& path) {
  std::error_code error;  // which opening the file will tell
  if (!fs::is_regular_file(path, error)) return false;
  if (path.ends_with(".pt") || path.ends_with(".pth")) return true;
  try {
    const FileRange range = FileRange::open(path);
    return TorchArchive::begins(range) && (!ZipArchive::begins(range) || begins_with_pickle(range));
  } catch (const Error&) {
    return false;  // another format, or opening it tells
  }
}

NamedTensors read_pt(const std::string& path) {
  const std::string where = "read " + path;
  const FileRange range = FileRange::open(path);
  const TorchArchive archive = TorchArchive::open(range);
  const PtParts parts = parts_of(archive.root(), where);
  NamedTensors result{.format = "pt"};
  const auto weights = take_weights(archive, parts.weights, where, result);
  take_pt_metadata(parts.weights, where, result);
  if (!parts.weights_key.empty()) take_others(archive.root(), parts, path, result);
  if (parts.optimizer) take_optimizer(archive, *parts.optimizer, weights, path, result);
  check_claim(result, range.bytes, where);
  return result;
}

uint64_t verify_pt(const std::string& path) {
  return TorchArchive::open(FileRange::open(path)).verify() ? 1 : 0;
}

}  // namespace gxp
