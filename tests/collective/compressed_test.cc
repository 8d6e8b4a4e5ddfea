#include "lib/collective/compress/compressed_all_reduce.h"

#include <algorithm>
#include <cmath>

#include "lib/collective/compress/codec.h"
#include "tests/catch.h"
#include "tests/collective/calls.h"
#include "tests/collective/error_of.h"
#include "tests/collective/run_on_hosts.h"

namespace gxp {
namespace {

const std::vector<size_t> kCounts = {0, 1, 7, 129, 4099};

using Floats = std::vector<float>;

// What rank `rank` has in step `step`.
Floats gradient(int rank, size_t count, int step = 0) {
  Floats x(count);
  for (size_t i = 0; i < count; ++i)
    x[i] = static_cast<float>(std::sin(double(i * 7 + 1) * (rank + 1.3) + step * 1.9));
  return x;
}

std::vector<double> exact_sum(int world_size, size_t count, int steps = 1) {
  std::vector<double> sum(count);
  for (int step = 0; step < steps; ++step) {
    for (int rank = 0; rank < world_size; ++rank) {
      const Floats x = gradient(rank, count, step);
      for (size_t i = 0; i < count; ++i) sum[i] += double(x[i]);
    }
  }
  return sum;
}

template <class Actual>
double largest_difference(const Actual& actual, const std::vector<double>& expected) {
  REQUIRE(actual.size() == expected.size());
  double most = 0;
  for (size_t i = 0; i < actual.size(); ++i)
    most = std::max(most, std::abs(double(actual[i]) - expected[i]));
  return most;
}

// The error of a sum whose parts and whole are at most `ranks` in size, with values of at most 1
// per rank.
double bound_of(const Codec& codec, const HostsAndRanks& world) {
  return codec.error * 1.1 * (world.hosts + 1) * world.size() + 1e-6 * world.size();
}

constexpr CompressionOptions kManyPieces{.piece_bytes = 1 << 10};

// f32, in pieces of 1 KiB.
CompressedAllReduce compressed(const Codec& codec, size_t count, HostGroups& groups, Device& device,
                               const CompressionOptions& options = kManyPieces) {
  return {codec, options, count, DType::kF32, groups, device};
}

Floats all_reduced(HostGroups& groups, Device& device, const Codec& codec, size_t count) {
  Floats x = gradient(groups.all->rank(), count);
  compressed(codec, count, groups, device).all_reduce(memory_of(x), ReduceOp::kSum);
  return x;
}

TEST_CASE("every codec's sum is within its bound, with the same bits on every rank",
          "[collective]") {
  const HostsAndRanks world = GENERATE(from_range(kHostsAndRanks));
  const size_t count = GENERATE(from_range(kCounts));
  CAPTURE(world.hosts, world.ranks_of_host, count);
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    const auto results = run_on(world, [&](HostGroups& groups, Device& device) {
      return all_reduced(groups, device, codec, count);
    });
    for (const auto& result : results) CHECK(result == results[0]);
    CHECK(largest_difference(results[0], exact_sum(world.size(), count)) <= bound_of(codec, world));
  }
}

TEST_CASE("every codec gives the same bits on every rank and in every run", "[collective]") {
  const HostsAndRanks world = GENERATE(HostsAndRanks{3, 1}, HostsAndRanks{2, 2});
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name, world.hosts);
    const auto run = [&](HostGroups& groups, Device& device) {
      return all_reduced(groups, device, codec, 4099);
    };
    const auto first = run_on(world, run);
    for (const auto& result : first) CHECK(result == first[0]);
    CHECK(run_on(world, run) == first);
  }
}

TEST_CASE("half types are summed in f32 and averaged", "[collective]") {
  const DType dtype = GENERATE(DType::kF16, DType::kBF16);
  const auto results = run_on({2, 2}, [&](HostGroups& groups, Device& device) {
    const int rank = groups.all->rank();
    return visit_dtype(dtype, [&](auto element) {
      std::vector<decltype(element)> data;
      for (size_t i = 0; i < 300; ++i)
        data.push_back(to_element<decltype(element)>(input_value(rank, i, dtype)));
      CompressedAllReduce(*find_codec("int8"), kManyPieces, 300, dtype, groups, device)
          .all_reduce(memory_of(data), ReduceOp::kAvg);
      Floats averages;
      for (const auto value : data) averages.push_back(float(value));
      return averages;
    });
  });
  for (size_t i = 0; i < 300; ++i) {
    int64_t sum = 0;
    for (int rank = 0; rank < 4; ++rank) sum += input_value(rank, i, dtype);
    CHECK(std::abs(results[1][i] - float(sum) / 4) < 0.05f);
  }
}

// The sum over `steps` calls of one object.
std::vector<double> sum_of_steps(CompressedAllReduce all_reduce, int rank, size_t count,
                                 int steps) {
  std::vector<double> sum(count);
  for (int step = 0; step < steps; ++step) {
    Floats x = gradient(rank, count, step);
    all_reduce.all_reduce(memory_of(x), ReduceOp::kSum);
    for (size_t i = 0; i < x.size(); ++i) sum[i] += double(x[i]);
  }
  return sum;
}

TEST_CASE("with error feedback 200 steps lose no more than the last one", "[collective]") {
  const HostsAndRanks world = GENERATE(HostsAndRanks{3, 1}, HostsAndRanks{2, 2});
  const Codec& codec = *find_codec(GENERATE("int8", "int4"));
  CAPTURE(codec.name, world.hosts);
  const auto error_after = [&](bool feedback) {
    CompressionOptions options = kManyPieces;
    options.error_feedback = feedback;
    const auto sums = run_on(world, [&](HostGroups& groups, Device& device) {
      return sum_of_steps(compressed(codec, 515, groups, device, options), groups.all->rank(), 515,
                          200);
    });
    return largest_difference(sums[0], exact_sum(world.size(), 515, 200));
  };
  const double with_feedback = error_after(true);
  CHECK(with_feedback <= 1.3 * bound_of(codec, world));
  CHECK(error_after(false) > 3 * with_feedback);
}

// What rank r holds of `steps` reduce-scatters of one buffer, added up: its chunk of each.
std::vector<double> scattered_sums(HostGroups& groups, Device& device, const Codec& codec,
                                   size_t count, int steps) {
  const int rank = groups.all->rank();
  CompressedSum sum(codec, {Collective::kReduceScatter, count}, DType::kF32, groups);
  const Buffer slots = device.allocate(sum.slots_bytes(), MemoryKind::kCommunication);
  Floats residual(sum.residual_count());
  const size_t chunk = count / static_cast<size_t>(groups.all->world_size());
  std::vector<double> sums(chunk);
  for (int step = 0; step < steps; ++step) {
    Floats x = gradient(rank, count, step);
    sum.run(memory_of(x), ReduceOp::kSum, {slots.memory(), residual.data()});
    for (size_t i = 0; i < chunk; ++i) sums[i] += double(x[static_cast<size_t>(rank) * chunk + i]);
  }
  return sums;
}

std::vector<double> joined_chunks(const std::vector<std::vector<double>>& chunks) {
  std::vector<double> all;
  for (const auto& chunk : chunks) all.insert(all.end(), chunk.begin(), chunk.end());
  return all;
}

TEST_CASE("a reduce-scatter in a codec leaves each rank its chunk of the sum", "[collective]") {
  const HostsAndRanks world = GENERATE(from_range(kHostsAndRanks));
  const size_t chunk = GENERATE(0, 1, 129, 515);
  const int steps = GENERATE(1, 40);
  CAPTURE(world.hosts, world.ranks_of_host, chunk, steps);
  const size_t count = chunk * static_cast<size_t>(world.size());
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    const auto chunks = run_on(world, [&](HostGroups& groups, Device& device) {
      return scattered_sums(groups, device, codec, count, steps);
    });
    // Of 40 steps no more than of one: what a step lacks, the next one adds.
    CHECK(largest_difference(joined_chunks(chunks), exact_sum(world.size(), count, steps)) <=
          1.3 * bound_of(codec, world) + 1e-5);
  }
}

TEST_CASE("a reduce-scatter is refused among ranks that are not numbered by host", "[collective]") {
  CHECK(contains(
      error_of([] {
        run_ranks(4, [](Communicator& comm) {
          HostGroups groups = split_by_host(comm, std::vector{0, 1, 0, 1});
          CompressedSum(*find_codec("int8"), {Collective::kReduceScatter, 8}, DType::kF32, groups);
          return 0;
        });
      }),
      "number the ranks host by host, or use no codec"));
}

TEST_CASE("one host adds what is pending to the next sum, once", "[collective]") {
  const Collective collective = GENERATE(Collective::kAllReduce, Collective::kReduceScatter);
  const auto firsts = run_on({1, 2}, [&](HostGroups& groups, Device&) {
    CompressedSum sum(*find_codec("int8"), {collective, 8, 8}, DType::kF32, groups);
    Floats residual(sum.residual_count(), 0.5f);
    Floats twice;
    for (int call = 0; call < 2; ++call) {
      Floats x(8, 1.0f);
      sum.run(memory_of(x), ReduceOp::kSum, {{}, residual.data()});
      twice.push_back(x[size_t(groups.all->rank()) * 4]);
    }
    return twice;
  });
  for (const Floats& twice : firsts) CHECK(twice == Floats{2.5f, 2});
}

// Gradient descent, with falling rates, on the mean over ranks of |w - target of the rank|^2 / 2;
// the distance to the optimum, the mean of the targets, after `steps`.
double distance_after(const Codec& codec, int steps) {
  constexpr size_t kCount = 768;
  const HostsAndRanks world{3, 1};
  const auto ends = run_on(world, [&](HostGroups& groups, Device& device) {
    CompressedAllReduce all_reduce = compressed(codec, kCount, groups, device);
    const Floats target = gradient(groups.all->rank(), kCount);
    Floats w(kCount);
    for (int step = 0; step < steps; ++step) {
      Floats x(kCount);
      for (size_t i = 0; i < x.size(); ++i) x[i] = w[i] - target[i];
      all_reduce.all_reduce(memory_of(x), ReduceOp::kAvg);
      const float rate = 0.15f / (1 + 0.05f * float(step));
      for (size_t i = 0; i < x.size(); ++i) w[i] -= rate * x[i];
    }
    return w;
  });
  std::vector<double> optimum = exact_sum(world.size(), kCount);
  for (double& value : optimum) value /= world.size();
  return largest_difference(ends[0], optimum);
}

TEST_CASE("descent with any codec ends near the optimum", "[collective]") {
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    CHECK(distance_after(codec, 400) < 0.02);
  }
}

TEST_CASE("int8 sends a quarter of f32's bytes, and 2 bytes for a block", "[collective]") {
  const auto sent = run_on({2, 1}, [&](HostGroups& groups, Device& device) {
    CompressedAllReduce all_reduce =
        compressed(*find_codec("int8"), 1 << 20, groups, device, {.piece_bytes = 64 << 10});
    Floats x = gradient(groups.all->rank(), 1 << 20);
    const uint64_t before = groups.all->counters().bytes_sent;
    all_reduce.all_reduce(memory_of(x), ReduceOp::kSum);
    return groups.all->counters().bytes_sent - before;
  });
  CHECK(sent[0] == (1 << 20) / 128 * 130);
}

TEST_CASE("a NaN reaches every rank and is gone in the next step", "[collective]") {
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    const auto results = run_on({2, 1}, [&](HostGroups& groups, Device& device) {
      CompressedAllReduce all_reduce = compressed(codec, 1200, groups, device);
      Floats x = gradient(groups.all->rank(), 1200);
      if (groups.all->rank() == 1) x[700] = std::nanf("");
      all_reduce.all_reduce(memory_of(x), ReduceOp::kSum);
      const bool seen = std::isnan(x[700]);
      x = gradient(groups.all->rank(), 1200, 1);
      all_reduce.all_reduce(memory_of(x), ReduceOp::kSum);
      const auto bad = [](float v) { return !std::isfinite(v); };
      return std::pair(seen, std::count_if(x.begin(), x.end(), bad));
    });
    for (const auto& result : results) CHECK(result == std::pair(true, ptrdiff_t{0}));
  }
}

TEST_CASE("state and scratch are counted as communication memory", "[collective]") {
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    const auto results = run_on({2, 1}, [&](HostGroups& groups, Device& device) {
      groups.all->barrier();
      const uint64_t before = device.tracker().live()[MemoryKind::kCommunication];
      const CompressedAllReduce all_reduce = compressed(codec, 4096, groups, device);
      return device.tracker().live()[MemoryKind::kCommunication] - before;
    });
    CHECK(results[0] > 0);
  }
}

TEST_CASE("what cannot be compressed is said", "[collective]") {
  const auto messages = run_on({2, 1}, [](HostGroups& groups, Device& device) {
    return error_of(
        [&] { CompressedAllReduce(*find_codec("int8"), {}, 8, DType::kI32, groups, device); });
  });
  CHECK(contains(messages[0], "codecs take f32"));
  CHECK(contains(error_of([] {
                   run_ranks(3, [](Communicator& comm) {
                     split_by_host(comm, std::vector{0, 0, 1});
                     return 0;
                   });
                 }),
                 "1 to 2 ranks"));
}

}  // namespace
}  // namespace gxp
