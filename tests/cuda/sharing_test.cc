// Memory of a GPU that others map by its descriptor.
#include "lib/device/device_sharing.h"

#include <vector>

#include "lib/device/cuda_device.h"
#include "tests/catch.h"

namespace gxp {
namespace {

constexpr size_t kBytes = 10000;

std::vector<std::byte> read(Device& device, ConstMemory memory) {
  std::vector<std::byte> host(memory.bytes);
  device.copy(memory_of(host), memory);
  return host;
}

}  // namespace

TEST_CASE("who maps a GPU's shared memory reads and writes the owner's") {
  const auto owner = make_cuda_device(0);
  const auto peer = make_cuda_device(0);
  const Buffer buffer = owner->allocate_shareable(kBytes, MemoryKind::kGradients);
  CHECK(owner->tracker().live()[MemoryKind::kGradients] == kBytes);
  CHECK(read(*owner, buffer.memory()) == std::vector<std::byte>(kBytes));
  const AllocationOffset place = owner->sharing()->find(buffer.memory().slice(100, 50));
  REQUIRE(place.allocation > 0);
  CHECK(place.offset == 100);
  const PeerMemory mapped(*peer->sharing(), owner->sharing()->share(place.allocation));
  const std::vector<std::byte> ones(kBytes, std::byte{1});
  const std::vector<std::byte> twos(kBytes, std::byte{2});
  owner->copy(buffer.memory(), memory_of(ones));
  CHECK(read(*peer, mapped.memory().slice(0, kBytes)) == ones);
  peer->copy(mapped.memory().slice(0, kBytes), memory_of(twos));
  CHECK(read(*owner, buffer.memory()) == twos);
}

TEST_CASE("shared memory that its owner frees stays until its last peer has unmapped it") {
  const auto owner = make_cuda_device(0);
  const auto peer = make_cuda_device(0);
  PeerMemory mapped;
  uint64_t freed = 0;
  {
    const Buffer buffer = owner->allocate_shareable(kBytes, MemoryKind::kGradients);
    owner->copy(buffer.memory(), memory_of(std::vector<std::byte>(kBytes, std::byte{3})));
    freed = owner->sharing()->find(buffer.memory()).allocation;
    mapped = PeerMemory(*peer->sharing(), owner->sharing()->share(freed));
    CHECK(owner->sharing()->is_live(freed));
  }
  CHECK(!owner->sharing()->is_live(freed));
  CHECK(read(*peer, mapped.memory()).front() == std::byte{3});
  const Buffer next = owner->allocate_shareable(kBytes, MemoryKind::kGradients);
  CHECK(owner->sharing()->find(next.memory()).allocation > freed);
}

TEST_CASE("memory that is not wholly in one shared allocation has no place in it") {
  const auto device = make_cuda_device(0);
  const Buffer shared = device->allocate_shareable(kBytes, MemoryKind::kGradients);
  const Buffer ordinary = device->allocate(kBytes, MemoryKind::kGradients);
  std::byte on_host{};
  const DeviceSharing& sharing = *device->sharing();
  CHECK(sharing.find(ordinary.memory()).allocation == 0);
  CHECK(sharing.find({&on_host, 1}).allocation == 0);
  CHECK(sharing.find({nullptr, 0}).allocation == 0);
  CHECK(sharing.find({shared.memory().data, size_t{1} << 40}).allocation == 0);
  CHECK(make_cpu_device()->sharing() == nullptr);
}

TEST_CASE("a GPU reaches itself") {
  const auto device = make_cuda_device(0);
  CHECK(device->sharing()->reaches(device->sharing()->identity()));
}

}  // namespace gxp
