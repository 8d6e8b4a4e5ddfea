#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "lib/base/bytes.h"
#include "lib/device/cpu_stream.h"
#include "lib/device/device.h"

namespace gxp {
namespace {

constexpr size_t kAlignment = 64;       // a cache line, and an AVX-512 vector
constexpr size_t kPage = 4096;          // what files are read into directly
constexpr size_t kMapAbove = 1u << 20;  // smaller blocks come from the C library
constexpr size_t kHugePage = 2u << 20;  // x86-64 and arm64 with 4 KiB base pages

// Pages of exactly round_up(bytes, page), aligned to a huge page so that all of them can be huge.
std::byte* map_pages(size_t bytes) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t wanted = round_up(bytes, page);
  const size_t mapped = wanted + kHugePage;
  if (mapped < bytes) return nullptr;
  void* base = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  auto* start = static_cast<std::byte*>(base);
  const size_t before =
      round_up(reinterpret_cast<uintptr_t>(start), kHugePage) - reinterpret_cast<uintptr_t>(start);
  if (before > 0) ::munmap(start, before);
  ::munmap(start + before + wanted, kHugePage - before);
  // A hint: without huge pages everything works, with more TLB misses.
  ::madvise(start + before, wanted, MADV_HUGEPAGE);
  return start + before;
}

class CpuDevice final : public Device {
 public:
  [[nodiscard]] std::string description() const override {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return "cpu";
    const int cpus = CPU_COUNT(&set);
    return fmt::format("cpu, {} {}", cpus, cpus == 1 ? "core" : "cores");
  }

  [[nodiscard]] std::unique_ptr<Stream> make_stream(std::string_view name) override {
    return make_cpu_stream(name);
  }
  [[nodiscard]] std::unique_ptr<Event> make_event() override { return make_cpu_event(); }

 protected:
  Memory allocate_raw(size_t bytes) override {
    if (bytes > kMapAbove) return {map_pages(bytes), bytes, MemorySpace::kHost};
    const size_t alignment = bytes < kPage ? kAlignment : kPage;
    void* data = bytes == 0 ? nullptr : std::aligned_alloc(alignment, round_up(bytes, alignment));
    if (data != nullptr) std::memset(data, 0, bytes);
    return {static_cast<std::byte*>(data), bytes, MemorySpace::kHost};
  }

  void free_raw(Memory memory) noexcept override {
    if (memory.bytes > kMapAbove) {
      ::munmap(memory.data, memory.bytes);  // the OS rounds up to a page
    } else {
      std::free(memory.data);
    }
  }
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace gxp
