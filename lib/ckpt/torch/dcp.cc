#include "lib/ckpt/torch/dcp.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "lib/base/log.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/torch/dcp_metadata.h"
#include "lib/ckpt/torch/dcp_names.h"
#include "lib/ckpt/torch/optimizer_settings.h"
#include "lib/ckpt/torch/pt_metadata.h"
#include "lib/ckpt/torch/torch_archive.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

constexpr const char* kDcpMetadata = ".metadata";
constexpr uint64_t kMaxDcpObjectBytes = uint64_t{64} << 10;  // larger values are left out unread

// The rank of "__R_N.distcp"; nothing for other names.
std::optional<int> dcp_rank(std::string_view name) {
  constexpr std::string_view kBegin = "__", kEnd = ".distcp";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return std::nullopt;
  const char* const end = name.data() + name.size() - kEnd.size();
  int rank = 0, number = 0;
  const auto first = std::from_chars(name.data() + kBegin.size(), end, rank);
  if (first.ec != std::errc{} || rank < 0 || first.ptr == end || *first.ptr != '_')
    return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, number);
  return second.ec == std::errc{} && number >= 0 && second.ptr == end ? std::optional(rank)
                                                                      : std::nullopt;
}

bool is_rank_metadata(std::string_view name) {
  return name.starts_with("__") && name.ends_with(kDcpMetadata);
}

// The files of a checkpoint, and its metadata, which they agree with.
class DcpDirectory {
 public:
  explicit DcpDirectory(const std::string& path);

  [[nodiscard]] const DcpMetadata& metadata() const { return metadata_; }
  [[nodiscard]] size_t file_count() const { return files_.size(); }
  [[nodiscard]] const std::string& path_of(const DcpPlace& place) const {
    return files_[place.file]->path();
  }
  [[nodiscard]] TorchArchive open(const DcpPlace& place) const {
    const std::shared_ptr<const InputFile>& file = files_[place.file];
    return TorchArchive::open(FileRange::whole(file).part(place.offset, place.bytes, "an archive"));
  }
  [[nodiscard]] std::vector<DcpPlace> places() const;
  // How many ranks have written it, as the files' names tell.
  [[nodiscard]] std::optional<int> world_size() const;

 private:
  void check_places() const;

  DcpMetadata metadata_;
  std::vector<std::shared_ptr<const InputFile>> files_;  // owners: the readers of tensors, too
};

// Why there is no .metadata.
[[noreturn]] void refuse_dcp_directory(const std::string& path) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (is_rank_metadata(entry.path().filename().string()))
      fail(ErrorKind::kCorrupt,
           "read {}: each rank has written a {} of its own (use_collectives=False), which gxp does "
           "not read; save with use_collectives=True",
           path, entry.path().filename().string());
  }
  fail(ErrorKind::kCorrupt, "read {}: it has no {}, which a save writes last: no checkpoint", path,
       kDcpMetadata);
}

DcpDirectory::DcpDirectory(const std::string& path) {
  const std::string name = fmt::format("{}/{}", path, kDcpMetadata);
  if (!path_exists(name)) refuse_dcp_directory(path);
  metadata_ = read_dcp_metadata(FileRange::open(name));
  for (const std::string& file : metadata_.files)
    files_.push_back(std::make_shared<const InputFile>(fmt::format("{}/{}", path, file)));
  check_places();
}

std::vector<DcpPlace> DcpDirectory::places() const {
  std::vector<DcpPlace> places;
  for (const DcpTensor& tensor : metadata_.tensors)
    places.insert(places.end(), tensor.places.begin(), tensor.places.end());
  for (const DcpObject& object : metadata_.objects) places.push_back(object.place);
  return places;
}

// No byte belongs to two values: a small file does not become a large checkpoint.
void DcpDirectory::check_places() const {
  std::vector<DcpPlace> all = places();
  std::ranges::sort(all, {},
                    [](const DcpPlace& place) { return std::pair(place.file, place.offset); });
  for (size_t i = 0; i < all.size(); ++i) {
    const FileRange file = FileRange::whole(files_[all[i].file]);
    static_cast<void>(file.part(all[i].offset, all[i].bytes, "an archive that .metadata names"));
    if (i + 1 < all.size() && all[i].file == all[i + 1].file &&
        all[i + 1].offset - all[i].offset < all[i].bytes)
      fail(ErrorKind::kCorrupt, "read {}: the archive of {} bytes at {} overlaps the one at {}",
           file.file->path(), all[i].bytes, all[i].offset, all[i + 1].offset);
  }
}

std::optional<int> DcpDirectory::world_size() const {
  int last = -1;
  for (const std::string& name : metadata_.files)
    last = std::max(last, dcp_rank(name).value_or(-1));
  return last < 0 ? std::nullopt : std::optional(last + 1);
}

NamedTensor open_chunk(const DcpDirectory& directory, const DcpTensor& tensor, size_t chunk) {
  const TorchArchive archive = directory.open(tensor.places[chunk]);
  const TensorBox& box = tensor.chunks[chunk];
  NamedTensor part = archive.tensor(archive.root(), tensor.key.text);
  const DcpPlace& place = tensor.places[chunk];
  if (part.info.dtype != tensor.dtype || part.info.shape != box.sizes ||
      part.info.bytes() > place.bytes)
    fail(ErrorKind::kCorrupt,
         "read {}: tensor '{}': the archive of {} bytes at {} holds {} of shape ({}); .metadata "
         "tells {}, a chunk at {}",
         directory.path_of(place), tensor.key.text, place.bytes, place.offset,
         to_string(part.info.dtype), fmt::join(part.info.shape, ", "), to_string(tensor.dtype),
         to_string(box));
  return part;
}

NamedTensor open_dcp_tensor(const DcpDirectory& directory, const DcpTensor& tensor,
                            const DcpName& name) {
  std::vector<BoxPart> parts;
  for (size_t i = 0; i < tensor.chunks.size(); ++i)
    parts.push_back({tensor.chunks[i], open_chunk(directory, tensor, i)});
  return join_boxes({name.name, name.role, tensor.dtype, tensor.shape}, std::move(parts));
}

std::optional<double> dcp_number(const NamedTensor& tensor) {
  const auto read = [&](auto number) {
    tensor.read(0, {reinterpret_cast<std::byte*>(&number), sizeof(number)});
    return double(number);
  };
  switch (tensor.info.dtype) {
    case StorageDType::kF32:
      return read(float{});
    case StorageDType::kF64:
      return read(double{});
    case StorageDType::kI32:
      return read(int32_t{});
    case StorageDType::kI64:
      return read(int64_t{});
    default:
      return std::nullopt;
  }
}

// The step that all of the optimizer's parameters have, or that the state dict tells.
class DcpSteps {
 public:
  void add(const std::vector<std::string>& path, std::optional<double> number) {
    if (number) (is_dcp_optimizer_state(path) ? kept_ : told_).insert(*number);
  }
  [[nodiscard]] std::optional<uint64_t> step() const {
    const std::set<double>& steps = told_.empty() ? kept_ : told_;
    if (steps.size() != 1) return std::nullopt;
    const double step = *steps.begin();
    // Beyond 2^53 a double does not count.
    const bool counts = step >= 0 && step < 0x1p53 && std::floor(step) == step;
    return counts ? std::optional(uint64_t(step)) : std::nullopt;
  }

 private:
  std::set<double> kept_, told_;
};

void take_dcp_tensors(const DcpDirectory& directory, const std::string& path, DcpSteps& steps,
                      NamedTensors& result) {
  const std::vector<DcpTensor>& tensors = directory.metadata().tensors;
  const std::vector<DcpName> names = name_dcp_tensors(tensors);
  std::set<std::pair<Role, std::string>> taken;
  std::vector<std::string_view> left_out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& key = tensors[i].key.text;
    if (names[i].use == DcpUse::kLeftOut) {
      left_out.push_back(key);
      continue;
    }
    NamedTensor tensor = open_dcp_tensor(directory, tensors[i], names[i]);
    if (names[i].use == DcpUse::kStep) {
      steps.add(tensors[i].key.path, dcp_number(tensor));
      continue;
    }
    if (!taken.emplace(names[i].role, names[i].name).second)
      fail(ErrorKind::kCorrupt, "read {}: '{}' is a second {} of '{}'", path, key,
           to_string(names[i].role), names[i].name);
    result.tensors.push_back(std::move(tensor));
  }
  if (!left_out.empty())
    log_warn(
        "{}: of the optimizer state, gxp has no place for {} tensors, such as {}; parameters must "
        "have names, as get_optimizer_state_dict() gives them",
        path, left_out.size(), left_out[0]);
}

// Moments have their weight's shape.
void check_dcp_moments(const NamedTensors& tensors, const std::string& path) {
  std::map<std::string_view, const TensorInfo*> weights;
  for (const NamedTensor& tensor : tensors.tensors)
    if (tensor.info.role == Role::kWeight) weights[tensor.info.name] = &tensor.info;
  for (const NamedTensor& tensor : tensors.tensors) {
    const TensorInfo& info = tensor.info;
    if (info.role != Role::kAdamM && info.role != Role::kAdamV && info.role != Role::kMomentum)
      continue;
    const auto weight = weights.find(info.name);
    if (weight != weights.end() && weight->second->shape != info.shape)
      fail(ErrorKind::kCorrupt, "read {}: the {} of '{}' has the shape ({}), the weight ({})", path,
           to_string(info.role), info.name, fmt::join(info.shape, ", "),
           fmt::join(weight->second->shape, ", "));
  }
}

// Whether it is a setting of the optimizer: PATH/param_groups/0/lr, or PARAMETER's, flattened,
// PATH/"param_groups.PARAMETER.lr".
bool is_group_setting(const DcpObject& object) {
  return object.key.text.find("param_groups.") != std::string::npos;
}

// One value that is no tensor. Returns whether it is understood.
bool take_dcp_object(const DcpDirectory& directory, const DcpObject& object, DcpSteps& steps,
                     OptimizerGroups& groups, NamedTensors& result) {
  if (object.place.bytes > kMaxDcpObjectBytes) return false;
  const TorchArchive archive = directory.open(object.place);
  const PickleValue value = archive.root();
  if (is_group_setting(object))
    groups.add(object.key.text.substr(object.key.text.rfind('.') + 1), value);
  if (is_dcp_step(object.key.path) && value.is(PickleKind::kInteger)) {
    steps.add(object.key.path, double(value.integer()));
    return true;
  }
  if (object.key.text == "gxp" && value.is(PickleKind::kDict)) {
    take_pt_metadata(value, fmt::format("read {}: 'gxp'", directory.path_of(object.place)), result);
    return true;
  }
  const auto text = scalar_text(value);
  if (text) result.metadata.emplace(object.key.text, *text);
  return text || value.is_none();
}

void take_dcp_objects(const DcpDirectory& directory, const std::string& path, DcpSteps& steps,
                      NamedTensors& result) {
  std::vector<std::string_view> left_out;
  OptimizerGroups groups;
  for (const DcpObject& object : directory.metadata().objects) {
    if (!take_dcp_object(directory, object, steps, groups, result) && !is_group_setting(object))
      left_out.push_back(object.key.text);
  }
  groups.finish(result);
  if (!left_out.empty())
    log_info("{}: left out, as it is neither tensors nor a number or text: {}", path,
             fmt::join(left_out, ", "));
}

}  // namespace

bool is_dcp(const std::string& path) {
  std::error_code error;  // which opening it will tell
  if (!fs::is_directory(path, error)) return false;
  if (fs::is_regular_file(fmt::format("{}/{}", path, kDcpMetadata), error)) return true;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (dcp_rank(name) || is_rank_metadata(name)) return true;
  }
  return false;
}

bool is_dcp_file(std::string_view name) { return name == kDcpMetadata || dcp_rank(name); }

NamedTensors read_dcp(const std::string& path) {
  const DcpDirectory directory(path);
  NamedTensors result{.format = "dcp"};
  result.world_size = directory.world_size();
  DcpSteps steps;
  take_dcp_tensors(directory, path, steps, result);
  check_dcp_moments(result, path);
  take_dcp_objects(directory, path, steps, result);
  if (!result.step) result.step = steps.step();
  return result;
}

uint64_t verify_dcp(const std::string& path) {
  const DcpDirectory directory(path);
  bool recorded = true;
  for (const DcpPlace& place : directory.places())
    recorded = directory.open(place).verify() && recorded;
  return recorded ? directory.file_count() : 0;
}

}  // namespace gxp
