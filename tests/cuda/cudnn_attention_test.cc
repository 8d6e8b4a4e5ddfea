// Attention by the emulated cuDNN: which part of a batch a call computes, and what happens where
// cuDNN cannot be had. That the graphs compute attention is held by the families of tests/kernels.
#include "kernels/cuda/cudnn/cudnn_attention.h"

#include "tests/cuda/emulation/cudnn.h"
#include "tests/cuda/on_device.h"
#include "tests/kernels/grouped_run.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

using emulation::CudnnBehaviour;

// How the emulated cuDNN behaves while this exists.
struct Behaving {
  explicit Behaving(const CudnnBehaviour& behaviour) { set(behaviour); }
  ~Behaving() { set({}); }
  static void set(const CudnnBehaviour& behaviour) {
    emulation::cudnn_behaviour() = behaviour;
    forget_cudnn_plans();
  }
};

BackendKind kind_of(const CudaOpsOptions& options) {
  return {"", 1, [options] { return make_cuda_test_ops(options); }};
}

GroupedRun computed(const CudaOpsOptions& options, size_t head_size = 64,
                    const AttentionScores& scores = {}, const Indices& document_begin = {}) {
  TestBackend ops(kind_of(options));
  GroupedRun run({3, 65, 8, head_size}, 4, {.dtype = DType::kBF16, .scores = scores});
  run.document_begin = document_begin;
  run.run(ops);
  return run;
}

void check_same_bits(const GroupedRun& a, const GroupedRun& b) {
  CHECK(a.out.floats() == b.out.floats());
  CHECK(a.lse == b.lse);
  CHECK(a.gradients() == b.gradients());
}

const AttentionShape kShape = {
    .batch = 3, .positions = 65, .heads = 8, .kv_heads = 4, .head_size = 64};

size_t bytes_of(size_t rows, size_t groups) {
  AttentionShape part = kShape;
  part.batch = rows;
  part.kv_heads = groups;
  part.heads = 2 * groups;
  return cudnn_workspace_bytes(part);
}

TEST_CASE("slices of attention cover a batch once, each within its workspace") {
  const size_t most = GENERATE(bytes_of(3, 4), bytes_of(2, 4), bytes_of(1, 4), bytes_of(1, 4) - 1,
                               bytes_of(1, 3), bytes_of(1, 1));
  CAPTURE(most);
  std::vector<int> covered(3 * 4);
  for (const AttentionSlice& slice : attention_slices(kShape, most)) {
    CHECK(bytes_of(slice.rows, slice.groups) <= most);
    CHECK((slice.rows == 1 || slice.groups == 4));
    for (size_t row = slice.row; row < slice.row + slice.rows; ++row)
      for (size_t group = slice.group; group < slice.group + slice.groups; ++group)
        ++covered[row * 4 + group];
  }
  CHECK(covered == std::vector<int>(3 * 4, 1));
  CHECK(attention_slices(kShape, bytes_of(1, 1) - 1).empty());
}

TEST_CASE("attention by cuDNN in slices has the bits of one call") {
  const auto [most, calls] = GENERATE(table<size_t, int>(
      {{bytes_of(2, 4), 2}, {bytes_of(1, 4), 3}, {bytes_of(1, 3), 6}, {bytes_of(1, 1), 12}}));
  CAPTURE(most, calls);
  const GroupedRun whole = computed({.attention = AttentionBy::kCudnn});
  const int before = emulation::cudnn_runs();
  check_same_bits(
      computed({.attention = AttentionBy::kCudnn, .cudnn_slicing = {.most_bytes = most}}), whole);
  CHECK(emulation::cudnn_runs() - before == 1 + calls);
}

TEST_CASE("of the slices of cuDNN's attention the fastest are timed once, and taken again") {
  const TemporaryDirectory folder;
  AttentionShape shape = kShape;
  shape.positions = 9;
  const auto bytes = [&](size_t rows) {
    return cudnn_workspace_bytes(shape_of(shape, {0, rows, 0, 4}));
  };
  // In one call, or 3, 6 or 12.
  const CudnnSlicing slicing = {bytes(3), folder / "cache"};
  const Behaving behaving({.slow_from = 60'000});  // a row and more
  const auto calls = [&](const CudnnSlicing& of) {
    TestBackend ops(kind_of({.attention = AttentionBy::kCudnn, .cudnn_slicing = of}));
    GroupedRun run({shape.batch, shape.positions, shape.heads, shape.head_size}, 4,
                   {.dtype = DType::kBF16});
    const int before = emulation::cudnn_runs();
    run.run(ops);
    return emulation::cudnn_runs() - before - 1;  // forward is one
  };
  CHECK(calls(slicing) > 11 * (1 + 3 + 6 + 12));
  const int chosen = calls(slicing);
  CHECK(chosen >= 6);
  CHECK(calls(slicing) == chosen);
  CHECK(calls({slicing.most_bytes, ""}) == 1);
  // Another order is timed anew.
  CHECK(calls({slicing.most_bytes, slicing.cache, SumOrder::kAny}) > 11);
}

TEST_CASE("attention in any order takes less memory the more positions there are") {
  const AttentionShape gpt2 = {16, 1024, 12, 12, 64};
  CHECK(cudnn_workspace_bytes(gpt2, SumOrder::kFixed) >
        3 * cudnn_workspace_bytes(gpt2, SumOrder::kAny));
}

TEST_CASE("attention by cuDNN in any order adds up queries' gradients in its workspace") {
  const size_t rows = GENERATE(3, 1);  // in a call
  const AttentionShape part = shape_of(kShape, {0, rows, 0, 4});
  const CudnnSlicing any = {.most_bytes = cudnn_workspace_bytes(part, SumOrder::kAny),
                            .order = SumOrder::kAny};
  const GroupedRun fixed = computed({.attention = AttentionBy::kCudnn});
  const int runs = emulation::cudnn_runs(), plans = emulation::cudnn_plans_made();
  check_same_bits(computed({.attention = AttentionBy::kCudnn, .cudnn_slicing = any}), fixed);
  CHECK(emulation::cudnn_runs() - runs == 1 + 3 / int(rows));
  CHECK(emulation::cudnn_plans_made() - plans == 2);  // not those of a fixed order
  const Behaving behaving({.is_ordered = false});
  check_same_bits(computed({.attention = AttentionBy::kCudnn, .cudnn_slicing = any}), fixed);
}

TEST_CASE("cuDNN's plans are made once in a process") {
  forget_cudnn_plans();
  const int before = emulation::cudnn_plans_made();
  const GroupedRun first = computed({.attention = AttentionBy::kCudnn});
  const int made = emulation::cudnn_plans_made() - before;
  CHECK(made == 2);  // forward and backward
  check_same_bits(computed({.attention = AttentionBy::kCudnn}), first);
  CHECK(emulation::cudnn_plans_made() - before == made);
}

TEST_CASE("the environment says how much memory a call of cuDNN may take") {
  CHECK(most_cudnn_workspace({}) == kMostCudnnWorkspace);
  CHECK(most_cudnn_workspace({{"GXP_CUDNN_SLICE_MIB", "48"}}) == size_t{48} << 20);
  for (const char* wrong : {"0", "-1", "many", "48 MiB", "99999999999999999999"})
    CHECK_THROWS_WITH(most_cudnn_workspace({{"GXP_CUDNN_SLICE_MIB", wrong}}),
                      Catch::Contains("GXP_CUDNN_SLICE_MIB") && Catch::Contains("MiB"));
}

TEST_CASE("where cuDNN cannot compute attention, gxp's kernels do, or the run says why not") {
  struct Row {
    CudnnBehaviour behaviour;
    size_t head_size;
    std::string reason;
    AttentionScores scores = {};
    Indices document_begin = {};
  };
  const Row row = GENERATE(
      from_range(std::vector<Row>{{{.is_missing = true}, 64, "no such file"},
                                  {{.fails_to_start = true}, 64, "start cuDNN 9.19.0"},
                                  {{.refuses = true}, 64, "no engine"},
                                  {{.is_ordered = false}, 64, "the order of its sums is not fixed"},
                                  {{.extra_workspace = size_t{1} << 30}, 64, "bytes of workspace"},
                                  {{}, 20, "not a multiple of 8"},
                                  {{}, 64, "no sliding window", {.window = 64}},
                                  {{}, 64, "no cap of scores", {.cap = 5}},
                                  {{}, 64, "one document in a row", {}, Indices(3 * 65)}}));
  CAPTURE(row.reason);
  const auto computed_by = [&](AttentionBy by) {
    return computed({.attention = by}, row.head_size, row.scores, row.document_begin);
  };
  const GroupedRun own = computed_by(AttentionBy::kOwn);
  const Behaving behaving(row.behaviour);
  CHECK_THROWS_WITH(computed_by(AttentionBy::kCudnn),
                    Catch::Contains(row.reason) && Catch::Contains("train.attention"));
  const GroupedRun run = computed_by(AttentionBy::kAuto);
  // Where backward alone is refused, what it reads of forward is cuDNN's.
  if (row.behaviour.extra_workspace == 0) check_same_bits(run, own);
  const double rounding = 0x1p-8 / double(std::numeric_limits<float>::epsilon());
  for (size_t i = 0; i < 3; ++i)
    CHECK(distance_in_eps(run.gradients()[i], oracle::to_values(own.gradients()[i]), 1) <
          2 * rounding);
}

TEST_CASE("a GPU's operations say whose attention is theirs") {
  const auto description = [] {
    return make_cuda_test_ops({.attention = AttentionBy::kAuto}).ops->description();
  };
  CHECK_THAT(description(), Catch::EndsWith("attention by cuDNN 9.19.0"));
  const Behaving behaving({.is_missing = true});
  CHECK_THAT(description(), Catch::Contains("attention by gxp, not cuDNN: load cuDNN"));
}

}  // namespace
}  // namespace gxp
