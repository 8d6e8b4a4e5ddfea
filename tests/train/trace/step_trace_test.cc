// train.trace_steps.
#include "lib/train/trace/step_trace.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lib/base/json/json.h"
#include "lib/base/text_file.h"
#include "lib/config/print.h"
#include "lib/train/run.h"
#include "tests/catch.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

std::vector<RunSummary> run_traced(const std::string& dir, const Settings& sets) {
  const RunConfig config =
      golden_config("gpt2-accum", 2,
                    Settings{"train.steps=4", "parallel.bucket_bytes=16KiB", "train.valid_every=0",
                             "checkpoint.every=1", "checkpoint.dir=" + dir + "/saved"} +
                        sets);
  return run_ranks(2, [&](Communicator& c) {
    Backend backend = make_backend(config.train, 2);
    RunOptions options;
    options.settings = flatten(config);
    return run_training(config, c, backend, options);
  });
}

struct TracedSlice {
  int64_t begin = 0, end = 0;  // ns
  int rank = 0, thread = 0;
  std::string name, category;
  Json facts;
};

// Slices, in the order of their begins; of those with one begin the longest first.
std::vector<TracedSlice> slices_of(const Json& trace) {
  std::vector<TracedSlice> events;
  for (const Json& each : trace["traceEvents"]) {
    if (each["ph"] != "X") continue;
    const auto ns = [&](const char* key) { return std::llround(double(each[key]) * 1e3); };
    events.push_back({ns("ts"), ns("ts") + ns("dur"), each["pid"], each["tid"], each["name"],
                      each["cat"], each["args"]});
  }
  std::ranges::sort(events, {}, [](const TracedSlice& e) { return std::pair(e.begin, -e.end); });
  return events;
}

// Of one rank and thread: each lies within those that have not ended when it begins.
void check_nesting(const std::vector<TracedSlice>& events) {
  std::vector<int64_t> ends;
  for (const TracedSlice& event : events) {
    while (!ends.empty() && ends.back() <= event.begin) ends.pop_back();
    CAPTURE(event.name, event.begin);
    if (!ends.empty()) CHECK(event.end <= ends.back());
    ends.push_back(event.end);
  }
}

const TracedSlice& step_of(const std::vector<TracedSlice>& events, const TracedSlice& of) {
  return *std::ranges::find_if(events, [&](const TracedSlice& event) {
    return event.name == "step" && event.rank == of.rank && event.facts["step"] == of.facts["step"];
  });
}

}  // namespace

TEST_CASE("a trace has the steps' operations on all ranks, on one clock", "[train][trace]") {
  const TemporaryDirectory dir;
  const std::vector<RunSummary> plain = run_traced(dir / "plain", {});
  const std::vector<RunSummary> traced = run_traced(dir.path(), {"train.trace_steps=2-3"});
  CHECK(traced[0].loss == plain[0].loss);
  const Json trace = parse_json(read_text_file(dir / "saved/trace.json", 1 << 24), "trace.json");
  const std::vector<TracedSlice> events = slices_of(trace);

  std::map<std::pair<int, int>, std::vector<TracedSlice>> by_thread;
  std::map<std::string, int> count;  // on rank 1
  std::map<std::string, int64_t> bytes;
  for (const TracedSlice& event : events) {
    by_thread[{event.rank, event.thread}].push_back(event);
    if (event.rank == 1) ++count[event.category + " " + event.name];
    if (event.rank == 1 && event.name.starts_with("reduce-gradients"))
      bytes[event.category] += int64_t(event.facts["bytes"]);
    if (event.category == "run" && event.name != "data") continue;
    const TracedSlice& step = step_of(events, event);
    CAPTURE(event.name);
    CHECK(event.begin >= step.begin);
    CHECK(event.end <= step.end + 1000);  // lanes' times are rounded
  }
  for (const auto& [thread, own] : by_thread) check_nesting(own);
  CHECK(by_thread.size() == 6);  // the run, compute and comm
  CHECK(count["run step"] == 2);
  CHECK(count["run save"] == 2);
  CHECK(count["communication reduce-gradients bucket 1"] == 2);
  CHECK(count["forward forward unit 0 (micro-batch 0)"] == 2);
  CHECK(bytes["communication"] == int64_t(2 * traced[0].parameters * sizeof(float)));
}

TEST_CASE("a collective ends on no rank before it begins on another", "[train][trace]") {
  const TemporaryDirectory dir;
  run_traced(dir.path(), {"train.trace_steps=1-4"});
  const Json trace = parse_json(read_text_file(dir / "saved/trace.json", 1 << 24), "trace.json");
  const Json& clock = trace["metadata"]["ranks"][1];
  const int64_t error = clock["error_ns"];
  CHECK(error > 0);
  // The ranks are threads: they have one clock.
  CHECK(std::abs(int64_t(clock["offset_ns"])) <= error);
  std::map<std::pair<std::string, int64_t>, std::vector<TracedSlice>> collectives;
  for (const TracedSlice& event : slices_of(trace))
    if (event.name.starts_with("reduce-"))
      collectives[{event.name, event.facts["step"]}].push_back(event);
  CHECK(collectives.size() > 8);
  for (const auto& [name, ranks] : collectives) {
    CAPTURE(name);
    REQUIRE(ranks.size() == 2);
    CHECK(ranks[0].end + error >= ranks[1].begin);
  }
}

TEST_CASE("a trace that cannot be written costs no training", "[train][trace]") {
  const TemporaryDirectory dir;
  fs::create_directories(dir / "saved/trace.json.partial");
  const std::vector<RunSummary> ranks = run_traced(dir.path(), {"train.trace_steps=4-4"});
  CHECK(ranks[0].steps == 4);
  CHECK(ranks[0].metrics_error.starts_with("write the trace"));
  CHECK(ranks[1].metrics_error.empty());
}

TEST_CASE("a clock that drifts is followed between two measurements", "[train][trace]") {
  const ClockOffset first{.at_ns = 1000, .ns = 500}, last{.at_ns = 2000, .ns = 600};
  CHECK(by_rank_zero(1000, first, last) == 1500);
  CHECK(by_rank_zero(1500, first, last) == 2050);
  CHECK(by_rank_zero(2000, first, last) == 2600);
}

}  // namespace gxp
