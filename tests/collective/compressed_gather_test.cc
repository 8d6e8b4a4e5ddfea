#include "lib/collective/compress/compressed_gather.h"

#include <cmath>
#include <cstring>

#include "kernels/quantize.h"
#include "tests/catch.h"
#include "tests/collective/error_of.h"
#include "tests/collective/run_on_hosts.h"

namespace gxp {
namespace {

// What rank `rank` has; the last block of 515 elements is shorter.
template <class T>
std::vector<T> weights_of_rank(int rank, size_t count) {
  std::vector<T> part;
  for (size_t i = 0; i < count; ++i)
    part.push_back(T(float(std::sin(double(i * 3 + 1) * (rank + 0.7)))));
  return part;
}

// The parts of all ranks, each encoded, decoded and rounded to T.
template <class T>
std::vector<T> decoded_parts(const Codec& codec, const HostsAndRanks& world, size_t count) {
  std::vector<T> all;
  for (int rank = 0; rank < world.size(); ++rank) {
    const std::vector<T> part = weights_of_rank<T>(rank, count);
    if (world.hosts == 1) {
      all.insert(all.end(), part.begin(), part.end());
      continue;
    }
    std::vector<float> values(part.begin(), part.end());
    std::vector<std::byte> encoded(codec.wire_bytes(count));
    encode(encoded.data(), values.data(), count, codec.format);
    decode(values.data(), encoded.data(), count, codec.format);
    for (const float value : values) all.push_back(T(value));
  }
  return all;
}

template <class T>
struct Gathered {
  std::vector<T> whole, part;
  uint64_t sent_bytes = 0;
};

template <class T>
std::vector<Gathered<T>> gather_on(const Codec& codec, const HostsAndRanks& world, size_t count,
                                   DType dtype) {
  return run_on(world, [&](HostGroups& groups, Device& device) {
    Gathered<T> rank{std::vector<T>(count * size_t(world.size())),
                     weights_of_rank<T>(groups.all->rank(), count)};
    CompressedGather gather(codec, rank.whole.size(), dtype, groups);
    const Buffer slots = device.allocate(gather.slots_bytes(), MemoryKind::kCommunication);
    const uint64_t before = groups.all->counters().bytes_sent;
    gather.run(memory_of(rank.whole), memory_of(rank.part), slots.memory());
    rank.sent_bytes = groups.all->counters().bytes_sent - before;
    return rank;
  });
}

template <class T>
bool have_same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TEST_CASE("a gather in a codec gives every rank all decoded parts and keeps its own",
          "[collective]") {
  const HostsAndRanks world = GENERATE(from_range(kHostsAndRanks));
  const size_t count = GENERATE(0, 1, 128, 515, 5000);
  const DType dtype = GENERATE(DType::kF32, DType::kF16, DType::kBF16);
  CAPTURE(world.hosts, world.ranks_of_host, count, dtype);
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    const auto check = [&](auto element) {
      using T = decltype(element);
      const std::vector<T> expected = decoded_parts<T>(codec, world, count);
      int number = 0;
      for (const Gathered<T>& rank : gather_on<T>(codec, world, count, dtype)) {
        CHECK(have_same_bits(rank.whole, expected));
        CHECK(have_same_bits(rank.part, weights_of_rank<T>(number++, count)));
      }
    };
    if (dtype == DType::kF32) check(float{});
    if (dtype == DType::kF16) check(Float16{});
    if (dtype == DType::kBF16) check(BFloat16{});
  }
}

TEST_CASE("a gather in int8 sends a quarter of f32's bytes, and 2 bytes for a block",
          "[collective]") {
  const auto ranks = gather_on<float>(*find_codec("int8"), {2, 1}, 1 << 16, DType::kF32);
  for (const auto& rank : ranks) CHECK(rank.sent_bytes == (1 << 16) / 128 * 130);
}

TEST_CASE("a gather that cannot be compressed is refused", "[collective]") {
  const auto [dtype, hosts, problem] = GENERATE(table<DType, std::vector<int>, std::string>(
      {{DType::kF32, {0, 1, 0, 1}, "number the ranks host by host, or use no codec"},
       {DType::kI32, {0, 0, 1, 1}, "codecs take f32, f16 and bf16"}}));
  CHECK(contains(error_of([&, dtype = dtype, hosts = hosts] {
                   run_ranks(4, [&](Communicator& comm) {
                     HostGroups groups = split_by_host(comm, hosts);
                     (void)CompressedGather(*find_codec("int8"), 8, dtype, groups);
                     return 0;
                   });
                 }),
                 problem));
}

}  // namespace
}  // namespace gxp
