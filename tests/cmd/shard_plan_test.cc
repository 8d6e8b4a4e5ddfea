// gxp shard-plan, and gxp memcalc of a run file: what they promise is what a run counts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {
using Json = nlohmann::json;

Json json_of(Arguments arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  const Outcome outcome = run_gxp(arguments);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return Json::parse(outcome.out);
}

// The run file, with settings that a plan and its run share.
Arguments with(const GoldenRun& run, const std::string& strategy, Arguments more) {
  return Arguments{run.path("run.toml"), "--set", "parallel.strategy=" + strategy, "--set",
                   "comm.profile=builtin"} +
         more;
}

Json plan(const GoldenRun& run, const std::string& strategy, Arguments more) {
  Arguments arguments = with(run, strategy, std::move(more));
  arguments.insert(arguments.begin(), "shard-plan");
  arguments.insert(arguments.end(), {"--gflops", "50"});
  return json_of(arguments);
}

TEST_CASE("a run sends the bytes and takes the memory that its plan says", "[cmd]") {
  const std::string strategy = GENERATE("ddp", "zero2", "zero3", "hybrid_shard");
  const std::string transport = GENERATE("shm", "tcp");
  CAPTURE(strategy, transport);
  const GoldenRun run;
  const Arguments ranks = {"--nproc", "3", "--set", "comm.transport=" + transport};
  Arguments train = with(run, strategy, ranks);
  train.insert(train.begin(), "train");
  train.insert(train.end(), {"--metrics", run.path("metrics.jsonl")});
  REQUIRE(run_gxp(train).code == 0);
  const Json step = run.metrics().back();
  const Json planned = plan(run, strategy, ranks);
  CHECK(planned["wire_bytes_per_rank_per_step"] == step["wire_bytes"]);
  CHECK(planned["peak_bytes"] == step["peak_bytes"]);
}

TEST_CASE("a run that makes activations again takes the memory that its plan says", "[cmd]") {
  const GoldenRun run;
  const auto settings = [](const std::string& recompute) {
    return Arguments{"--nproc", "2",
                     "--set",   "model.layers=3",
                     "--set",   "model.init=normal",
                     "--set",   "train.recompute=" + recompute};
  };
  Arguments train = with(run, "zero3", settings("full"));
  train.insert(train.begin(), "train");
  train.insert(train.end(), {"--metrics", run.path("metrics.jsonl")});
  REQUIRE(run_gxp(train).code == 0);
  Arguments shown = settings("full");
  shown.emplace_back("--program");
  const Json planned = plan(run, "zero3", shown);
  CHECK(planned["peak_bytes"] == run.metrics().back()["peak_bytes"]);
  CHECK(planned["peak_bytes"] < plan(run, "zero3", settings("none"))["peak_bytes"]);
  const auto recomputes = std::ranges::count_if(planned["program"], [](const Json& op) {
    return op["operation"].get<std::string>().starts_with("recompute unit");
  });
  CHECK(recomputes > 0);
}

// Digits: the golden model has tokens of up to 60.
std::string documents_in(const std::string& before, const std::string& after) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text +=
        before + fmt::format("{}", fmt::join(std::vector<int>(size_t(i % 7 + 2), i), " ")) + after;
  return text;
}

TEST_CASE("plans count the documents that a run's files hold", "[cmd]") {
  const auto [name, content, sets, documents] =
      GENERATE(table<std::string, std::string, Arguments, std::string>(
          {{"d.jsonl", documents_in("{\"text\": \"", "\"}\n"), {}, "kept apart"},
           {"d.jsonl",
            documents_in("{\"text\": \"", "\"}\n"),
            {"data.validation_split=0.25", "train.valid_batches=1"},
            "kept apart"},
           {"d.jsonl",
            documents_in("{\"text\": \"", "\"}\n"),
            {"data.cross_documents=true"},
            "not kept apart"},
           {"d.txt", documents_in("", ";"), {"data.document_separator=;"}, "kept apart"},
           {"d.txt", documents_in("", " "), {}, "not kept apart"}}));
  const std::string strategy = GENERATE("ddp", "zero3");
  CAPTURE(name, sets, strategy);
  const GoldenRun run;
  make_file(run.path(name), content);
  const Arguments of = Arguments{"--nproc", "2"} +
                       set_all({"data.train=" + run.path(name), "data.tokenizer=byte"}) +
                       set_all(sets);
  const Json planned = plan(run, strategy, of);
  Arguments memory = with(run, strategy, of);
  memory.insert(memory.begin(), "memcalc");
  const Json counted = json_of(memory);
  Arguments train = with(run, strategy, of);
  train.insert(train.begin(), "train");
  train.insert(train.end(), {"--metrics", run.path("metrics.jsonl")});
  const Outcome outcome = run_gxp(train);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json step = run.metrics().back();
  CHECK(planned["peak_bytes"] == step["peak_bytes"]);
  CHECK(counted["results"][0]["peak_bytes"] == step["peak_bytes"]);
  CHECK(planned["documents"] == documents);
  CHECK(counted["documents"] == documents);
}

TEST_CASE("a limit of memory counts the documents that a run's files hold", "[cmd]") {
  const GoldenRun run;
  make_file(run.path("d.jsonl"), documents_in("{\"text\": \"", "\"}\n"));
  const auto of = [&](const std::string& file) {
    return Arguments{"--set", "data.train=" + run.path(file), "--set", "data.tokenizer=byte"};
  };
  const int64_t peak = plan(run, "ddp", of("d.jsonl"))["peak_bytes"];
  const Json unknown = plan(run, "ddp", of("nowhere.jsonl"));
  CHECK(unknown["documents"] == "unknown, counted as kept apart");
  CHECK(unknown["peak_bytes"] == peak);
  for (const int64_t less : {0, 1}) {
    Arguments train = with(run, "ddp", of("d.jsonl"));
    train.insert(train.begin(), "train");
    train.insert(train.end(), {"--set", fmt::format("train.device_memory_bytes={}", peak - less)});
    const Outcome outcome = run_gxp(train);
    CAPTURE(outcome.err);
    CHECK(outcome.code == (less == 0 ? 0 : 2));
    CHECK(contains(outcome.err, "train.device_memory_bytes") == (less == 1));
  }
}

TEST_CASE("memcalc of a run file tells its peak by kind, and what lives at each operation",
          "[cmd]") {
  const GoldenRun run;
  Arguments arguments = with(run, "zero3", {"--gpus", "1,2", "--explain"});
  arguments.insert(arguments.begin(), "memcalc");
  const Json report = json_of(arguments);
  REQUIRE(report["results"].size() == 2);
  const Json& row = report["results"][1];
  int64_t sum = 0;
  for (const char* kind :
       {"parameters", "gradients", "optimizer", "activations", "workspace", "communication"})
    sum += row[std::string(kind) + "_bytes"].get<int64_t>();
  CHECK(row["peak_bytes"] == sum);
  CHECK(row["peak_bytes"] == plan(run, "zero3", {"--nproc", "2"})["peak_bytes"]);
  CHECK(report["curve"].size() > 10);
  CHECK(report["phases"].size() == 4);
  int64_t explained = 0;
  for (const Json& term : report["terms"])
    explained += term["gpus"] == 2 ? term["bytes"].get<int64_t>() : 0;
  CHECK(explained == report["phases"][3]["total_bytes"]);
}

TEST_CASE("memcalc --solve finds the largest run that fits", "[cmd]") {
  const std::string what = GENERATE("batch", "seq", "layers");
  const GoldenRun run;
  const Json row = json_of({"memcalc", run.path("run.toml"), "--nproc", "2", "--solve", what,
                            "--limit", "20MiB"})["results"][0];
  CHECK(row["value"] > 1);
  CHECK(row["peak_bytes"] <= 20 << 20);
  CHECK(row["next_peak_bytes"] > 20 << 20);
}

TEST_CASE("shard-plan tells who owns what: every rank something, every tensor somebody", "[cmd]") {
  const GoldenRun run;
  const Json report = plan(run, "zero1", {"--nproc", "3", "--units"});
  int64_t parameters = 0;
  for (const Json& unit : report["units"]) {
    CHECK(unit["elements"] == 3 * unit["shard_elements"].get<int64_t>());
    CHECK(unit["elements"] == unit["parameters"].get<int64_t>() + unit["padding"].get<int64_t>());
    parameters += unit["parameters"].get<int64_t>();
  }
  CHECK(report["parameters"] == parameters);
  for (const Json& tensor : report["tensors"]) CHECK(tensor["ranks"] != "");
  CHECK(report["tensors"][0]["ranks"].get<std::string>().starts_with("0"));
}

TEST_CASE("shard-plan's program sends what its totals say", "[cmd]") {
  const GoldenRun run;
  const Json report = plan(run, "zero3", {"--nproc", "4", "--rank", "2", "--program"});
  int64_t sent = 0;
  for (const Json& op : report["program"]) {
    if (!op["wire_bytes"].is_null()) sent += op["wire_bytes"].get<int64_t>();
  }
  CHECK(sent == report["wire_bytes_per_rank_per_step"]);
  CHECK(sent == report["wire_bytes_of_ranks"][2]);
  int64_t by_kind = 0;
  for (const Json& row : report["wire"]) by_kind += row["bytes"].get<int64_t>();
  CHECK(by_kind == sent);
}

TEST_CASE("shard-plan compares all strategies", "[cmd]") {
  const GoldenRun run;
  const Json rows = plan(run, "ddp", {"--nproc", "4", "--compare"})["strategies"];
  const auto row = [&](const std::string& name) {
    return *std::find_if(rows.begin(), rows.end(),
                         [&](const Json& each) { return each["strategy"] == name; });
  };
  CHECK(row("ddp")["optimizer_bytes"] == 4 * row("zero1")["optimizer_bytes"].get<int64_t>());
  CHECK(row("zero3")["wire_bytes_per_rank_per_step"] >
        row("shard_grad_op")["wire_bytes_per_rank_per_step"]);
}

TEST_CASE("shard-plan --search finds what fits where the run itself does not", "[cmd]") {
  const GoldenRun run;
  const Json all = plan(run, "ddp", {"--nproc", "4", "--search"});
  REQUIRE(all["plans"].size() > 1);
  CHECK(all["tried"] > 100);
  const int64_t least = all["plans"][0]["peak_bytes"];
  CHECK(least < all["peak_bytes"]);
  for (const Json& row : all["plans"]) CHECK(row["peak_bytes"] >= least);
  const Json few = plan(run, "ddp", {"--nproc", "4", "--search", "--limit", std::to_string(least)});
  REQUIRE(few["plans"].size() == 1);
  CHECK(few["plans"][0] == all["plans"][0]);
  CHECK(all["plans"].back()["step_seconds"] <= all["step_seconds"]);
}

TEST_CASE("shard-plan --search tells what a codec would gain between hosts, and chooses none",
          "[cmd]") {
  const GoldenRun run;
  const auto search = [&](Arguments more) {
    more.insert(more.end(), {"--nproc", "2", "--search"});
    return plan(run, "ddp", more);
  };
  const Json hosts = search({"--nnodes", "2"});
  REQUIRE(hosts["codecs"].size() == 4);
  const Json& int8 = hosts["codecs"][2];
  CHECK(int8["codec"] == "int8");
  CHECK(int8["speedup"].get<double>() ==
        Approx(hosts["plans"].back()["step_seconds"].get<double>() /
               int8["step_seconds"].get<double>()));
  CHECK(hosts["plans"] == search({"--nnodes", "2"})["plans"]);
  CHECK_FALSE(search({}).contains("codecs"));
  CHECK_FALSE(search({"--nnodes", "2", "--set", "comm.codec=int8"}).contains("codecs"));
  CHECK_FALSE(search({"--nnodes", "2", "--set", "train.bad_step=skip"}).contains("codecs"));
}

TEST_CASE("shard-plan --search tells what a gather codec would gain where it gathers between hosts",
          "[cmd]") {
  const GoldenRun run;
  const auto search = [&](Arguments more) {
    more.insert(more.end(), {"--nproc", "1", "--nnodes", "2", "--search"});
    return plan(run, "ddp", more);
  };
  const Json least =
      search({"--limit", std::to_string(int64_t(search({})["plans"][0]["peak_bytes"]))});
  REQUIRE(least["plans"].size() == 1);
  CAPTURE(least["plans"]);
  REQUIRE(least["gather_codecs"].size() == 4);
  const Json& int8 = least["gather_codecs"][2];
  CHECK(int8["codec"] == "int8");
  CHECK(int8["between_hosts_bytes"] < least["gather_codecs"][0]["between_hosts_bytes"]);
  CHECK(int8["speedup"].get<double>() == Approx(least["plans"][0]["step_seconds"].get<double>() /
                                                int8["step_seconds"].get<double>()));
}

TEST_CASE("memcalc counts a codec's memory as shard-plan does", "[cmd]") {
  const GoldenRun run;
  const auto [strategy, setting] = GENERATE(table<std::string, std::string>(
      {{"ddp", "comm.codec=int8"}, {"zero3", "comm.gather_codec=int8"}}));
  const Arguments codec = {"--set", setting};
  Arguments hosts = codec;
  hosts.insert(hosts.end(), {"--nproc", "2", "--nnodes", "2"});
  const auto peak_of = [&, strategy = strategy](Arguments more) {
    Arguments arguments = with(run, strategy, std::move(more));
    arguments.insert(arguments.begin(), "memcalc");
    return json_of(arguments)["results"][0]["peak_bytes"].get<int64_t>();
  };
  Arguments all = codec;
  all.insert(all.end(), {"--gpus", "4", "--nnodes", "2"});
  CHECK(peak_of(all) == plan(run, strategy, hosts)["peak_bytes"]);
  CHECK(peak_of(all) > peak_of({"--gpus", "4", "--nnodes", "2"}));
  const Outcome odd = run_gxp({"memcalc", run.path("run.toml"), "--gpus", "3", "--nnodes", "2"});
  CHECK(odd.code == 2);
  CHECK(contains(odd.err,
                 "plan a run on 3 GPUs of 2 hosts: 2 does not divide 3; give --nnodes a divisor"));
}

TEST_CASE("shard-plan takes times from measured operations, which no other speed goes with",
          "[cmd]") {
  const GoldenRun run;
  const Json planned = json_of({"shard-plan", run.path("run.toml"), "--measure", "--nproc", "2"});
  CHECK(planned["step_seconds"] > 0);
  CHECK(planned["compute_seconds"] > 0);
  const Json again =  // measured with fewer blocks
      json_of({"shard-plan", run.path("run.toml"), "--measure", "--set", "model.layers=5", "--set",
               "train.recompute=full", "--set", "train.recompute_units=h.3", "--program"});
  for (const Json& op : again["program"]) {
    if (op["operation"].get<std::string>().starts_with("recompute"))
      CHECK(op["end_seconds"] > op["begin_seconds"]);
  }
  const Outcome both = run_gxp({"shard-plan", run.path("run.toml"), "--measure", "--gflops", "1"});
  CHECK(both.code == 2);
  CHECK(contains(both.err, "--measure"));
}

TEST_CASE("shard-plan --time-by-class sums kernels to the predicted step", "[cmd]") {
  const std::string nproc = GENERATE("1", "2");
  const GoldenRun run;
  Arguments arguments = with(
      run, "zero2", {"--set", "train.precision=bf16", "--nproc", nproc, "--time-by-class", "h200"});
  arguments.insert(arguments.begin(), "shard-plan");
  const Json planned = json_of(arguments);
  double sum = 0;
  double shares = 0;
  for (const Json& row : planned["classes"]) {
    sum += row["milliseconds"].get<double>() / 1e3;
    shares += row["share"].get<double>();
  }
  CHECK(sum == Approx(planned["step_seconds"].get<double>()));
  CHECK(shares == Approx(1));
  CHECK(planned["predicted_on"] == "h200");
  CHECK(planned["mfu"].get<double>() < 1);
  arguments.insert(arguments.end(), {"--set", "train.device=cpu"});
  const Outcome refused = run_gxp(arguments);
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "--time-by-class h200: train.device is cpu"));
}

TEST_CASE("plans are drawn: a plot in text, and SVG files", "[cmd]") {
  const GoldenRun run;
  const std::string svg = run.path("out.svg");
  const Outcome memory = run_gxp({"memcalc", run.path("run.toml"), "--svg", svg});
  CHECK(memory.code == 0);
  CHECK(contains(memory.out, "#"));
  CHECK(contains(read_file(svg), "</svg>"));
  CHECK(run_gxp({"shard-plan", run.path("run.toml"), "--nproc", "2", "--svg", svg}).code == 0);
  CHECK(contains(read_file(svg), "<title>gather-parameters") ==
        contains(read_file(run.path("run.toml")), "zero"));
  CHECK(contains(read_file(svg), "<title>backward unit 0"));
}

TEST_CASE("a plan that cannot be made is refused in one line that says why", "[cmd]") {
  const GoldenRun run;
  const auto [code, arguments, words] = GENERATE(table<int, Arguments, std::string>({
      {4, {"shard-plan", "nowhere.toml"}, "nowhere.toml"},
      {2, {"shard-plan", "RUN", "--nproc", "0"}, "must be from 1 to 4096"},
      {2, {"shard-plan", "RUN", "--nproc", "4096", "--nnodes", "2"}, "the limit is 4096"},
      {2, {"shard-plan", "RUN", "--nproc", "2", "--rank", "2"}, "below the number of ranks, 2"},
      {2, {"shard-plan", "RUN", "--set", "parallel.strategy=zero4"}, "parallel.strategy"},
      {2, {"shard-plan", "RUN", "--nnodes", "2", "--set", "comm.transport=shm"}, "use auto"},
      {2,
       {"shard-plan", "RUN", "--set", "train.recompute=some"},
       "must be one of: none, selective"},
      {2, {"shard-plan", "RUN", "--set", "train.recompute_units=x.*"}, "none of the units h.0 to"},
      {3, {"shard-plan", "RUN", "--set", "comm.engine=mpi"}, "set comm.engine=native"},
      {4, {"shard-plan", "RUN", "--svg", "/nowhere/plan.svg"}, "/nowhere/plan.svg"},
      {4, {"memcalc", "nowhere.toml"}, "nowhere.toml"},
      {2, {"memcalc", "RUN", "--stage", "2"}, "change it with --set"},
      {2, {"memcalc", "RUN", "--solve", "batch"}, "add --limit"},
      {2, {"memcalc", "RUN", "--solve", "gpus", "--limit", "1GB"}, "use one of: batch"},
      {2, {"memcalc", "RUN", "--gpus", "0"}, "from 1 to 4096"},
      {2, {"memcalc", "RUN", "--set", "model.heads=7"}, "heads"},
      {2, {"memcalc", "gpt2", "--svg", "x.svg"}, "--set and --svg go with a run file"},
  }));
  Arguments line = arguments;
  std::replace(line.begin(), line.end(), std::string("RUN"), run.path("run.toml"));
  const Outcome outcome = run_gxp(line);
  CAPTURE(arguments, outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  REQUIRE(outcome.errors().size() == 1);
  CHECK(contains(outcome.errors()[0], words));
}

}  // namespace
}  // namespace gxp
