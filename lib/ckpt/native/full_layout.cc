#include "lib/ckpt/native/full_layout.h"

#include <algorithm>
#include <unordered_map>

#include "lib/ckpt/native/step_directory.h"

namespace gxp {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{4} << 20;

// The ranks' files, which have the hashes that the ranks gave them.
std::vector<InputFile> open_parts(const std::string& partial, std::span<const FilePart> parts) {
  std::vector<InputFile> files;
  for (const FilePart& part : parts) {
    const InputFile& file = files.emplace_back(partial + "/" + part.file.name);
    const std::string found = hash_of(file);
    if (found != part.file.hash)
      fail(ErrorKind::kCorrupt,
           "join {}: changed since its rank wrote it: xxh3-128 expected {}, found {}", file.path(),
           part.file.hash, found);
  }
  return files;
}

std::vector<LogicalTensor> in_order(std::vector<LogicalTensor> tensors,
                                    const std::vector<std::string>& names) {
  std::unordered_map<std::string_view, size_t> places;
  for (const std::string& name : names) places.emplace(name, places.size());
  std::ranges::sort(tensors, {}, [&](const LogicalTensor& tensor) {
    return std::pair(tensor.info.role, places.at(tensor.info.name));
  });
  return tensors;
}

}  // namespace

std::optional<FilePart> join_parts(const std::string& dir, const WriterRank& writer,
                                   std::span<const FilePart> parts,
                                   const std::vector<std::string>& names,
                                   const std::stop_token& stop) {
  if (parts.size() == 1) return parts.front();
  const std::vector<InputFile> files = open_parts(partial_path(dir, writer.step), parts);
  CheckpointWriter whole(dir, {writer.step, 0, 1, writer.frozen});
  std::vector<std::byte> block;
  for (const LogicalTensor& tensor : in_order(merge_parts(parts), names)) {
    const uint64_t element = size_of(tensor.info.dtype);
    for (const Piece& piece : tensor.pieces) {
      for (uint64_t done = 0; done < piece.count; done += block.size() / element) {
        if (stop.stop_requested()) return std::nullopt;
        block.resize(std::min(kBlockBytes, (piece.count - done) * element));
        files[piece.file].read(piece.file_offset + done * element, memory_of(block));
        whole.add(tensor.info, piece.begin + done, memory_of(block));
      }
    }
  }
  return whole.finish();
}

}  // namespace gxp
