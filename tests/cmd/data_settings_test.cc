// Settings of [data] in runs as a user starts them.
#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {

using Arguments = std::vector<std::string>;

TEST_CASE("documents that are split off are validated on, and planned for", "[cmd]") {
  const GoldenRun run;
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += "{\"text\": \"0 1 2 3 4 5 6 7 8 9\"}\n";
  make_file(run.path("d.jsonl"), lines);
  Arguments sets;
  for (const std::string& set :
       {"data.train=" + run.path("d.jsonl"), std::string("data.tokenizer=byte"),
        std::string("data.cross_documents=true"), std::string("data.validation_split=0.25"),
        std::string("train.valid_batches=2"), std::string("train.micro_batch=2")})
    sets.insert(sets.end(), {"--set", set});
  Outcome outcome = run.run(sets);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(run.metrics().back()["valid_loss"].is_number());
  for (const char* more : {"--evaluate", "--resume"}) sets.emplace_back(more);
  Arguments evaluate = {"train", run.path("run.toml")};
  evaluate.insert(evaluate.end(), sets.begin(), sets.end());
  outcome = run_gxp(evaluate);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.out, "validation loss"));
}

}  // namespace
}  // namespace gxp
