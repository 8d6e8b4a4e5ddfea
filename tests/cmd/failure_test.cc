// What a failed run leaves in failure/, and `gxp train --explain-failure`.
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kHidden = "nobody-is-told-this";

std::vector<std::string> three_ranks() {
  return {"--nproc", "3", "--set", "train.steps=1000000", "--set", "comm.timeout_s=2"};
}

json explain(const GoldenRun& run) {
  const Outcome outcome =
      run_gxp({"train", "--explain-failure", run.path("run/ckpt"), "--format", "json"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return json::parse(outcome.out);
}

// "lib/data/batch_loader.cc:12 in f"
bool is_line_in(const json& at, const std::string& folder) {
  if (!at.is_string() || !at.get<std::string>().starts_with(folder)) return false;
  const std::string text = at.get<std::string>();
  const size_t colon = text.find(".cc:");
  return colon != std::string::npos &&
         std::isdigit(static_cast<unsigned char>(text[colon + 4])) != 0;
}

std::string content_of(const std::string& directory) {
  std::string all;
  for (const auto& entry : fs::directory_iterator(directory)) all += read_file(entry.path());
  return all;
}

}  // namespace

TEST_CASE("the report of a rank whose reads hang names the line of the call", "[cmd]") {
  const GoldenRun run;
  const Surroundings hang{.environment = {{"LD_PRELOAD", GXP_HANGING_READS}, {"HANGING_RANK", "1"}},
                          .file_bytes = 0};
  CHECK(run.run(three_ranks(), hang).code >= 4);
  const json told = explain(run);
  CAPTURE(told.dump(1));
  CHECK((told["rank"] == 1 && told["reports"] == 3));
  CHECK(contains(told["reason"].get<std::string>(), "has not entered"));
  CHECK(is_line_in(told["stuck_at"], "lib/data/"));
  CHECK(told["ranks"][1]["activity"] == "data");
  CHECK(is_line_in(told["ranks"][0]["at"], "lib/"));
  CHECK(contains(told["ranks"][0]["operation"].get<std::string>(), "in all-reduce"));
  const auto reads = [](const json& thread) {
    return thread["rank"] == 1 && thread["thread"] == "gxp-loader" && thread["in"] == "pause" &&
           is_line_in(thread["at"], "lib/data/");
  };
  CHECK(std::ranges::any_of(told["threads"], reads));
}

TEST_CASE("a failure's reports hold no secrets, and do not hinder the next run", "[cmd]") {
  const GoldenRun run;
  const Surroundings secrets{.environment = {{"HF_TOKEN", kHidden},
                                             {"AWS_SECRET_ACCESS_KEY", kHidden},
                                             {"GXP_API_KEY", kHidden},
                                             {"NCCL_PASSWORD", kHidden},
                                             {"SOMETHING_ELSE", kHidden},
                                             {"OMP_PROC_BIND", "close"}},
                             .file_bytes = 0};
  Process launcher(gxp_argv(run.train(three_ranks())), secrets);
  REQUIRE(poll_until([&] { return run.metrics().size() >= 5; }));
  std::string secret;
  for (const pid_t process : processes_with(run.path("run.toml")))
    if (secret.empty()) secret = variable_of(process, "GXP_JOB_SECRET");
  REQUIRE(secret.size() >= 32);
  REQUIRE(signal_rank(run.path("run.toml"), 2, SIGSTOP));
  CHECK(launcher.end().code == 5);
  const std::string directory = run.path("run/ckpt/failure");
  const std::string all = content_of(directory);
  CHECK_FALSE((contains(all, kHidden) || contains(all, secret)));
  CHECK(contains(all, "OMP_PROC_BIND"));
  const json told = explain(run);
  CAPTURE(told.dump(1));
  CHECK((told["rank"] == 2 && told["reports"] == 2 && told["step"] >= 5 && told["loss"] > 0));
  CHECK(contains(told["reason"].get<std::string>(), "it does not respond"));
  CHECK(contains(told["remedy"].get<std::string>(), "stopped"));
  for (const json& rank : told["ranks"]) CHECK(is_line_in(rank["at"], "lib/"));
  // The next run finds its directory as it was, and keeps what was told.
  CHECK(run.run({"--overwrite"}).code == 0);
  CHECK_FALSE(fs::exists(directory));
  CHECK(explain(run)["rank"] == 2);
  CHECK(run.run({"--resume"}).code == 0);
}

TEST_CASE("a failure of one rank is explained by its own message", "[cmd]") {
  const GoldenRun run;
  CHECK(run.run({"--nproc", "2", "--set", "optim.lr=1e30", "--set", "optim.clip=0"}).code == 1);
  const json told = explain(run);
  CAPTURE(told.dump(1));
  CHECK(contains(told["reason"].get<std::string>(), "the loss is nan"));
  CHECK(told["step"] > 0);
}

TEST_CASE("where nothing has failed, there is nothing to explain", "[cmd]") {
  const GoldenRun run;
  for (const bool has_run : {false, true}) {
    if (has_run) REQUIRE(run.run().code == 0);
    CHECK_FALSE(fs::exists(run.path("run/ckpt/failure")));
    const Outcome outcome = run_gxp({"train", "--explain-failure", run.path("run/ckpt")});
    CHECK(outcome.code == 4);
    CHECK(contains(outcome.err, "give the checkpoint.dir of a run that has failed"));
  }
}

}  // namespace gxp
