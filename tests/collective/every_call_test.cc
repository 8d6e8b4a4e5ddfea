// Every operation, algorithm, transport, type and reduction, around every threshold.
#include <random>

#include "lib/collective/communicator.h"
#include "lib/collective/tune/shared_methods.h"
#include "tests/catch.h"
#include "tests/collective/calls.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/combinations.h"
#include "tests/transport/mishaps.h"

using namespace gxp;

namespace {

constexpr DType kCallTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                                DType::kI64, DType::kI32, DType::kI8,  DType::kU8};

std::vector<std::string> auto_and_all_algorithms() {
  std::vector<std::string> names = {"auto"};
  for (const std::string_view name : algorithm_names()) names.emplace_back(name);
  return names;
}

bool has(const std::string& algorithm, Collective collective) {
  return algorithm == "auto" || parse_shared_method(algorithm) ||
         find_algorithm(algorithm, collective) != nullptr;
}

// Runs fn(Communicator&) as every rank over the transport.
template <class Fn>
std::vector<std::string> run_over_ranks(const std::string& transport, int world_size,
                                        const CommunicatorOptions& options, const Fn& fn) {
  if (transport == "inproc") return run_ranks(world_size, fn, options);
  return run_ranks_of(transport, world_size, fn, options);
}

struct Buffers {
  CommunicatorMemory a;
  CommunicatorMemory b;
  std::vector<std::byte> c;
  std::vector<std::byte> d;
  explicit Buffers(Communicator& comm, size_t bytes)
      : a(comm.allocate(bytes)), b(comm.allocate(bytes)), c(bytes), d(bytes) {}
  // kinds 0 and 1: communicator memory, in place or not; 2 and 3: ordinary; 4: one of each.
  [[nodiscard]] std::pair<Memory, Memory> of_kind(int kind) {
    const Memory own = memory_of(c);
    if (kind == 0) return {a.memory(), a.memory()};
    if (kind == 1) return {a.memory(), b.memory()};
    if (kind == 2) return {own, own};
    if (kind == 3) return {own, memory_of(d)};
    return {a.memory(), own};
  }
};

size_t fitting_count(Collective collective, size_t count, int world_size) {
  return collective == Collective::kAllToAll ? count - count % size_t(world_size) : count;
}

// Elements of f32: around what fits a line, a copy, a slot, a tile, a segment.
std::vector<size_t> counts_around_thresholds(int world_size) {
  std::vector<size_t> counts = {0, 1, size_t(world_size) - 1, size_t(world_size) + 1, 13, 15, 61};
  for (const size_t bytes : {64, 256, 1024, 8192, 16384}) {
    for (const size_t count : {bytes / 4 - 1, bytes / 4, bytes / 4 + 1}) counts.push_back(count);
  }
  return counts;
}

std::string check_all_counts(Communicator& comm, const std::string& algorithm, Buffers& buffers) {
  for (const Collective collective : collectives()) {
    if (!has(algorithm, collective)) continue;
    int turn = 0;
    for (const size_t count : counts_around_thresholds(comm.world_size())) {
      const Call call{.collective = collective,
                      .dtype = DType::kF32,
                      .count = fitting_count(collective, count, comm.world_size()),
                      .root = int(count % size_t(comm.world_size()))};
      for (const int kind : {turn % 5, (turn + 2) % 5}) {
        const auto [in, out] = buffers.of_kind(kind);
        const std::string problem = run_and_check(comm, call, in, out);
        if (!problem.empty()) return fmt::format("{} (memory kind {})", problem, kind);
      }
      ++turn;
    }
  }
  return "";
}

std::string check_all_types(Communicator& comm, const std::string& algorithm, Buffers& buffers) {
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kReduceScatter, Collective::kReduce}) {
    if (!has(algorithm, collective)) continue;
    for (const DType dtype : kCallTypes) {
      for (const ReduceOp op : reduce_ops()) {
        if (!supports(op, dtype)) continue;
        for (const size_t count : {size_t{5}, size_t{1031}}) {
          const Call call{.collective = collective,
                          .dtype = dtype,
                          .op = op,
                          .count = count,
                          .root = comm.world_size() - 1};
          const auto [in, out] = buffers.of_kind(int(count + size_t(op)) % 5);
          const std::string problem = run_and_check(comm, call, in, out);
          if (!problem.empty()) return problem;
        }
      }
    }
  }
  return "";
}

std::string check_everything(Communicator& comm, const std::string& algorithm) {
  Buffers buffers(comm, 64 << 10);
  const std::string problem = check_all_counts(comm, algorithm, buffers);
  return problem.empty() ? check_all_types(comm, algorithm, buffers) : problem;
}

std::string check_large(Communicator& comm) {
  Buffers buffers(comm, 8 << 20);
  for (const Collective collective : collectives()) {
    for (const size_t bytes :
         {size_t{64} << 10, size_t{128} << 10, size_t{256} << 10, size_t{5} << 20}) {
      for (const size_t extra : {0, 1}) {
        const Call call{.collective = collective,
                        .dtype = DType::kBF16,
                        .count = fitting_count(collective, bytes / 2 + extra, comm.world_size())};
        const auto [in, out] = buffers.of_kind(int(bytes / 65536 + extra) % 5);
        const std::string problem = run_and_check(comm, call, in, out);
        if (!problem.empty()) return problem;
      }
    }
  }
  return "";
}

// Blocking and started, in groups of all ranks and of some, in random order.
std::string check_random_calls(Communicator& comm, uint64_t seed, int calls) {
  std::mt19937_64 random(seed);  // the same on all ranks
  Buffers buffers(comm, 64 << 10);
  const auto below = [&](size_t n) { return size_t(random() % n); };
  for (int i = 0; i < calls; ++i) {
    const Collective collective = collectives()[below(collectives().size())];
    const DType dtype = kCallTypes[below(std::size(kCallTypes))];
    const ReduceOp op = reduce_ops()[below(reduce_ops().size())];
    const size_t most = below(8) == 0 ? 8000 : 200;
    const Call call{.collective = collective,
                    .dtype = dtype,
                    .op = supports(op, dtype) ? op : ReduceOp::kSum,
                    .count = fitting_count(collective, below(most), comm.world_size()),
                    .root = int(below(size_t(comm.world_size())))};
    const auto [in, out] = buffers.of_kind(int(below(5)));
    const std::string problem = run_and_check(comm, call, in, out);
    if (!problem.empty()) return fmt::format("call {} of seed {}: {}", i, seed, problem);
  }
  return "";
}

// Sums of these are rounded, and so depend on the order.
std::vector<float> unordered_floats(int rank, size_t count) {
  std::mt19937 random(unsigned(rank) + 1);
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(float(int(random())), int(random() % 40) - 50);
  return values;
}

// What all layout-invariant all-reduces must give, bit by bit, however the buffer is cut.
std::string check_same_bits(Communicator& comm) {
  constexpr size_t kCount = 40009;
  std::vector<std::vector<float>> inputs;
  std::vector<const std::byte*> sources;
  for (int rank = 0; rank < comm.world_size(); ++rank) {
    inputs.push_back(unordered_floats(rank, kCount));
    sources.push_back(reinterpret_cast<const std::byte*>(inputs.back().data()));
  }
  std::vector<float> want(kCount);
  std::byte* const target = memory_of(want).data;
  fold_all(std::span(&target, 1), sources, kCount * sizeof(float), DType::kF32, ReduceOp::kSum);
  const CommunicatorMemory shared = comm.allocate(kCount * sizeof(float));
  std::vector<float> own(kCount);
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != Collective::kAllReduce || !algorithm.layout_invariant) continue;
    for (const size_t segment_bytes : {0, 256, 8192}) {
      comm.set_selection(
          {.algorithm = std::string(algorithm.name), .segment_bytes = segment_bytes});
      for (const size_t bucket : {kCount, size_t{9973}}) {
        for (const Memory memory : {shared.memory(), memory_of(own)}) {
          std::memcpy(memory.data, inputs[size_t(comm.rank())].data(), memory.bytes);
          for (size_t begin = 0; begin < kCount; begin += bucket) {
            const size_t count = std::min(bucket, kCount - begin);
            comm.all_reduce(memory.slice(begin * 4, count * 4), DType::kF32, ReduceOp::kSum);
          }
          if (std::memcmp(memory.data, want.data(), memory.bytes) != 0)
            return fmt::format("{}, segments {}, buckets {}", algorithm.name, segment_bytes,
                               bucket);
        }
      }
    }
  }
  return "";
}

void require_no_problem(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) REQUIRE(problem == "");
}

}  // namespace

TEST_CASE("every algorithm gives every operation's result over every transport", "[exhaustive]") {
  const auto [transport, world_size, algorithm] = GENERATE(
      from_range(combinations(rows_and({"inproc", "shm mapped"}),
                              std::vector<int>{1, 2, 3, 4, 5, 7, 8}, auto_and_all_algorithms())));
  CommunicatorOptions options;
  options.selection.algorithm = algorithm;
  options.selection.segment_bytes = 1024;
  options.selection.channels = 1 + world_size % 3;
  CAPTURE(transport, world_size, options.selection.algorithm);
  require_no_problem(run_over_ranks(transport, world_size, options, [&](Communicator& comm) {
    return check_everything(comm, options.selection.algorithm);
  }));
}

TEST_CASE("every method of shared memory gives every operation's result") {
  const std::string transport = GENERATE("shm", "shm mapped");
  CommunicatorOptions options;
  options.selection.algorithm = GENERATE("copied", "cma", "tiles");
  CAPTURE(transport, options.selection.algorithm);
  require_no_problem(run_over_ranks(transport, 3, options, [&](Communicator& comm) {
    return check_everything(comm, options.selection.algorithm);
  }));
}

TEST_CASE("layout-invariant algorithms give the same bits over any transport, segment and bucket",
          "[exhaustive]") {
  const std::string transport = GENERATE(from_range(rows_and({"inproc", "shm mapped"})));
  const int world_size = GENERATE(2, 3, 4, 5, 7, 8);
  CAPTURE(transport, world_size);
  require_no_problem(run_over_ranks(transport, world_size, {}, check_same_bits));
}

TEST_CASE("large calls go through tiles and segments unharmed") {
  const auto [transport, world_size, algorithm] =
      GENERATE(from_range(combinations(rows_and({"shm mapped"}), std::vector<int>{2, 3},
                                       std::vector<std::string>{"auto", "direct"})));
  CommunicatorOptions options;
  options.selection.algorithm = algorithm;
  CAPTURE(transport, world_size, options.selection.algorithm);
  require_no_problem(run_over_ranks(transport, world_size, options, check_large));
}

TEST_CASE("every operation gives its result while queue pairs of RDMA overtake each other") {
  const Mishaps fake;
  if (!fake) return;
  const std::string transport = GENERATE("verbs", "verbs rails");
  const int world_size = GENERATE(2, 3, 4);
  CAPTURE(transport, world_size);
  fake->shuffle(true);
  require_no_problem(run_over_ranks(transport, world_size, {}, [](Communicator& comm) {
    Buffers buffers(comm, 1 << 20);
    std::string problem;
    for (const Collective collective : collectives()) {
      for (const int kind : {0, 1, 2, 3, 4}) {
        const size_t count =
            fitting_count(collective, kind % 2 == 0 ? 75004 : 601, comm.world_size());
        const Call call{.collective = collective, .dtype = DType::kF32, .count = count};
        const auto [in, out] = buffers.of_kind(kind);
        if (problem.empty()) problem = run_and_check(comm, call, in, out);
      }
    }
    return problem;
  }));
  CHECK(fake->not_ready() == 0);
}

TEST_CASE("random calls in a row give exact results") {
  const std::string transport = GENERATE(from_range(rows_and({"shm mapped"})));
  const int world_size = GENERATE(2, 3, 5);
  CAPTURE(transport, world_size);
  require_no_problem(run_over_ranks(transport, world_size, {}, [](Communicator& comm) {
    return check_random_calls(comm, 42, 300);
  }));
}

TEST_CASE("rings in any order and groups give exact results, in parts of the ranks too") {
  const int world_size = GENERATE(2, 3, 5, 8);
  CommunicatorOptions options;
  options.selection.algorithm = GENERATE("ring", "hierarchical");
  options.selection.channels = 3;
  RankPlan& plan = options.plan;
  plan.ranks = world_size;
  for (const int step : {1, world_size - 1}) {
    for (int i = 0; i < world_size; ++i) plan.rings.push_back((2 + i * step) % world_size);
  }
  for (int rank = 0; rank < world_size; ++rank) plan.groups.push_back(rank % 2);
  CAPTURE(world_size, options.selection.algorithm);
  require_no_problem(run_over_ranks("inproc", world_size, options, [](Communicator& comm) {
    const std::string problem = check_random_calls(comm, 42, 60);
    const auto part = comm.split(comm.rank() % 3 == 0 ? 0 : 1, -comm.rank());
    return problem.empty() ? check_random_calls(*part, 43, 60) : problem;
  }));
}

TEST_CASE("a million random calls give exact results", "[.long]") {
  const std::string transport = GENERATE(from_range(rows_and({"shm mapped"})));
  const int world_size = GENERATE(2, 4);
  CAPTURE(transport, world_size);
  for (uint64_t seed = 0; seed < 25; ++seed) {
    CommunicatorOptions options;
    options.selection.layout_invariant = seed % 2 == 0;
    options.selection.segment_bytes = seed % 3 == 0 ? 4096 : 0;
    require_no_problem(run_over_ranks(transport, world_size, options, [&](Communicator& comm) {
      return check_random_calls(comm, seed, 10000);
    }));
  }
}
