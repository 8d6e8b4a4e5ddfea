#include "lib/collective/compress/compressed.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lib/collective/compress/codec.h"
#include "lib/collective/compress/power_sgd.h"
#include "lib/collective/compress/quantized.h"
#include "lib/collective/compress/top_k.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks.h"
#include "tests/collective/values.h"

namespace gxp {
namespace {

// Hosts and ranks of each, host by host.
struct HostsAndRanks {
  int hosts = 1;
  int ranks_of_host = 1;
  [[nodiscard]] int size() const { return hosts * ranks_of_host; }
  [[nodiscard]] std::vector<int> host_of_ranks() const {
    std::vector<int> hosts_of(static_cast<size_t>(size()));
    for (size_t rank = 0; rank < hosts_of.size(); ++rank)
      hosts_of[rank] = static_cast<int>(rank) / ranks_of_host;
    return hosts_of;
  }
};
const std::vector<HostsAndRanks> kHostsAndRanks = {{1, 1}, {2, 1}, {3, 1}, {5, 1},
                                                   {1, 2}, {2, 2}, {3, 2}, {2, 4}};
const std::vector<size_t> kCounts = {0, 1, 7, 129, 4099};

// fn(groups, device) on each rank.
template <class Fn>
auto run_on(const HostsAndRanks& world, const Fn& fn) {
  const std::vector<int> hosts = world.host_of_ranks();
  const std::unique_ptr<Device> device = make_cpu_device();
  return run_ranks(
      world.size(),
      [&](Communicator& comm) {
        HostGroups groups = split_by_host(comm, hosts);
        return fn(groups, *device);
      },
      {}, device.get());
}

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

// Of a sum whose parts and whole are at most `ranks` in size, with values of at most 1 per rank.
double bound_of(const Codec& codec, const HostsAndRanks& world) {
  return codec.error * 1.1 * (world.hosts + 1) * world.size() + 1e-6 * world.size();
}

CompressionOptions compression_of(std::string_view method) {
  CompressionOptions options;
  options.method = method;
  options.piece_bytes = 1 << 10;  // many pieces
  return options;
}

Floats all_reduced(HostGroups& groups, Device& device, std::string_view method, size_t count) {
  Floats x = gradient(groups.all->rank(), count);
  make_compressed_all_reduce(compression_of(method), {.count = count}, groups, device)
      ->all_reduce(memory_of(x), ReduceOp::kSum);
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
      return all_reduced(groups, device, codec.name, count);
    });
    for (const auto& result : results) CHECK(result == results[0]);
    CHECK(largest_difference(results[0], exact_sum(world.size(), count)) <= bound_of(codec, world));
  }
}

TEST_CASE("every method gives the same bits on every rank and in every run", "[collective]") {
  const HostsAndRanks world = GENERATE(HostsAndRanks{3, 1}, HostsAndRanks{2, 2});
  for (const CompressionMethod& method : compression_methods()) {
    CAPTURE(method.name, world.hosts);
    const auto run = [&](HostGroups& groups, Device& device) {
      return all_reduced(groups, device, method.name, 4099);
    };
    const auto first = run_on(world, run);
    for (const auto& result : first) CHECK(result == first[0]);
    CHECK(run_on(world, run) == first);
  }
}

TEST_CASE("half types are summed in f32 and averaged", "[collective]") {
  const DType dtype = GENERATE(DType::kF16, DType::kBF16);
  const HostsAndRanks world{2, 2};
  const auto results = run_on(world, [&](HostGroups& groups, Device& device) {
    Values values = small_integers(dtype, groups.all->rank(), 300);
    make_compressed_all_reduce(compression_of("int8"), {300, dtype, {}}, groups, device)
        ->all_reduce(values.memory(), ReduceOp::kAvg);
    return values;
  });
  for (size_t i = 0; i < 300; ++i) {
    double sum = 0;
    for (int rank = 0; rank < world.size(); ++rank) sum += small_integer(rank, i);
    CHECK(std::abs(results[1].get(i) - sum / 4) < 0.05);
  }
}

TEST_CASE("reduce-scatter leaves this rank's sums, all-gather brings all chunks", "[collective]") {
  const HostsAndRanks world = GENERATE(from_range(kHostsAndRanks));
  const size_t count = GENERATE(from_range(kCounts));
  CAPTURE(world.hosts, world.ranks_of_host, count);
  const Codec& codec = *find_codec("int8");
  const auto results = run_on(world, [&](HostGroups& groups, Device& device) {
    QuantizedCollectives collectives(codec, compression_of("int8"), {.count = count}, groups,
                                     device);
    Floats x = gradient(groups.all->rank(), count);
    collectives.reduce_scatter(memory_of(x), ReduceOp::kSum);
    const Range own = Chunks(count, groups.all->world_size())[groups.all->rank()];
    std::fill_n(x.begin(), own.begin, 99.0f);
    std::fill(x.begin() + ptrdiff_t(own.end()), x.end(), 99.0f);
    collectives.all_gather(memory_of(x));
    return x;
  });
  for (const auto& result : results) CHECK(result == results[0]);
  CHECK(largest_difference(results[0], exact_sum(world.size(), count)) <= bound_of(codec, world));
}

// The sum over `steps` calls of one object.
std::vector<double> sum_of_steps(HostGroups& groups, Device& device,
                                 const CompressionOptions& options, const BufferShape& shape,
                                 int steps) {
  const auto all_reduce = make_compressed_all_reduce(options, shape, groups, device);
  std::vector<double> sum(shape.count);
  for (int step = 0; step < steps; ++step) {
    Floats x = gradient(groups.all->rank(), shape.count, step);
    all_reduce->all_reduce(memory_of(x), ReduceOp::kSum);
    for (size_t i = 0; i < x.size(); ++i) sum[i] += double(x[i]);
  }
  return sum;
}

TEST_CASE("with error feedback 200 steps lose no more than the last one", "[collective]") {
  const HostsAndRanks world = GENERATE(HostsAndRanks{3, 1}, HostsAndRanks{2, 2});
  const std::string method = GENERATE("int8", "int4");
  CAPTURE(method, world.hosts);
  const auto error_of = [&](bool feedback) {
    CompressionOptions options = compression_of(method);
    options.error_feedback = feedback;
    const auto sums = run_on(world, [&](HostGroups& groups, Device& device) {
      return sum_of_steps(groups, device, options, {.count = 515}, 200);
    });
    return largest_difference(sums[0], exact_sum(world.size(), 515, 200));
  };
  const double with_feedback = error_of(true);
  CHECK(with_feedback <= 1.3 * bound_of(*find_codec(method), world));
  CHECK(error_of(false) > 3 * with_feedback);
}

TEST_CASE("what top_k does not send in one step comes in a later one", "[collective]") {
  const HostsAndRanks world = GENERATE(HostsAndRanks{3, 1}, HostsAndRanks{2, 2});
  CompressionOptions options = compression_of("top_k");
  options.top_k_fraction = 0.1;
  const auto sums = run_on(world, [&](HostGroups& groups, Device& device) {
    return sum_of_steps(groups, device, options, {.count = 515}, 200);
  });
  // An element is sent at the latest when it has grown above what a tenth of all grows by in a
  // step: some ten steps' worth of a rank's values, of size 1.
  CHECK(largest_difference(sums[0], exact_sum(world.size(), 515, 200)) < 12 * world.size());
}

TEST_CASE("top_k finds exactly the k largest, the first of equals", "[collective]") {
  const Floats x = {1, -3, 2, 2, -2, 0, 3, 0.5f};
  CHECK(std::bit_cast<float>(find_threshold(x, 1).magnitude) == 3);
  CHECK(find_threshold(x, 1).ties == 1);
  CHECK(std::bit_cast<float>(find_threshold(x, 4).magnitude) == 2);
  CHECK(find_threshold(x, 4).ties == 2);
  CHECK(find_threshold(x, 8).magnitude == 0);
  const Floats rough = rough_floats(0, 1009);
  Floats sorted = rough;
  std::sort(sorted.begin(), sorted.end(),
            [](float a, float b) { return std::abs(a) > std::abs(b); });
  for (const size_t k : {1, 2, 100, 1009})
    CHECK(std::bit_cast<float>(find_threshold(rough, k).magnitude) == std::abs(sorted[k - 1]));
}

TEST_CASE("columns become orthonormal, and zero if they depend on others", "[collective]") {
  constexpr size_t kColumns = 4;
  Floats p = rough_floats(3, 100 * kColumns);
  for (size_t row = 0; row < p.size(); row += kColumns) p[row + 2] = 2 * p[row] - p[row + 1];
  orthogonalise(p, kColumns);
  for (size_t a = 0; a < kColumns; ++a) {
    for (size_t b = 0; b < kColumns; ++b) {
      double dot = 0;
      for (size_t row = 0; row < p.size(); row += kColumns) dot += double(p[row + a]) * p[row + b];
      CHECK(dot == Approx(a == b && a != 2 ? 1 : 0).margin(1e-5));
    }
  }
}

TEST_CASE("power_sgd is exact for a matrix of its rank and for what is in no matrix",
          "[collective]") {
  constexpr size_t kRows = 40, kColumns = 30, kCount = 5 + kRows * kColumns + 3;
  const auto value = [](int rank, size_t i) {  // rank 1, and ones around it
    if (i < 5 || i >= 5 + kRows * kColumns) return float(rank + 1);
    const size_t row = (i - 5) / kColumns;
    return float(row + 1) * float((i - 5) % kColumns + 1) * float(rank + 1);
  };
  const auto results = run_on({2, 2}, [&](HostGroups& groups, Device& device) {
    Floats x(kCount);
    for (size_t i = 0; i < kCount; ++i) x[i] = value(groups.all->rank(), i);
    const BufferShape shape{kCount, DType::kF32, {{5, kRows, kColumns}}};
    make_compressed_all_reduce(compression_of("power_sgd"), shape, groups, device)
        ->all_reduce(memory_of(x), ReduceOp::kAvg);
    return x;
  });
  for (size_t i = 0; i < kCount; ++i)
    CHECK(results[2][i] == Approx(value(0, i) * 2.5).epsilon(1e-4));
}

// Gradient descent, with falling rates, on the mean over ranks of |w - target of the rank|^2 / 2;
// the distance to the optimum, the mean of the targets, after `steps`.
double distance_after(const CompressionOptions& options, int steps) {
  const BufferShape shape{32 * 24, DType::kF32, {{0, 32, 24}}};
  const HostsAndRanks world{3, 1};
  const auto ends = run_on(world, [&](HostGroups& groups, Device& device) {
    const auto all_reduce = make_compressed_all_reduce(options, shape, groups, device);
    const Floats target = gradient(groups.all->rank(), shape.count);
    Floats w(shape.count);
    for (int step = 0; step < steps; ++step) {
      Floats x(shape.count);
      for (size_t i = 0; i < x.size(); ++i) x[i] = w[i] - target[i];
      all_reduce->all_reduce(memory_of(x), ReduceOp::kAvg);
      const float rate = 0.15f / (1 + 0.05f * float(step));
      for (size_t i = 0; i < x.size(); ++i) w[i] -= rate * x[i];
    }
    return w;
  });
  std::vector<double> optimum = exact_sum(world.size(), shape.count);
  for (double& value : optimum) value /= world.size();
  return largest_difference(ends[0], optimum);
}

TEST_CASE("descent with any method ends near the optimum", "[collective]") {
  for (const CompressionMethod& method : compression_methods()) {
    CompressionOptions options = compression_of(method.name);
    options.top_k_fraction = 0.1;
    CAPTURE(method.name);
    CHECK(distance_after(options, 400) < 0.02);
  }
}

TEST_CASE("the bytes on the wire are those of the formula", "[collective]") {
  const HostsAndRanks world = GENERATE(HostsAndRanks{2, 1}, HostsAndRanks{5, 1});
  for (const CompressionMethod& method : compression_methods()) {
    CAPTURE(method.name, world.hosts);
    const auto results = run_on(world, [&](HostGroups& groups, Device& device) {
      const BufferShape shape{9000, DType::kF32, {{100, 80, 100}}};
      const auto all_reduce =
          make_compressed_all_reduce(compression_of(method.name), shape, groups, device);
      Floats x = gradient(groups.all->rank(), shape.count);
      const uint64_t before = groups.all->counters().bytes_sent;
      all_reduce->all_reduce(memory_of(x), ReduceOp::kSum);
      return std::pair(groups.all->counters().bytes_sent - before, all_reduce->wire_bytes());
    });
    for (const auto& [sent, formula] : results) CHECK(sent == formula);
  }
}

TEST_CASE("int8 sends a quarter of f32's bytes, and 2 bytes for a block", "[collective]") {
  const auto results = run_on({2, 1}, [&](HostGroups& groups, Device& device) {
    CompressionOptions options = compression_of("int8");
    options.piece_bytes = 64 << 10;
    return make_compressed_all_reduce(options, {.count = 1 << 20}, groups, device)->wire_bytes();
  });
  CHECK(results[0] == (1 << 20) / 128 * 130);
}

TEST_CASE("a NaN reaches every rank and is gone in the next step", "[collective]") {
  for (const CompressionMethod& method : compression_methods()) {
    CAPTURE(method.name);
    const auto results = run_on({2, 1}, [&](HostGroups& groups, Device& device) {
      const BufferShape shape{1200, DType::kF32, {{0, 30, 40}}};
      const auto all_reduce =
          make_compressed_all_reduce(compression_of(method.name), shape, groups, device);
      Floats x = gradient(groups.all->rank(), shape.count);
      if (groups.all->rank() == 1) x[700] = std::nanf("");
      all_reduce->all_reduce(memory_of(x), ReduceOp::kSum);
      const bool seen = std::isnan(x[700]);
      x = gradient(groups.all->rank(), shape.count, 1);
      all_reduce->all_reduce(memory_of(x), ReduceOp::kSum);
      const auto bad = [](float v) { return !std::isfinite(v); };
      return std::pair(seen, std::count_if(x.begin(), x.end(), bad));
    });
    for (const auto& result : results) CHECK(result == std::pair(true, ptrdiff_t{0}));
  }
}

TEST_CASE("state and scratch are counted as communication memory", "[collective]") {
  for (const CompressionMethod& method : compression_methods()) {
    CAPTURE(method.name);
    const auto results = run_on({2, 1}, [&](HostGroups& groups, Device& device) {
      groups.all->barrier();
      const uint64_t before = device.tracker().live()[MemoryKind::kCommunication];
      const auto all_reduce =
          make_compressed_all_reduce(compression_of(method.name), {.count = 4096}, groups, device);
      return device.tracker().live()[MemoryKind::kCommunication] - before;
    });
    CHECK(results[0] > 0);
  }
}

TEST_CASE("what cannot be compressed is said", "[collective]") {
  const auto message_of = [](const auto& act) {
    try {
      act();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto contains = [](const std::string& text, std::string_view part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const auto messages = run_on({2, 1}, [&](HostGroups& groups, Device& device) {
    const auto make = [&](std::string_view method, DType dtype) {
      return message_of([&] {
        (void)make_compressed_all_reduce(compression_of(method), {8, dtype, {}}, groups, device);
      });
    };
    return std::vector{make("int7", DType::kF32), make("top_k", DType::kBF16),
                       make("int8", DType::kI32)};
  });
  contains(messages[0][0], "no such method");
  contains(messages[0][1], "takes f32");
  contains(messages[0][2], "codecs take f32");
  contains(message_of([] {
             run_ranks(3, [](Communicator& comm) {
               return int(split_by_host(comm, std::vector{0, 0, 1}).in_order);
             });
           }),
           "1 to 2 ranks");
}

}  // namespace
}  // namespace gxp
