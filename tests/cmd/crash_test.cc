// Saves and conversions that are killed at any moment.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {

using Clock = std::chrono::steady_clock;

void kill_after(const Arguments& arguments, std::chrono::microseconds delay) {
  Process process(gxp_argv(arguments));
  ::usleep(useconds_t(delay.count()));
  process.signal(SIGKILL);
  process.end();
}

bool has_checkpoint(const std::string& directory) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none))
    if (entry.path().filename().string().starts_with("step-")) return true;
  return false;
}

// How long a run takes to its first complete checkpoint, after which it is killed.
std::chrono::microseconds kill_after_checkpoint(const Arguments& arguments,
                                                const std::string& directory) {
  const auto begin = Clock::now();
  Process process(gxp_argv(arguments));
  REQUIRE(poll_until([&] { return has_checkpoint(directory); }));
  process.signal(SIGKILL);
  process.end();
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
}

// One run that is killed and resumed again and again while it saves after each step. Half of the
// kills meet it as it starts and resumes, half as it trains and saves, on a busy machine too.
void kill_training(int rounds) {
  const GoldenRun run;
  std::mt19937 random(7);
  std::chrono::microseconds start{};
  int64_t newest = 0;
  for (int round = 0; round < rounds; ++round) {
    Arguments arguments = run.train({"--set", "train.steps=1000000", "--set", "checkpoint.every=1",
                                     "--set", fmt::format("checkpoint.async={}", round % 2 == 1)});
    if (round > 0) arguments.emplace_back("--resume");
    if (round == 0)
      start = kill_after_checkpoint(arguments, run.path("run/ckpt"));
    else
      kill_after(arguments, std::chrono::microseconds(random() % (2 * start.count())));
    const Outcome verified =
        run_gxp({"convert-ckpt", run.path("run/ckpt"), "--verify", "--format", "json"});
    CAPTURE(round, newest, verified.err);
    REQUIRE(verified.code == 0);
    const int64_t step = nlohmann::json::parse(verified.out).at("step");
    CHECK(step >= newest);
    newest = step;
  }
}

std::string inspect(const std::string& path) {
  const Outcome outcome = run_gxp({"convert-ckpt", path, "--inspect", "--hash", "--verify"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.out;
}

// Conversions that replace one checkpoint by another.
void kill_conversion(int rounds, const std::string& format) {
  const TemporaryDirectory dir;
  const Arguments models = {GXP_TEST_DATA "/ckpt/hf_gpt2", GXP_TEST_DATA "/ckpt/hf_llama_tied_gqa"};
  const auto convert = [&](int model) {
    return Arguments{"convert-ckpt", models[size_t(model)], dir / "out", "--to", format, "--force"};
  };
  std::vector<std::string> whole;
  const auto begin = Clock::now();
  for (const int model : {0, 1}) {
    REQUIRE(run_gxp(convert(model)).code == 0);
    whole.push_back(inspect(dir / "out"));
  }
  const auto longest = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  std::mt19937 random(11);
  for (int round = 0; round < rounds; ++round) {
    kill_after(convert(round % 2), std::chrono::microseconds(random() % longest.count() / 2));
    const std::string found = inspect(dir / "out");
    CHECK((found == whole[0] || found == whole[1]));
  }
  REQUIRE(run_gxp(convert(0)).code == 0);
  CHECK(inspect(dir / "out") == whole[0]);
}

// A conversion that is killed and resumed again and again.
void kill_resumed_conversion(int rounds, const std::string& format) {
  const TemporaryDirectory dir;
  Arguments convert = {"convert-ckpt",
                       GXP_TEST_DATA "/ckpt/hf_gpt2",
                       dir / "whole",
                       "--to",
                       format,
                       "--shards",
                       "7"};
  const auto begin = Clock::now();
  REQUIRE(run_gxp(convert).code == 0);
  const auto longest = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  convert[2] = dir / "out";
  convert.emplace_back("--resume");
  std::mt19937 random(13);
  for (int round = 0; round < rounds; ++round) {
    kill_after(convert, std::chrono::microseconds(random() % longest.count()));
    if (round % 3 != 2) continue;
    if (!std::filesystem::exists(dir / "out")) REQUIRE(run_gxp(convert).code == 0);
    CHECK(inspect(dir / "out") == inspect(dir / "whole"));
    std::filesystem::remove_all(dir / "out");
  }
}

}  // namespace

TEST_CASE("a run that is killed at any moment goes on from its last complete checkpoint", "[cmd]") {
  kill_training(6);
}

TEST_CASE("a conversion that is killed at any moment leaves what was there, or its whole result",
          "[cmd]") {
  kill_conversion(15, GENERATE("gxp", "huggingface"));
}

TEST_CASE("a conversion that is killed and resumed has the whole result", "[cmd]") {
  kill_resumed_conversion(9, GENERATE("gxp", "safetensors"));
}

TEST_CASE("two hundred kills of a run that saves, and of a conversion", "[cmd][.long]") {
  kill_training(200);
  kill_conversion(200, GENERATE("gxp", "huggingface"));
  kill_resumed_conversion(198, GENERATE("gxp", "safetensors"));
}

}  // namespace gxp
