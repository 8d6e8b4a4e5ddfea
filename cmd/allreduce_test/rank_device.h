// The device of --device, which holds the ranks' buffers.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "lib/net/identity/identity.h"
#include "lib/tools/colltest/bench_device.h"

namespace gxp {

enum class DeviceChoice { kCpu, kCuda };
inline constexpr std::array<std::string_view, 2> kDeviceChoiceNames = {"cpu", "cuda"};

struct RankDevice {
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceFolds> folds;  // null: its memory is the host's
  std::unique_ptr<Device> host;        // null: `device` is the host
  int number = 0;                      // of the GPU, among those that the rank sees

  [[nodiscard]] BenchDevice place() const { return {*device, folds.get(), number}; }
  // For the communicator.
  [[nodiscard]] Device& on_host() const { return host ? *host : *device; }
};

// Throws kUnavailable, with the reason, if there is no such device here.
void check_device(DeviceChoice choice);

// A rank's GPU by gpu_of_rank(), or the CPU. Throws as check_device().
RankDevice make_rank_device(DeviceChoice choice, const RankIdentity& identity);

}  // namespace gxp
