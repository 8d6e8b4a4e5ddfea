#include "lib/ckpt/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "lib/ckpt/checkpoint.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

std::string partial_directory(const std::string& dir, uint64_t step) {
  return fmt::format("{}/.{}.partial", dir, step_name(step));
}

void remove_quietly(const std::string& path) noexcept {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// The parts' tensors in the order of first appearance, their pieces in order.
std::vector<LogicalTensor> merge(std::span<const FilePart> parts) {
  std::vector<LogicalTensor> merged;
  std::map<std::pair<std::string, Role>, size_t> index;
  for (size_t file = 0; file < parts.size(); ++file) {
    for (const LogicalTensor& tensor : parts[file].tensors) {
      const auto key = std::pair(tensor.info.name, tensor.info.role);
      const auto [place, is_new] = index.emplace(key, merged.size());
      if (is_new) merged.push_back({tensor.info, {}});
      LogicalTensor& whole = merged[place->second];
      if (whole.info != tensor.info)
        fail(ErrorKind::kInternal, "publish checkpoint: ranks disagree about the shape of '{}'",
             tensor.info.name);
      for (Piece piece : tensor.pieces) {
        piece.file = uint32_t(file);
        whole.pieces.push_back(piece);
      }
    }
  }
  for (LogicalTensor& tensor : merged)
    std::sort(tensor.pieces.begin(), tensor.pieces.end(),
              [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  return merged;
}

// Files that an earlier attempt, perhaps of more ranks, has left.
void remove_others(const std::string& directory, const std::vector<DataFile>& files) {
  std::set<std::string> wanted;
  for (const DataFile& file : files) wanted.insert(file.name);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (!wanted.contains(entry.path().filename())) remove_quietly(entry.path());
  }
}

// Removes what is not to stay. A checkpoint loses its name first, so that none is ever seen half.
void prune(const std::string& dir, uint64_t published, int keep) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(".step-") && name.ends_with(".partial")) remove_quietly(entry.path());
  }
  if (keep == 0) return;
  auto steps = complete_steps(dir);
  std::erase(steps, published);
  const size_t others = std::min(steps.size(), size_t(keep) - 1);
  steps.resize(steps.size() - others);
  for (const uint64_t step : steps) {
    const std::string doomed = partial_directory(dir, step);
    fs::rename(fmt::format("{}/{}", dir, step_name(step)), doomed, error);
    if (!error) remove_quietly(doomed);
  }
}

}  // namespace

// Removes the partial directory if `act` throws.
template <class Act>
auto CheckpointWriter::or_abandon(Act act) {
  try {
    return act();
  } catch (...) {
    file_.reset();
    remove_quietly(partial_);
    throw;
  }
}

CheckpointWriter::CheckpointWriter(const std::string& dir, const WriterRank& rank)
    : partial_(partial_directory(dir, rank.step)) {
  part_.file.name = fmt::format("shard-{:05}-of-{:05}.bin", rank.rank, rank.world_size);
  create_directory(partial_);
  or_abandon([&] { file_ = std::make_unique<OutputFile>(partial_ + "/" + part_.file.name); });
}

CheckpointWriter::~CheckpointWriter() {
  if (file_ == nullptr) return;  // finished or abandoned
  file_.reset();
  std::error_code ignored;
  fs::remove(partial_, ignored);  // if no other rank has a file in it
}

void CheckpointWriter::add(const TensorInfo& info, uint64_t begin, ConstMemory data) {
  GXP_ASSERT(file_ != nullptr && data.bytes % size_of(info.dtype) == 0);
  LogicalTensor& tensor = tensor_of(info);
  const uint64_t count = data.bytes / size_of(info.dtype);
  GXP_ASSERT(begin <= info.count() && count <= info.count() - begin);
  if (count == 0) return;
  const uint64_t offset = file_->bytes();
  or_abandon([&] { file_->write(data); });
  auto& pieces = tensor.pieces;
  if (!pieces.empty() && pieces.back().begin + pieces.back().count == begin) {
    pieces.back().count += count;
  } else {
    pieces.push_back({0, offset, begin, count});
  }
}

// The last tensor, if it is this one: its next elements follow in the file.
LogicalTensor& CheckpointWriter::tensor_of(const TensorInfo& info) {
  auto& tensors = part_.tensors;
  if (!tensors.empty() && tensors.back().info == info) return tensors.back();
  return tensors.emplace_back(LogicalTensor{info, {}});
}

FilePart CheckpointWriter::finish() {
  GXP_ASSERT(file_ != nullptr);
  part_.file.bytes = file_->bytes();
  part_.file.hash = or_abandon([&] { return file_->close(); });
  file_.reset();
  return std::move(part_);
}

std::string publish_checkpoint(const std::string& dir, std::span<const FilePart> parts,
                               const CheckpointInfo& info, int keep) {
  const std::string partial = partial_directory(dir, info.step);
  std::string path = fmt::format("{}/{}", dir, step_name(info.step));
  Manifest manifest{info, GXP_VERSION, {}, merge(parts)};
  for (const FilePart& part : parts) manifest.files.push_back(part.file);
  try {
    check_manifest(manifest, ErrorKind::kInternal, "publish checkpoint " + path);
    remove_others(partial, manifest.files);
    write_text(partial + "/" + kManifestName, to_json(manifest));
    sync_directory(partial);
    replace_path(partial, path);
  } catch (...) {
    remove_quietly(partial);
    throw;
  }
  prune(dir, info.step, keep);
  return path;
}

}  // namespace gxp
