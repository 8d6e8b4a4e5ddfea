#include "lib/zero/offload/offloaded_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"

namespace gxp {

OffloadedMemory::OffloadedMemory(const StepProgram& program, const ProgramMemory& memory,
                                 const FileStoreOptions& file, Device& device, Stream& stream)
    : program_(program), memory_(memory), device_(device), stream_(stream) {
  const auto& bytes = program.offloaded_bytes;
  if (const uint64_t host = bytes[size_t(Storage::kHost)]; host > 0)
    stores_[size_t(Storage::kHost)] = make_memory_store(device, stream, host);
  const uint64_t in_file = bytes[size_t(Storage::kFile)];
  if (in_file == 0) return;
  auto& in_files = stores_[size_t(Storage::kFile)];
  in_files = make_file_store(file, in_file);
  if (device.space() != MemorySpace::kHost)
    in_files = make_staged_store(std::move(in_files), device, stream);
}

// Copies the part on the device, then the offloaded rest.
void OffloadedMemory::copy(BufferId buffer, const Range& elements, Memory host, bool writes) {
  const BufferSpec& spec = program_.buffers[size_t(buffer)];
  const size_t begin = elements.begin * size_of(spec.dtype);
  const size_t end = elements.end() * size_of(spec.dtype);
  const size_t border = std::clamp(spec.bytes, begin, end);
  if (begin < border) {
    const Memory held = memory_.of(buffer).slice(begin, border - begin);
    const Memory part = host.slice(0, held.bytes);
    device_.copy(writes ? held : part, writes ? part : held);
  }
  if (border == end) return;
  GXP_ASSERT(spec.rest != kNoBuffer);
  const BufferSpec& rest = program_.buffers[size_t(spec.rest)];
  const Transfer piece{rest.offset + border - spec.bytes, host.slice(border - begin, end - border)};
  store(rest.storage).copy({&piece, 1}, writes);
  stream_.finish(Deadline::after(kComputeTimeout));
}

std::function<void()> OffloadedMemory::bind(const Op& op, const StepProgram& program,
                                            const ProgramMemory& memory) {
  std::array<std::vector<Transfer>, kStorageCount> pieces;
  for (const Move& move : op.moves) {
    const BufferSpec& offloaded = program.buffers[size_t(move.offloaded)];
    pieces[size_t(offloaded.storage)].push_back(
        {offloaded.offset + move.from, memory.of(move.buffer).slice(0, move.bytes)});
  }
  return [this, pieces = std::move(pieces), stores = op.kind == OpKind::kStore] {
    for (const Storage storage : {Storage::kHost, Storage::kFile}) {
      const std::vector<Transfer>& own = pieces[size_t(storage)];
      if (!own.empty()) store(storage).copy(own, stores);
    }
  };
}

bool OffloadedMemory::is_empty() const {
  return std::ranges::all_of(stores_, [](const auto& store) { return store == nullptr; });
}

uint64_t OffloadedMemory::bytes(Storage storage) const {
  const auto& store = stores_[size_t(storage)];
  return store == nullptr ? 0 : store->bytes();
}

std::string OffloadedMemory::description() const {
  std::string text;
  for (const auto& store : stores_) {
    if (store == nullptr) continue;
    text += fmt::format("{}{} in {}", text.empty() ? "" : "; ", format_bytes(store->bytes()),
                        store->description());
  }
  return text;
}

}  // namespace gxp
