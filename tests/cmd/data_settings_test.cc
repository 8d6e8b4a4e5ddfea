// Settings of [data] in runs as a user starts them.
#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {

TEST_CASE("documents that are split off are validated on, and planned for", "[cmd]") {
  const GoldenRun run;
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += "{\"text\": \"0 1 2 3 4 5 6 7 8 9\"}\n";
  make_file(run.path("d.jsonl"), lines);
  const Arguments sets = set_all({"data.train=" + run.path("d.jsonl"), "data.tokenizer=byte",
                                  "data.cross_documents=true", "data.validation_split=0.25",
                                  "train.valid_batches=2", "train.micro_batch=2"});
  Outcome outcome = run.run(sets);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(run.metrics().back()["valid_loss"].is_number());
  outcome = run_gxp(Arguments{"train", run.path("run.toml")} + sets +
                    Arguments{"--evaluate", "--resume"});
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.out, "validation loss"));
}

TEST_CASE("every command refuses what the files of the run do not need or cannot have", "[cmd]") {
  const GoldenRun run;
  make_file(run.path("d.jsonl"), "{\"text\": \"0 1 2 3 4 5 6 7 8 9 0 1 2 3\"}\n");
  const Arguments command =
      GENERATE(Arguments{"train"}, Arguments{"train", "--nproc", "2"},
               Arguments{"train", "--evaluate"}, Arguments{"train", "--show-data", "1"},
               Arguments{"memcalc"}, Arguments{"shard-plan", "--gflops", "1"});
  const auto [file, sets, words] = GENERATE(table<std::string, Arguments, Arguments>(
      {{"tokens.i32",
        {"data.field=text"},
        {"data.field \"text\"", "tokens.i32 is .i32 rows", "leave it out"}},
       {"d.jsonl",
        {"data.document_separator=;"},
        {"data.document_separator \";\"", "plain text", "leave it out"}},
       {"d.jsonl",
        {"train.attention=cudnn", "train.precision=bf16"},
        {"train.attention \"cudnn\"", "data.cross_documents = false", "auto or own"}}}));
  const std::string data = file == "d.jsonl" ? run.path(file) : run.golden(file);
  Arguments arguments =
      command + set_all({"data.train=" + data, "data.valid=" + data, "data.tokenizer=byte"}) +
      set_all(sets);
  arguments.insert(arguments.begin() + 1, run.path("run.toml"));
  const Outcome outcome = run_gxp(arguments);
  CAPTURE(arguments, outcome.err);
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  REQUIRE(outcome.errors().size() == 1);
  for (const std::string& word : words) CHECK(contains(outcome.errors()[0], word));
}

}  // namespace
}  // namespace gxp
