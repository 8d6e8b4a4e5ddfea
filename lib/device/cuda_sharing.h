// Memory of a GPU that peers map (device_sharing.h), by the driver's virtual memory management.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/device/cuda_driver.h"
#include "lib/device/cuda_mapping.h"
#include "lib/device/device_sharing.h"

namespace gxp {

class CudaSharing final : public DeviceSharing {
 public:
  // For GPU `index`. Only asks the driver.
  explicit CudaSharing(int index);

  [[nodiscard]] Support support() const override;
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] std::vector<std::string> visible() const override;
  [[nodiscard]] Support reaches(std::string_view identity) const override;
  [[nodiscard]] AllocationOffset find(ConstMemory memory) const override;
  [[nodiscard]] bool is_live(uint64_t allocation) const override;
  [[nodiscard]] SharedAllocation share(uint64_t allocation) const override;

  // Not zeroed. Nothing if the driver cannot make memory that is shared; support() then has the
  // reason. Without data if there is not enough memory.
  [[nodiscard]] std::optional<Memory> allocate(size_t bytes);
  // False if the memory is not from here. Nothing on the GPU uses it.
  bool free(std::byte* data) noexcept;

 protected:
  [[nodiscard]] Memory map(const SharedAllocation& theirs) override;
  void unmap(Memory memory) noexcept override;

 private:
  struct Allocation {
    Allocation(CUmemGenericAllocationHandle created, size_t bytes_in, int index)
        : handle(created), bytes(bytes_in), mapping(handle, bytes_in, index) {}
    CudaHandle handle;
    size_t bytes;
    CudaMapping mapping;
    uint64_t number = 0;
  };
  using Allocations = std::map<const std::byte*, std::unique_ptr<Allocation>>;

  [[nodiscard]] const Allocation* find_number(uint64_t allocation) const;
  [[nodiscard]] const Allocation& live(uint64_t allocation) const;

  const int index_;
  std::string identity_;
  CUmemAllocationProp properties_{};
  size_t page_bytes_ = 1;
  mutable std::mutex mutex_;                  // guards all below
  mutable std::vector<std::string> visible_;  // from the first call on: to ask takes a millisecond
  Support support_;
  Allocations own_;     // by address
  Allocations theirs_;  // likewise
  uint64_t allocated_ = 0;
};

}  // namespace gxp
