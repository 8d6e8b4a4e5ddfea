#include "lib/ckpt/native/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "lib/ckpt/finished_files.h"
#include "lib/ckpt/native/writer.h"
#include "lib/ckpt/read_ahead.h"
#include "lib/ckpt/shards.h"

namespace gxp {
namespace {

constexpr size_t kBufferBytes = size_t{4} << 20;

std::string find_step_directory(const std::string& path) {
  if (has_manifest(path)) return path;
  if (!path_exists(path)) fail(ErrorKind::kIo, "open checkpoint {}: no such directory", path);
  const auto steps = complete_steps(path);
  if (steps.empty())
    fail(ErrorKind::kIo, "open checkpoint {}: it holds no complete checkpoint", path);
  return step_path(path, steps.back());
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
  for (auto& pair : to_state(tensors.optimizer)) state.push_back(std::move(pair));
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
    fail(ErrorKind::kCorrupt, "read checkpoint {}: the {} of '{}' is missing", path_,
         to_string(role), name);
  read(*tensor, begin, out);
}

void Checkpoint::read(const LogicalTensor& tensor, uint64_t begin, Memory out) const {
  const uint64_t element = size_of(tensor.info.dtype);
  const uint64_t end = begin + out.bytes / element;
  if (out.bytes % element != 0 || end < begin || end > tensor.info.count())
    fail(ErrorKind::kCorrupt, "read checkpoint {}: '{}' has {} elements; {} to {} were requested",
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
  std::vector<std::byte> buffer;
  for (auto i = size_t(part); i < manifest_.files.size(); i += size_t(parts)) {
    DataFileReader file(*this, i);
    do {
      buffer.resize(std::min<uint64_t>(file.bytes_left(), kBufferBytes));
      file.read(memory_of(buffer));
    } while (file.bytes_left() > 0);
  }
}

DataFileReader::DataFileReader(const Checkpoint& checkpoint, size_t file)
    : checkpoint_(checkpoint), file_(file), input_(checkpoint.open_file(file)) {}

void DataFileReader::read(Memory out) {
  input_.read(done_, out);
  hasher_.update(std::span(out.data, out.bytes));
  done_ += out.bytes;
  if (bytes_left() > 0) return;
  const std::string found = hasher_.hex();
  const std::string& expected = checkpoint_.manifest().files[file_].hash;
  if (found != expected)
    fail(ErrorKind::kCorrupt, "verify {}: changed: xxh3-128 expected {}, found {}", input_.path(),
         expected, found);
}

bool is_gxp_checkpoint(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return false;
  return has_manifest(path) || !complete_steps(path).empty();
}

NamedTensors tensors_of(const Checkpoint& checkpoint) {
  const CheckpointInfo& info = checkpoint.manifest().info;
  NamedTensors result{.format = "gxp", .config = info.config, .state = info.state};
  split_metadata(result);
  take_record(result, "read " + checkpoint.path());
  if (info.step > 0) result.step = info.step;
  if (info.samples_consumed > 0) result.samples_consumed = info.samples_consumed;
  result.world_size = info.world_size;
  result.strategy = info.strategy;
  for (const LogicalTensor& tensor : checkpoint.manifest().tensors) {
    result.tensors.push_back({tensor.info, [&checkpoint, &tensor](uint64_t begin, Memory out) {
                                checkpoint.read(tensor, begin, out);
                              }});
  }
  return result;
}

NamedTensors read_gxp_checkpoint(const std::string& path) {
  // Owners: the readers of its tensors.
  const auto checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(path));
  NamedTensors result = tensors_of(*checkpoint);
  for (NamedTensor& tensor : result.tensors)
    tensor.read = [checkpoint, read = std::move(tensor.read)](uint64_t begin, Memory out) {
      read(begin, out);
    };
  return result;
}

namespace {

std::vector<TensorSelection> gxp_shards(const NamedTensors& tensors, const WriteOptions& options) {
  TensorSelection all;
  for (const NamedTensor& tensor : tensors.tensors) all.push_back(&tensor);
  return split_into_shards(all, options);
}

FilePart write_shard(const TensorSelection& tensors, const std::string& path,
                     const WriterRank& rank) {
  CheckpointWriter writer(path, rank);
  uint64_t begin = 0;  // of the next block, in its tensor
  const NamedTensor* last = nullptr;
  stream_ahead(tensors, [&](const NamedTensor& tensor, ConstMemory block) {
    if (&tensor != last) begin = 0;
    last = &tensor;
    writer.add(tensor.info, begin, block);
    begin += block.bytes / size_of(tensor.info.dtype);
  });
  return writer.finish();
}

// What write_shard() has returned for a file with these tensors one after the other.
FilePart part_of(const TensorSelection& tensors, const DataFile& file) {
  FilePart part{file, {}};
  uint64_t offset = 0;
  for (const NamedTensor* tensor : tensors) {
    const uint64_t count = tensor->info.count();
    part.tensors.push_back({tensor->info, {}});
    if (count > 0) part.tensors.back().pieces.push_back({0, offset, 0, count});
    offset += tensor->info.bytes();
  }
  return part;
}

}  // namespace

void write_gxp_checkpoint(const NamedTensors& tensors, const std::string& path,
                          const WriteOptions& options) {
  const CheckpointInfo info{.step = tensors.step.value_or(0),
                            .samples_consumed = tensors.samples_consumed.value_or(0),
                            .world_size = tensors.world_size.value_or(1),
                            .strategy = tensors.strategy,
                            .config = tensors.config,
                            .state = state_with_metadata(tensors)};
  FinishedFiles finished = FinishedFiles::enter(path, options);
  const auto shards = gxp_shards(tensors, options);
  std::vector<FilePart> parts;
  for (size_t i = 0; i < shards.size(); ++i) {
    const WriterRank rank{info.step, int(i), int(shards.size())};
    const std::string name = data_file_name(rank.rank, rank.world_size);
    const std::string place = partial_name(info.step) + "/" + name;
    if (const auto file = finished.find(place)) {
      parts.push_back(part_of(shards[i], {name, file->bytes, file->hash}));
      continue;
    }
    parts.push_back(write_shard(shards[i], path, rank));
    finished.add(place, {parts.back().file.bytes, parts.back().file.hash});
  }
  publish_checkpoint(path, parts, info, {});
}

std::vector<PlannedFile> plan_gxp_checkpoint(const NamedTensors& tensors,
                                             const WriteOptions& options) {
  const std::string step = step_name(tensors.step.value_or(0)) + "/";
  const auto shards = gxp_shards(tensors, options);
  std::vector<PlannedFile> files;
  for (size_t i = 0; i < shards.size(); ++i)
    files.push_back(
        {step + data_file_name(int(i), int(shards.size())), shards[i].size(), bytes_of(shards[i])});
  files.push_back({step + kManifestName});
  return files;
}

}  // namespace gxp
