// A GPU for transports: its memory's addresses lead nowhere on the host, and other drivers map it by
// a file, as those of a real one do.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/device/device.h"

namespace gxp {

class FakeGpu final : public Device {
 public:
  // `visible`: its addresses lead to its memory, as the pages that a peer memory module tells do.
  explicit FakeGpu(bool visible = false) : visible_(visible) {}
  std::string description() const override { return "fake GPU"; }
  std::unique_ptr<Stream> make_stream(std::string_view) override { return nullptr; }
  std::unique_ptr<Event> make_event() override { return nullptr; }
  MemorySpace space() const override { return MemorySpace::kCuda; }
  Support exports_memory() const override { return {}; }
  DmaBuf export_memory(ConstMemory memory) override {
    const auto& [base, block] = *std::prev(blocks_.upper_bound(memory.data));
    return {Fd(::dup(block.file.get())), uint64_t(memory.data - base)};
  }
  void copy(Memory to, ConstMemory from) override {
    if (to.bytes > 0) std::memcpy(on_host(to), on_host(from), to.bytes);
  }

 protected:
  Memory allocate_raw(size_t bytes) override {
    const size_t length = round_up(bytes + 1, kPage);
    Block block{.file = Fd(::memfd_create("fake GPU", MFD_CLOEXEC)), .length = length};
    if (::ftruncate(block.file.get(), off_t(length)) != 0) return {};
    block.view = map(length, block.file.get(), PROT_READ | PROT_WRITE);
    std::byte* const base = visible_ ? block.view : map(length, block.file.get(), PROT_NONE);
    blocks_.emplace(base, std::move(block));
    return {base, bytes, MemorySpace::kCuda};
  }
  void free_raw(Memory memory) noexcept override {
    const auto block = blocks_.find(memory.data);
    ::munmap(block->second.view, block->second.length);
    if (!visible_) ::munmap(memory.data, block->second.length);
    blocks_.erase(block);
  }

 private:
  struct Block {
    Fd file;
    std::byte* view = nullptr;
    size_t length = 0;
  };
  static constexpr size_t kPage = 4096;
  static std::byte* map(size_t length, int file, int access) {
    return static_cast<std::byte*>(::mmap(nullptr, length, access, MAP_SHARED, file, 0));
  }
  std::byte* on_host(ConstMemory memory) const {
    if (memory.space == MemorySpace::kHost) return const_cast<std::byte*>(memory.data);
    const auto& [base, block] = *std::prev(blocks_.upper_bound(memory.data));
    return block.view + (memory.data - base);
  }

  bool visible_;
  std::map<const std::byte*, Block> blocks_;  // by first address
};

}  // namespace gxp
