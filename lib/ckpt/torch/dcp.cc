#include "lib/ckpt/torch/dcp.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/plural.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/torch/dcp_groups.h"
#include "lib/ckpt/torch/dcp_metadata.h"
#include "lib/ckpt/torch/dcp_names.h"
#include "lib/ckpt/torch/optimizer_state.h"
#include "lib/ckpt/torch/pt_metadata.h"
#include "lib/ckpt/torch/torch_archive.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

constexpr const char* kDcpMetadata = ".metadata";
constexpr uint64_t kMaxDcpObjectBytes = uint64_t{64} << 10;   // larger values are left out unread
constexpr uint64_t kMaxDcpSettingBytes = uint64_t{64} << 20;  // names of a group's parameters

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
  [[nodiscard]] const std::string& path_of(const DcpStorageInfo& place) const {
    return files_[place.file]->path();
  }
  [[nodiscard]] TorchArchive open(const DcpStorageInfo& place) const;
  [[nodiscard]] std::vector<DcpStorageInfo> places() const;
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
  fail(ErrorKind::kCorrupt,
       "read {}: {} is missing; a save writes it last, so this checkpoint is incomplete", path,
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

// FileSystemWriter(serialization_format=SAFETENSORS): u64, then a JSON object.
void refuse_safetensors(const FileRange& range) {
  constexpr size_t kHead = 9;
  std::string head(std::min<uint64_t>(range.bytes, kHead), '\0');
  range.read(0, memory_of(head));
  if (TorchArchive::begins(range) || head.size() < kHead || head.back() != '{') return;
  fail(ErrorKind::kCorrupt,
       "read {}: the data at {} is safetensors, not an archive of torch.save "
       "(serialization_format=SAFETENSORS), which gxp does not read in a .distcp; save with "
       "TORCH_SAVE, or with HuggingFaceStorageWriter, whose directories gxp reads",
       range.file->path(), range.offset);
}

TorchArchive DcpDirectory::open(const DcpStorageInfo& place) const {
  const FileRange range =
      FileRange::whole(files_[place.file]).part(place.offset, place.bytes, "an archive");
  refuse_safetensors(range);
  return TorchArchive::open(range);
}

std::vector<DcpStorageInfo> DcpDirectory::places() const {
  std::vector<DcpStorageInfo> places;
  for (const DcpTensor& tensor : metadata_.tensors)
    places.insert(places.end(), tensor.places.begin(), tensor.places.end());
  for (const DcpObject& object : metadata_.objects) places.push_back(object.place);
  return places;
}

// No byte belongs to two values: a small file does not become a large checkpoint.
void DcpDirectory::check_places() const {
  std::vector<DcpStorageInfo> all = places();
  std::ranges::sort(
      all, {}, [](const DcpStorageInfo& place) { return std::pair(place.file, place.offset); });
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
  const DcpStorageInfo& place = tensor.places[chunk];
  if (part.info.dtype != tensor.dtype || part.info.shape != box.sizes ||
      part.info.bytes() > place.bytes)
    fail(ErrorKind::kCorrupt,
         "read {}: tensor '{}': the archive of {} bytes at {} holds {} of shape ({}); .metadata "
         "tells {}, a chunk at {}",
         directory.path_of(place), tensor.key.text, place.bytes, place.offset,
         to_string(part.info.dtype), joined(part.info.shape, ", "), to_string(tensor.dtype),
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
  if (tensor.info.dtype == StorageDType::kF32) return read(float{});
  if (tensor.info.dtype == StorageDType::kF64) return read(double{});
  if (tensor.info.dtype == StorageDType::kI32) return read(int32_t{});
  if (tensor.info.dtype == StorageDType::kI64) return read(int64_t{});
  return std::nullopt;
}

// The steps of the optimizer's parameters, and those that the state dict tells.
class DcpSteps {
 public:
  // `name`: of the weight; "" for the checkpoint's own.
  void add(const std::string& name, bool is_optimizers, std::optional<double> number,
           NamedTensors& result) {
    const auto step = whole_step(number);
    if (!step) return;
    if (!is_optimizers) {
      told_.insert(*step);
    } else if (name.empty()) {
      kept_.insert(*step);
    } else {
      result.optimizer.steps[name] = *step;
    }
  }
  void finish(NamedTensors& result) const {
    if (!result.step && told_.size() == 1) result.step = *told_.begin();
    settle_steps(result);
    if (!result.step && result.optimizer.steps.empty() && kept_.size() == 1)
      result.step = *kept_.begin();
  }

 private:
  std::set<uint64_t> kept_, told_;
};

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
           to_string(info.role), info.name, joined(info.shape, ", "),
           joined(weight->second->shape, ", "));
  }
}

// Reads a checkpoint's values into one result.
class DcpReader {
 public:
  explicit DcpReader(const std::string& path) : path_(path), directory_(path) {}

  NamedTensors read() && {
    result_.format = "dcp";
    result_.world_size = directory_.world_size();
    take_tensors();
    check_dcp_moments(result_, path_);
    take_objects();
    steps_.finish(result_);
    return std::move(result_);
  }

 private:
  void take_tensors() {
    const std::vector<DcpTensor>& tensors = directory_.metadata().tensors;
    const std::vector<DcpName> names = name_dcp_tensors(tensors);
    std::vector<std::string_view> left_out;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!names[i].parameter.empty()) weights_.emplace(names[i].parameter, names[i].name);
      if (names[i].use == DcpUse::kLeftOut)
        left_out.push_back(tensors[i].key.text);
      else
        take_tensor(tensors[i], names[i]);
    }
    if (!left_out.empty())
      result_.optimizer.lost.push_back(
          fmt::format("{}, such as {} (parameters must have names, as get_optimizer_state_dict() "
                      "gives them)",
                      counted(left_out.size(), "tensor"), left_out[0]));
  }

  void take_tensor(const DcpTensor& stored, const DcpName& name) {
    NamedTensor tensor = open_dcp_tensor(directory_, stored, name);
    if (name.use == DcpUse::kStep)
      return steps_.add(name.name, is_dcp_optimizer_state(stored.key.path), dcp_number(tensor),
                        result_);
    if (!taken_.emplace(name.role, name.name).second)
      fail(ErrorKind::kCorrupt, "read {}: '{}' is a second {} of '{}'", path_, stored.key.text,
           to_string(name.role), name.name);
    result_.tensors.push_back(std::move(tensor));
  }

  void take_objects() {
    std::vector<std::string_view> left_out;
    for (const DcpObject& object : directory_.metadata().objects)
      if (!take_object(object)) left_out.push_back(object.key.text);
    groups_.finish(weights_, result_);
    if (!left_out.empty())
      log_info("{}: left out, since they are neither tensors, numbers nor text: {}", path_,
               joined(left_out, ", "));
  }

  // A value that is no tensor. Returns whether it is understood.
  bool take_object(const DcpObject& object) {
    const auto setting = dcp_setting(object.key.text);
    if (object.place.bytes > (setting ? kMaxDcpSettingBytes : kMaxDcpObjectBytes)) return false;
    const TorchArchive archive = directory_.open(object.place);
    const PickleValue value = archive.root();
    if (setting) groups_.add(*setting, value);
    if (is_dcp_step(object.key.path) && value.is(PickleKind::kInteger)) {
      steps_.add("", is_dcp_optimizer_state(object.key.path), double(value.integer()), result_);
      return true;
    }
    if (object.key.text == "gxp" && value.is(PickleKind::kDict)) {
      take_pt_metadata(value, fmt::format("read {}: 'gxp'", directory_.path_of(object.place)),
                       result_);
      return true;
    }
    const auto text = scalar_text(value);
    if (text) result_.metadata.emplace(object.key.text, *text);
    return text || value.is_none() || setting;
  }

  const std::string& path_;
  const DcpDirectory directory_;
  NamedTensors result_;
  std::set<std::pair<Role, std::string>> taken_;
  std::map<std::string, std::string> weights_;  // by what the optimizer calls them
  DcpSteps steps_;
  DcpGroups groups_;
};

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

NamedTensors read_dcp(const std::string& path) { return DcpReader(path).read(); }

uint64_t verify_dcp(const std::string& path) {
  const DcpDirectory directory(path);
  bool recorded = true;
  for (const DcpStorageInfo& place : directory.places())
    recorded = directory.open(place).verify() && recorded;
  return recorded ? directory.file_count() : 0;
}

}  // namespace gxp
