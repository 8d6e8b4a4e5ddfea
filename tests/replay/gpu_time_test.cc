#include "lib/replay/gpu_time.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/replay/runs.h"

namespace gxp {
namespace {

RunPlan plan_of(std::vector<std::string> sets, const std::string& folder) {
  sets.insert(sets.end(), {"train.precision=bf16", "model.layers=3"});
  return plan_run(small_run(std::move(sets), folder), 1);
}

double sum_of(const StepClasses& step, double ClassTime::*member) {
  double sum = 0;
  for (const ClassTime& each : step.classes) sum += each.*member;
  return sum;
}

double flops_of(const RunPlan& plan) {
  double flops = 0;
  for (const Op& op : plan.step.program.ops) flops += flops_of(plan, op);
  return flops;
}

double seconds_of(const StepClasses& step, KernelClass of) {
  for (const ClassTime& each : step.classes)
    if (each.of == of) return each.seconds;
  return 0;
}

}  // namespace

TEST_CASE("the kernels' classes have the program's FLOPs and the predicted step's time",
          "[replay]") {
  const std::string folder = GENERATE("gpt2-accum", "llama-tiny");
  const std::vector<std::string> sets =
      GENERATE(values<std::vector<std::string>>({{},
                                                 {"train.recompute=selective"},
                                                 {"train.recompute=full"},
                                                 {"train.keep=norms"},
                                                 {"train.recompute=full", "train.keep=all"},
                                                 {"train.logits_rows=8", "train.grad_accum=2"},
                                                 {"train.frozen=[\"*mlp*\"]"},
                                                 {"optim.name=sgd"}}));
  const RunPlan plan = plan_of(sets, folder);
  CAPTURE(folder, sets);
  const Gpu& gpu = find_gpu("h200");
  const StepClasses step = time_by_class(plan, gpu);
  CHECK(sum_of(step, &ClassTime::flops) == Approx(flops_of(plan)).epsilon(1e-9));
  const StepTime time = time_step(plan, {}, on_gpu(gpu));
  CHECK(step.seconds() == Approx(time.seconds).epsilon(1e-9));
  CHECK(time.compute_seconds == Approx(time.seconds).epsilon(1e-9));
  CHECK(sum_of(step, &ClassTime::ideal_seconds) < step.seconds());
}

TEST_CASE("a class takes the time of what it has more of", "[replay]") {
  using enum KernelClass;
  const Gpu& gpu = find_gpu("h200");
  const StepClasses none = time_by_class(plan_of({}, "gpt2-accum"), gpu);
  const StepClasses full = time_by_class(plan_of({"train.recompute=full"}, "gpt2-accum"), gpu);
  CHECK(seconds_of(none, kRecomputation) == 0);
  CHECK(seconds_of(full, kRecomputation) > 0);
  CHECK(seconds_of(full, kForwardProducts) == Approx(seconds_of(none, kForwardProducts)));
  // A bias's gradient takes a pass of its own where its weight has none.
  const RunPlan biases = plan_of({"train.frozen=[\"h.*.weight\"]"}, "gpt2-accum");
  const StepClasses frozen = time_by_class(biases, gpu);
  CHECK(seconds_of(none, kBiasGradients) == 0);
  CHECK(seconds_of(frozen, kBiasGradients) > 0);
  CHECK(sum_of(frozen, &ClassTime::flops) == Approx(flops_of(biases)).epsilon(1e-9));
  // The optimizer reads four floats a parameter, writes three, and rounds one to 16 bits.
  const RunPlan plan = plan_of({}, "gpt2-accum");
  for (const ClassTime& each : none.classes) {
    if (each.of == kUpdate)
      CHECK(each.bytes == Approx(34.0 * double(plan.layout.count)).epsilon(0.01));
  }
}

TEST_CASE("attention's backward pass is faster in any order, but for gxp's own", "[replay]") {
  using enum KernelClass;
  const Gpu& gpu = find_gpu(GENERATE("a100-80gb", "h100", "gb200"));
  const auto seconds = [&](const Settings& sets, RowDocuments documents = RowDocuments::kNotApart) {
    const Settings long_rows = {"model.context=4096", "data.sequence=4096", "train.precision=bf16"};
    RunConfig run = small_run(sets + long_rows, "gpt2-accum");
    run.data.documents = documents;
    return seconds_of(time_by_class(plan_run(run, 1), gpu), kAttentionBackward);
  };
  const double ordered = seconds({});
  CHECK(seconds({"train.deterministic=off"}) < ordered);
  CHECK(seconds({"train.deterministic=off", "train.attention=own"}) == ordered);
  CHECK(seconds({"train.deterministic=off"}, RowDocuments::kApart) == ordered);
}

TEST_CASE("what is kept is not made again", "[replay]") {
  using enum KernelClass;
  const Gpu& gpu = find_gpu("h200");
  const std::string folder = GENERATE("gpt2-accum", "llama-tiny");
  const auto step_of = [&](const std::string& keep) {
    return time_by_class(plan_of({"train.keep=" + keep}, folder), gpu);
  };
  const StepClasses none = step_of("none"), norms = step_of("norms"), all = step_of("all");
  CHECK(seconds_of(none, kNormsAgain) == seconds_of(none, kNorms));
  CHECK(seconds_of(norms, kNormsAgain) == 0);
  CHECK(seconds_of(norms, kActivations) == seconds_of(none, kActivations));
  CHECK(seconds_of(all, kNormsAgain) == 0);
  CHECK(seconds_of(all, kActivations) < seconds_of(none, kActivations));
}

TEST_CASE("kernels of f32 are not predicted, nor products in 8 bits whose rate is not known",
          "[replay]") {
  const Gpu& h100 = find_gpu("h100");
  CHECK_THROWS_WITH(check_predictable(plan_run(small_run({}), 1), h100),
                    Catch::Contains("set train.precision=bf16"));
  const RunPlan float8 = plan_of({"train.matmul=fp8", "model.init=normal"}, "gpt2-accum");
  CHECK(can_predict(float8, h100));
  CHECK_THROWS_WITH(check_predictable(float8, find_gpu("b200")),
                    Catch::Contains("b200") && Catch::Contains("set train.matmul=precision"));
}

TEST_CASE("products in 8 bits read half as much, and passes before them make the codes",
          "[replay]") {
  const auto [folder, widths] = GENERATE(table<std::string, Settings>(
      {{"gpt2-accum", {}}, {"llama-tiny", {"model.head_size=128", "model.mlp_hidden=8192"}}}));
  const Settings large = {"model.init=normal",   "model.hidden=4096",  "model.layers=2",
                          "model.heads=32",      "model.context=2048", "data.sequence=2048",
                          "train.micro_batch=4", "train.device=cuda"};
  const auto step_of = [&, &folder = folder, &widths = widths](const Settings& sets) {
    return time_by_class(plan_of(large + widths + sets, folder), find_gpu("h100"));
  };
  const StepClasses halves = step_of({}), again = step_of({"train.matmul=fp8"}),
                    kept = step_of({"train.matmul=fp8", "train.fp8_weights=kept"});
  using enum KernelClass;
  for (const KernelClass of : {kForwardProducts, kInputProducts, kWeightProducts}) {
    CHECK(seconds_of(again, of) < seconds_of(halves, of));
    CHECK(seconds_of(again, of) > seconds_of(halves, of) / 2);
  }
  CHECK(seconds_of(kept, kInputProducts) < seconds_of(again, kInputProducts));
  CHECK(seconds_of(kept, kWeightProducts) == seconds_of(again, kWeightProducts));
  CHECK(seconds_of(again, kHeadProducts) == seconds_of(halves, kHeadProducts));
}

TEST_CASE("a GPU works through the logits in pieces of whole tiles and about one size",
          "[replay]") {
  const int rows = GENERATE(1, 5, 6, 32);
  const RunConfig config =
      small_run({"train.device=cuda", "model.vocab_size=50304", "model.context=1024",
                 "data.sequence=0", fmt::format("train.micro_batch={}", rows)});
  const Architecture architecture = run_architecture(config);
  const auto& scratch = architecture.units.back().backward_scratch;
  const size_t piece = std::ranges::find(scratch, "logits", &ActivationSpec::name)->most_tokens;
  const size_t tokens = size_t(rows) * 1024;
  const size_t pieces = (tokens + piece - 1) / piece;
  CAPTURE(piece, pieces);
  CHECK(piece % 128 == 0);
  CHECK(pieces == (tokens * 50304 + (size_t{1} << 28) - 1) / (size_t{1} << 28));
  const size_t last = tokens - (pieces - 1) * piece;
  CHECK(piece - last < 128 * pieces);
}

}  // namespace gxp
