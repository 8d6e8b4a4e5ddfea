#include "lib/transport/shm/shm_ring.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "lib/base/error.h"
#include "lib/transport/arena/shm_segment.h"
#include "tests/catch.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

constexpr size_t kSlotBytes = 128;

struct Ring {
  ShmSegment memory = ShmSegment::create(ShmRing::footprint(kSlotBytes));
  ShmRing writer{memory.memory().data, kSlotBytes};
  ShmRing reader{memory.memory().data, kSlotBytes};
  size_t write(ConstMemory data) { return writer.write_some(data, {data.data, 0}); }
  size_t read(Memory target) {
    const ConstMemory front = reader.front();
    const size_t count = std::min(front.bytes, target.bytes);
    if (count == 0) return 0;
    std::memcpy(target.data, front.data, count);
    reader.release(count);
    return count;
  }
};

std::vector<std::byte> counting(size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = std::byte(i * 7);
  return data;
}

}  // namespace

TEST_CASE("a ring is full after its slots and empty after they are read", "[shm_ring]") {
  Ring ring;
  const auto data = counting(1);
  std::vector<std::byte> got(1);
  for (int lap = 0; lap < 3; ++lap) {
    for (uint32_t i = 0; i < ShmRing::kSlots; ++i) CHECK(ring.write(memory_of(data)) == 1);
    CHECK(ring.write(memory_of(data)) == 0);
    for (uint32_t i = 0; i < ShmRing::kSlots; ++i) CHECK(ring.read(memory_of(got)) == 1);
    CHECK(ring.read(memory_of(got)) == 0);
  }
}

TEST_CASE("a ring keeps the bytes for every size around its limits", "[shm_ring]") {
  const size_t bytes = GENERATE(1, 55, 56, 57, 64, 127, 128);
  Ring ring;
  const auto data = counting(bytes);
  std::vector<std::byte> got(bytes);
  CHECK(ring.write(memory_of(data)) == bytes);
  CHECK(ring.read(memory_of(got)) == bytes);
  CHECK(got == data);
}

TEST_CASE("a ring carries a stream between two threads unchanged", "[shm_ring]") {
  Ring ring;
  const auto data = counting(200000);
  std::vector<std::byte> got(data.size());
  const std::jthread producer([&] {
    for (size_t done = 0; done < data.size();) {
      const size_t piece = std::min(data.size() - done, done % 300 + 1);
      const size_t taken = ring.write({data.data() + done, piece});
      if (taken == 0) std::this_thread::yield();
      done += taken;
    }
  });
  for (size_t done = 0; done < got.size();) {
    const size_t taken = ring.read({got.data() + done, std::min<size_t>(got.size() - done, 77)});
    if (taken == 0) std::this_thread::yield();
    done += taken;
  }
  CHECK(got == data);
}

TEST_CASE("a slot that claims more bytes than it has is an error", "[shm_ring]") {
  Ring ring;
  const auto data = counting(8);
  ring.write(memory_of(data));
  const uint32_t claim = kSlotBytes + 1;  // the count lies behind the first slot's turn
  std::memcpy(ring.memory.memory().data + 2 * ShmRing::kLineBytes + 4, &claim, sizeof claim);
  std::vector<std::byte> got(8);
  CHECK_THROWS_AS(ring.read(memory_of(got)), Error);
}

TEST_CASE("a segment of another size or without seals is refused", "[shm_segment]") {
  const ShmSegment segment = ShmSegment::create(8192);
  CHECK_NOTHROW(ShmSegment::map(Fd(dup(segment.fd())), 8192));
  CHECK_THROWS_AS(ShmSegment::map(Fd(dup(segment.fd())), 4096), Error);
  CHECK_THROWS_AS(ShmSegment::map(Fd(dup(STDERR_FILENO)), 8192), Error);
}

TEST_CASE("a doorbell rung after prepare ends the sleep", "[shm_segment]") {
  const ShmSegment segment = ShmSegment::create(4096);
  auto& bell = *reinterpret_cast<ShmDoorbell*>(segment.memory().data);
  const uint32_t prepared = bell.prepare(ShmDoorbell::kOnFutex);
  bell.ring(-1);
  CHECK(bell.sleep(prepared, Deadline::after(10s)));
  CHECK_FALSE(bell.sleep(bell.prepare(ShmDoorbell::kOnFutex), Deadline::after(1ms)));
}
