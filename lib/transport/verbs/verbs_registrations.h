// Memory that the RDMA devices may read and write: registered when an operation needs it.
//
// A registration pins pages, not addresses: memory that was freed and comes back at the same
// address has other pages, and a registration that was kept would move the old ones' bytes. A
// library is not notified of that. So ordinary memory is registered for as long as an operation
// uses it, and only what its owner has announced with keep() stays registered between operations:
// the communicator's memory (Transport::keep()). Data may be written in any order (PCIe's relaxed
// ordering): they are read only after a completion shows that all have arrived, and completions are
// written in strict order, after all earlier data. Slots are strict: they are so short that order
// costs nothing.
//   Cost     about 16 us and 60 us per MiB for each registration; a look-up otherwise.
//   Threads  one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "lib/device/device.h"
#include "lib/transport/verbs/verbs_device.h"

namespace gxp {

// A rank's GPU and how its NICs reach its memory.
struct VerbsGpu {
  Device* device = nullptr;  // null: they do not
  VerbsGpuDirect reached{};
};

enum class VerbsOrder : uint8_t { kRelaxed, kStrict };

class VerbsRegistrations {
 public:
  // `most_kept`: registrations that stay while no operation uses them; the one that was used
  // longest ago goes first.
  explicit VerbsRegistrations(std::vector<VerbsDevice*> devices, size_t most_kept = 1024,
                              const VerbsGpu& gpu = {})
      : devices_(std::move(devices)), most_kept_(most_kept), gpu_(gpu) {}
  ~VerbsRegistrations();
  VerbsRegistrations(const VerbsRegistrations&) = delete;
  VerbsRegistrations& operator=(const VerbsRegistrations&) = delete;

 private:
  struct Entry {
    uintptr_t end = 0;
    std::vector<VerbsHandle<ibv_mr>> regions{};  // by device
    int uses = 0;
    bool kept = false;
    VerbsOrder order = VerbsOrder::kRelaxed;
    MemorySpace space = MemorySpace::kHost;
    uint64_t last_use = 0;
  };
  using Entries = std::multimap<uintptr_t, Entry>;  // by first address

 public:
  // Memory in use: registered as long as this lives.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), entry_(other.entry_) {}
    Use& operator=(Use&& other) noexcept;
    ~Use() { reset(); }
    void reset();
    [[nodiscard]] bool valid() const { return owner_ != nullptr; }
    [[nodiscard]] uint32_t local_key(size_t device) const;
    [[nodiscard]] uint32_t remote_key(size_t device) const;

   private:
    friend class VerbsRegistrations;
    Use(VerbsRegistrations& owner, Entries::iterator entry) : owner_(&owner), entry_(entry) {}
    VerbsRegistrations* owner_ = nullptr;
    Entries::iterator entry_{};
  };

  // GPU memory: it is exported to the devices, or they know its pages (gpu_direct.h). Addresses are
  // CUDA's, which no host memory has.
  // Errors: kDevice, with the limit of locked memory; what no operation uses is given up before.
  [[nodiscard]] Use use(ConstMemory memory, VerbsOrder order = VerbsOrder::kRelaxed);
  // From now until forget() this memory stays where it is.
  void keep(ConstMemory memory);
  void forget(ConstMemory memory) noexcept;
  // Registrations there are now.
  [[nodiscard]] size_t count() const { return entries_.size(); }

 private:
  Entries::iterator find(uintptr_t begin, uintptr_t end, VerbsOrder order);
  Entries::iterator add(uintptr_t begin, Entry entry);
  bool register_all(Entry& entry, uintptr_t begin);
  ibv_mr* register_with(const VerbsDevice& device, uintptr_t begin, const Entry& entry,
                        const DmaBuf& exported) const;
  bool drop_oldest();
  void release(Entries::iterator entry) noexcept;

  std::vector<VerbsDevice*> devices_;
  size_t most_kept_;
  VerbsGpu gpu_;
  Entries entries_;
  std::map<uintptr_t, uintptr_t> kept_;  // announced: first address and end
  uint64_t clock_ = 0;
};

}  // namespace gxp
