// `gxp train` as its users run it: launcher, ranks, files.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/ckpt/format.h"
#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {

using nlohmann::json;

// As tests/train/golden_test.cc: ten times the distance of PyTorch's float32 run from float64.
constexpr double kLossTolerance = 7e-6;
constexpr double kNormTolerance = 2e-6;
constexpr double kTensorTolerance = 7e-6;

std::vector<float> values_of(const NamedTensor& tensor) {
  std::vector<float> values(tensor.info.count());
  tensor.read(0, memory_of(values));
  return values;
}

// Relative L2 distance. The key part of an attention bias is noise in any float: left out.
double distance(const NamedTensor& got, const NamedTensor& want) {
  const std::vector<float> a = values_of(got), b = values_of(want);
  const bool attention_bias = want.info.name.ends_with("c_attn.bias");
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    if (attention_bias && i >= b.size() / 3 && i < 2 * b.size() / 3) continue;
    difference += std::pow(double(a[i]) - b[i], 2);
    norm += std::pow(double(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

void check_weights(const GoldenRun& run) {
  run.weights();
  const NamedTensors got = read_weights(run.path("weights.safetensors"));
  const NamedTensors want = read_weights(run.golden("final.safetensors"));
  CHECK(got.tensors.size() == want.tensors.size());
  for (const NamedTensor& tensor : want.tensors) {
    CAPTURE(tensor.info.name);
    const NamedTensor* found = find_tensor(got, tensor.info.name);
    REQUIRE(found != nullptr);
    CHECK(distance(*found, tensor) < kTensorTolerance);
  }
}

void check_line(const json& line, const json& golden, int nproc) {
  CAPTURE(line.dump());
  CHECK(line["step"] == golden["step"]);
  CHECK(std::fabs(line["loss"].get<double>() - golden["loss"].get<double>()) < kLossTolerance);
  CHECK(line["grad_norm"].get<double>() ==
        Approx(golden["grad_norm"].get<double>()).epsilon(kNormTolerance));
  CHECK(line["lr"].get<double>() == Approx(golden["lr"].get<double>()).epsilon(1e-12));
  CHECK((line["wire_bytes"].get<int64_t>() > 0) == (nproc > 1));
  for (const char* key : {"tokens", "tokens_per_s", "step_ms", "peak_bytes"}) {
    CAPTURE(key);
    CHECK(line[key].get<double>() > 0);
  }
  CHECK(line["mfu"].is_null());  // a CPU has no rate to be a share of
  CHECK(line["comm_ms"].get<double>() >= 0);
  CHECK(line["peak_bytes_by_kind"]["parameters"].get<int64_t>() > 0);
}

// The weights after `more` arguments, of a run of its own.
std::string weights_after(const Arguments& more) {
  const GoldenRun run;
  const Outcome outcome = run.run(more);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return run.weights();
}

}  // namespace

TEST_CASE("gxp train writes the metrics and the weights of the golden traces", "[cmd]") {
  const auto [folder, nproc, transport] =
      GENERATE(table<std::string, int, std::string>({{"gpt2-tiny", 1, "auto"},
                                                     {"gpt2-tiny", 2, "shm"},
                                                     {"gpt2-tiny", 4, "tcp"},
                                                     {"gpt2-accum", 2, "tcp"},
                                                     {"gpt2-accum", 4, "shm"},
                                                     {"llama-tiny", 1, "auto"},
                                                     {"llama-tiny", 2, "tcp"},
                                                     {"llama-tiny", 4, "shm"}}));
  CAPTURE(folder, nproc, transport);
  const GoldenRun run(folder, 4 / nproc);
  const Outcome outcome =
      run.run({"--nproc", std::to_string(nproc), "--set", "comm.transport=" + transport});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(contains(outcome.err, ", all-reduce ") == (nproc > 1));
  const json trace = json::parse(read_file(run.golden("trace.json")))["float64"];
  const std::vector<json> lines = run.metrics();
  REQUIRE(lines.size() == trace.size());
  for (size_t s = 0; s < lines.size(); ++s) check_line(lines[s], trace[s], nproc);
  CHECK(read_file(run.path("run/ckpt/metrics.jsonl")) == read_file(run.path("metrics.jsonl")));
  check_weights(run);
}

TEST_CASE("transports, buckets and segments do not change a bit of the weights", "[cmd]") {
  const std::string nproc = GENERATE("2", "4");
  CAPTURE(nproc);
  const std::string plain = weights_after({"--nproc", nproc, "--set", "comm.transport=shm"});
  for (const std::string change :
       {"comm.transport=shm", "comm.transport=tcp", "parallel.bucket_bytes=1",
        "parallel.bucket_bytes=20000", "comm.segment_bytes=512", "train.threads=2"}) {
    CAPTURE(change);
    CHECK(weights_after({"--nproc", nproc, "--set", change}) == plain);
  }
}

TEST_CASE("a run that a signal stops saves, and resumes to the same bits", "[cmd]") {
  const auto [nproc, signal] =
      GENERATE(table<std::string, int>({{"2", SIGTERM}, {"1", SIGINT}, {"4", SIGUSR1}}));
  CAPTURE(nproc, signal);
  const Arguments arguments = {"--nproc", nproc, "--set", "train.steps=600"};
  const std::string whole = weights_after(arguments);
  const GoldenRun run;
  Process process(gxp_argv(run.train(arguments)));
  REQUIRE(poll_until([&] { return run.metrics().size() >= 3; }));
  process.signal(signal);
  const Outcome stopped = process.end();
  CAPTURE(stopped.err);
  CHECK(stopped.code == 128 + signal);
  CHECK(stopped.errors().empty());
  const size_t steps = run.metrics().size();
  REQUIRE(steps < 600);
  CHECK(stopped.err.find(fmt::format("step-{:08}\n", steps)) != std::string::npos);

  Arguments again = arguments;
  again.push_back("--resume");
  CHECK(run.run(again).code == 0);
  CHECK(run.weights() == whole);
  const std::vector<json> lines = run.metrics();
  REQUIRE(lines.size() == 600);
  for (size_t s = 0; s < lines.size(); ++s) CHECK(lines[s]["step"] == s + 1);
}

TEST_CASE("two ranks go on as one or three with the same data", "[cmd]") {
  const int resumed = GENERATE(1, 3);
  CAPTURE(resumed);
  const auto arguments = [](int nproc, int steps) {
    return Arguments{"--nproc", std::to_string(nproc),
                     "--set",   fmt::format("train.micro_batch={}", 6 / nproc),
                     "--set",   fmt::format("train.steps={}", steps)};
  };
  const GoldenRun whole, run;
  REQUIRE(whole.run(arguments(2, 12)).code == 0);
  REQUIRE(run.run(arguments(2, 5)).code == 0);
  Arguments again = arguments(resumed, 12);
  again.push_back("--resume");
  const Outcome outcome = run.run(again);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const std::vector<json> expected = whole.metrics(), lines = run.metrics();
  REQUIRE(lines.size() == 12);
  for (size_t s = 0; s < 12; ++s) {
    CHECK(lines[s]["loss"].get<double>() ==
          Approx(expected[s]["loss"].get<double>()).epsilon(1e-6));
    CHECK(lines[s]["tokens"] == expected[s]["tokens"]);
  }
}

TEST_CASE("train --time-by-class shows where a step's time goes, and keeps nothing", "[cmd]") {
  const std::string nproc = GENERATE("1", "2");
  const GoldenRun run;
  const Arguments arguments = {"train",
                               run.path("run.toml"),
                               "--time-by-class",
                               "--nproc",
                               nproc,
                               "--format",
                               "json",
                               "--predicted-on",
                               "h200",
                               "--set",
                               "train.precision=bf16",
                               "--set",
                               "parallel.strategy=zero2",
                               "--set",
                               "checkpoint.dir=" + run.path("checkpoints")};
  const Outcome outcome = run_gxp(arguments);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const json report = json::parse(outcome.out);
  double sum = 0, predicted = 0;
  for (const json& row : report["classes"]) {
    sum += row["milliseconds"].get<double>();
    CHECK(row["milliseconds"].get<double>() >= 0);
    if (row["predicted_milliseconds"].is_number())
      predicted += row["predicted_milliseconds"].get<double>();
  }
  CHECK(sum == Approx(report["milliseconds"].get<double>()));
  CHECK(predicted == Approx(report["predicted_milliseconds"].get<double>()));
  CHECK(report["predicted_on"] == "h200");
  CHECK(report["tokens_per_second"].get<double>() > 0);
  CHECK(report.contains("collectives_milliseconds") == (nproc == "2"));
  CHECK_FALSE(std::filesystem::exists(run.path("checkpoints")));
}

TEST_CASE(
    "train --time-by-class goes with no option of a whole run, nor with what is not predicted",
    "[cmd]") {
  const GoldenRun run;
  CHECK(run.run({"--time-by-class"}).code == 2);  // has --metrics
  const Arguments arguments = {"train", run.path("run.toml"), "--time-by-class"};
  const auto refused = [&](const Arguments& more) {
    const Outcome outcome = run_gxp(arguments + more);
    CHECK(outcome.code == 2);
    return outcome.err;
  };
  CHECK(refused({"--predicted-on", "h2"}).find("h200") != std::string::npos);
  CHECK(refused({"--predicted-on", "h200"}).find("set train.precision=bf16") != std::string::npos);
  CHECK(refused({"--resume"}).find("--resume") != std::string::npos);
}

TEST_CASE("stdout carries one JSON object, whatever the number of ranks", "[cmd]") {
  const std::string nproc = GENERATE("1", "2");
  const GoldenRun run;
  const Outcome outcome = run.run({"--nproc", nproc, "--format", "json"});
  REQUIRE(outcome.code == 0);
  const json report = json::parse(outcome.out);
  CAPTURE(outcome.out);
  CHECK(report["schema"] == "gxp.train/1");
  CHECK(outcome.out.find("\"world_size\": " + nproc) != std::string::npos);
}

}  // namespace gxp
