#include "lib/ckpt/native/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "lib/ckpt/native/writer.h"
#include "lib/ckpt/read_ahead.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;
constexpr size_t kBufferBytes = size_t{4} << 20;

std::string find_step_directory(const std::string& path) {
  if (has_manifest(path)) return path;
  if (!path_exists(path)) fail(ErrorKind::kIo, "open checkpoint {}: no such directory", path);
  const auto steps = complete_steps(path);
  if (steps.empty())
    fail(ErrorKind::kIo, "open checkpoint {}: it holds no complete checkpoint", path);
  return step_path(path, steps.back());
}

std::string hash_file(const InputFile& file) {
  Hasher hasher;
  std::vector<std::byte> buffer(std::min<uint64_t>(file.bytes(), kBufferBytes));
  for (uint64_t done = 0; done < file.bytes(); done += buffer.size()) {
    buffer.resize(std::min<uint64_t>(file.bytes() - done, kBufferBytes));
    file.read(done, memory_of(buffer));
    hasher.update(buffer);
  }
  return hasher.hex();
}

// The state's pairs whose keys begin so are a foreign file's metadata.
constexpr std::string_view kMetadataPrefix = "metadata.";

void split_metadata(NamedTensors& tensors) {
  for (const auto& [key, value] : tensors.state) {
    if (key.starts_with(kMetadataPrefix))
      tensors.metadata.emplace(key.substr(kMetadataPrefix.size()), value);
  }
  std::erase_if(tensors.state,
                [](const auto& pair) { return pair.first.starts_with(kMetadataPrefix); });
}

KeyValues state_with_metadata(const NamedTensors& tensors) {
  KeyValues state = tensors.state;
  for (const auto& [key, value] : tensors.metadata)
    state.emplace_back(fmt::format("{}{}", kMetadataPrefix, key), value);
  return state;
}

}  // namespace

Checkpoint Checkpoint::open(const std::string& path) {
  return Checkpoint(find_step_directory(path));
}

Checkpoint::Checkpoint(std::string path) : path_(std::move(path)) {
  const std::string name = path_ + "/" + kManifestName;
  manifest_ = parse_manifest(read_text(name, kMaxManifestBytes), name);
  for (size_t i = 0; i < manifest_.files.size(); ++i) (void)open_file(i);
}

InputFile Checkpoint::open_file(size_t file) const {
  const DataFile& listed = manifest_.files[file];
  InputFile opened(path_ + "/" + listed.name);
  if (opened.bytes() != listed.bytes)
    fail(ErrorKind::kCorrupt, "open {}: {} bytes expected, found {}", opened.path(), listed.bytes,
         opened.bytes());
  return opened;
}

const LogicalTensor* Checkpoint::find(const std::string& name, Role role) const {
  for (const LogicalTensor& tensor : manifest_.tensors) {
    if (tensor.info.name == name && tensor.info.role == role) return &tensor;
  }
  return nullptr;
}

void Checkpoint::read(const std::string& name, Role role, uint64_t begin, Memory out) const {
  const LogicalTensor* tensor = find(name, role);
  if (tensor == nullptr)
    fail(ErrorKind::kCorrupt, "read checkpoint {}: it holds no {} of '{}'", path_, to_string(role),
         name);
  read(*tensor, begin, out);
}

void Checkpoint::read(const LogicalTensor& tensor, uint64_t begin, Memory out) const {
  const uint64_t element = size_of(tensor.info.dtype);
  const uint64_t end = begin + out.bytes / element;
  if (out.bytes % element != 0 || end < begin || end > tensor.info.count())
    fail(ErrorKind::kCorrupt, "read checkpoint {}: '{}' has {} elements, {} to {} are wanted",
         path_, tensor.info.name, tensor.info.count(), begin, end);
  const auto ends_before = [](uint64_t wanted, const Piece& piece) {
    return wanted < piece.begin + piece.count;
  };
  auto piece = std::upper_bound(tensor.pieces.begin(), tensor.pieces.end(), begin, ends_before);
  for (; begin < end; ++piece) {
    const uint64_t skipped = begin - piece->begin;
    const uint64_t count = std::min(end - begin, piece->count - skipped);
    open_file(piece->file)
        .read(piece->file_offset + skipped * element,
              out.slice(out.bytes - (end - begin) * element, count * element));
    begin += count;
  }
}

void Checkpoint::verify(int part, int parts) const {
  GXP_ASSERT(part >= 0 && part < parts);
  for (auto i = size_t(part); i < manifest_.files.size(); i += size_t(parts)) {
    const InputFile file = open_file(i);
    const std::string found = hash_file(file);
    const std::string& expected = manifest_.files[i].hash;
    if (found != expected)
      fail(ErrorKind::kCorrupt, "verify {}: changed: xxh3-128 expected {}, found {}", file.path(),
           expected, found);
  }
}

bool is_gxp_checkpoint(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return false;
  return has_manifest(path) || !complete_steps(path).empty();
}

NamedTensors read_gxp_checkpoint(const std::string& path) {
  // Owners: the readers of its tensors.
  const auto checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(path));
  const CheckpointInfo& info = checkpoint->manifest().info;
  NamedTensors result{.format = "gxp", .config = info.config, .state = info.state};
  split_metadata(result);
  result.step = info.step;
  result.samples_consumed = info.samples_consumed;
  result.world_size = info.world_size;
  result.strategy = info.strategy;
  for (const LogicalTensor& tensor : checkpoint->manifest().tensors) {
    result.tensors.push_back({tensor.info, [checkpoint, &tensor](uint64_t begin, Memory out) {
                                checkpoint->read(tensor, begin, out);
                              }});
  }
  return result;
}

void write_gxp_checkpoint(const NamedTensors& tensors, const std::string& path) {
  const CheckpointInfo info{.step = tensors.step.value_or(0),
                            .samples_consumed = tensors.samples_consumed.value_or(0),
                            .world_size = tensors.world_size.value_or(1),
                            .strategy = tensors.strategy,
                            .config = tensors.config,
                            .state = state_with_metadata(tensors)};
  CheckpointWriter writer(path, {.step = info.step, .rank = 0, .world_size = 1});
  std::vector<const NamedTensor*> all;
  for (const NamedTensor& tensor : tensors.tensors) all.push_back(&tensor);
  uint64_t begin = 0;  // of the next block, in its tensor
  const NamedTensor* last = nullptr;
  stream_ahead(all, [&](const NamedTensor& tensor, ConstMemory block) {
    if (&tensor != last) begin = 0;
    last = &tensor;
    writer.add(tensor.info, begin, block);
    begin += block.bytes / size_of(tensor.info.dtype);
  });
  const FilePart part = writer.finish();
  publish_checkpoint(path, std::span(&part, 1), info, {});
}

}  // namespace gxp
