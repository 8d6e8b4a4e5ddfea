// gxp memcalc as it is run: the JSON that programs read, and what bad input is answered with.
#include <map>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"
#include "tests/cmd/run_memcalc.h"

namespace gxp {
namespace {

TEST_CASE("memcalc tells bytes per GPU, part by part, in JSON", "[cmd]") {
  const Json report = memcalc_json({"--params", "7e9", "--stage", "2", "--gpus", "8"});
  CHECK(report["schema"] == "gxp.memcalc/1");
  CHECK(report["parameters"] == 7000000000);
  REQUIRE(report["results"].size() == 1);
  const Json expected = {{"gpus", 8},
                         {"stage", 2},
                         {"parameters_bytes", 14000000000},
                         {"gradients_bytes", 1750000000},
                         {"master_weights_bytes", 3500000000},
                         {"moments_bytes", 7000000000},
                         {"optimizer_bytes", 10500000000},
                         {"total_bytes", 26250000000}};
  CHECK(report["results"][0] == expected);
}

TEST_CASE("memcalc goes through lists of GPUs and stages", "[cmd]") {
  const Json results =
      memcalc_json({"gpt2-xl", "--gpus", "1,2,64", "--stage", "0,3", "--limit", "10GB"})["results"];
  REQUIRE(results.size() == 6);
  CHECK(results[4]["gpus"] == 64);
  CHECK(results[4]["stage"] == 0);
  CHECK(results[4]["fits"] == false);
  CHECK(results[5]["fits"] == true);
  CHECK(results[4]["binding"] == "optimizer");
}

TEST_CASE("memcalc shows one unit, named in every heading", "[cmd]") {
  const auto [unit, total] = GENERATE(table<std::string, std::string>(
      {{"GB", "26.25"}, {"GiB", "24.45"}, {"MB", "26250.00"}, {"MiB", "25033.95"}}));
  const Outcome outcome =
      memcalc({"--params", "7B", "--stage", "2", "--gpus", "8", "--unit", unit});
  CHECK(contains(outcome.out, "total " + unit));
  CHECK(contains(outcome.out, total));
}

TEST_CASE("memcalc --explain gives a reason for every byte", "[cmd]") {
  const Json report = memcalc_json(
      {"--params", "7e9", "--gpus", "64", "--stage", "2", "--shard", "8", "--explain"});
  int64_t sum = 0;
  for (const Json& term : report["terms"]) {
    CHECK_FALSE(term["source"].get<std::string>().empty());
    sum += term["bytes"].get<int64_t>();
  }
  CHECK(sum == report["results"][0]["total_bytes"]);
  CHECK(report["terms"][1]["numbers"] == "2 x ceil(7000000000 / 8)");
}

TEST_CASE("memcalc adds what a plan holds besides its states", "[cmd]") {
  const Json with =
      memcalc_json({"gpt3-175b", "--sequence", "2048", "--software", "megatron-2021", "--recompute",
                    "selective", "--gpus", "64", "--stage", "3", "--explain"});
  const Json without = memcalc_json({"gpt3-175b", "--gpus", "64", "--stage", "3"});
  const Json& row = with["results"][0];
  const int64_t kept = 34LL * 2048 * 12288 * 96;  // 76.5 GiB
  const int64_t logits = 6LL * 2048 * 50257;
  CHECK(row["activations_bytes"] == kept);
  CHECK(row["logits_bytes"] == logits);
  CHECK(row["total_bytes"] == without["results"][0]["total_bytes"].get<int64_t>() + kept + logits +
                                  row["buffers_bytes"].get<int64_t>() +
                                  row["context_bytes"].get<int64_t>());
  CHECK(with["terms"][4]["bytes"] == kept);
}

TEST_CASE("memcalc --solve finds the fewest GPUs of each stage", "[cmd]") {
  const Json results =
      memcalc_json({"--params", "7e9", "--solve", "gpus", "--limit", "40GB"})["results"];
  REQUIRE(results.size() == 4);
  CHECK(results[0]["gpus"].is_null());
  CHECK(results[0]["fits"] == false);
  CHECK(results[1]["gpus"] == 6);
  CHECK(results[2]["gpus"] == 4);
  CHECK(results[3]["gpus"] == 3);
}

TEST_CASE("memcalc --compat answers as the other tool does", "[cmd]") {
  const Json results = memcalc_json({"--params", "7e9", "--compat", "deepspeed", "--largest-layer",
                                     "131.072e6", "--gpus", "64"})["results"];
  REQUIRE(results.size() == 8);  // two of ZeRO-2, six of ZeRO-3
  CHECK(results[0]["printed"] == " 2503.40GB |  13.04GB | offload_optimizer=cpu ");
  CHECK(results[7]["printed"] ==
        "  312.92GB |   2.32GB | offload_param=none, offload_optimizer=none, zero_init=0");
  const Json paper =
      memcalc_json({"--params", "7.5e9", "--compat", "paper", "--gpus", "64", "--stage", "1"});
  CHECK(paper["results"][0]["printed"] == "31.41 GB");
  CHECK(paper["results"][0]["host_bytes"].is_null());
}

TEST_CASE("memcalc --compat deepspeed asks nothing that has no answer", "[cmd]") {
  const Json results = memcalc_json({"--params", "7e9", "--compat", "deepspeed"})["results"];
  CHECK(results.size() == 2);  // stage 3 depends on the largest layer
}

TEST_CASE("memcalc counts what saves and replicas hold of a host's memory", "[cmd]") {
  const std::string frozen = GENERATE("[]", R"(["wte.weight"])");
  const GoldenRun run;
  Arguments settings = {"--set", "optim.name=adafactor", "--set", "train.frozen=" + frozen};
  REQUIRE(run.run(settings).code == 0);
  uint64_t trained = 0, untrained = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(run.path("run/ckpt"))) {
    const std::string name = file.path().filename();
    if (name.starts_with("shard-")) trained += file.file_size();
    if (name.starts_with("frozen-")) untrained += file.file_size();
  }
  CHECK((untrained > 0) == (frozen != "[]"));
  Arguments question = Arguments{run.path("run.toml"), "--nproc", "4", "--nnodes", "2"} + settings;
  question.insert(question.end(),
                  {"--set", "checkpoint.async=true", "--set", "checkpoint.replica=neighbour"});
  const Json on_two_hosts = memcalc_json(question);
  CHECK(on_two_hosts["staged_bytes"] == 2 * (trained + untrained) / 2);
  CHECK(on_two_hosts["replica_bytes"] == 2 * (2 * trained + untrained) / 2);
}

TEST_CASE("memcalc --list names the published models", "[cmd]") {
  const Json models = memcalc_json({"--list"})["models"];
  CHECK(models.size() > 20);
  CHECK(models[0]["name"] == "gpt2");
  CHECK(models[0]["parameters"] == 124439808);
}

TEST_CASE("memcalc adds the software's buffers, and tells what pads each layout", "[cmd]") {
  const Json report = memcalc_json({"gpt2-xl", "--stage", "3", "--gpus", "512", "--sequence",
                                    "1024", "--software", "fsdp", "--padding", "--explain"});
  const Json row = report["results"][0];
  uint64_t sum = 0;
  for (const Json& term : report["terms"]) sum += term["bytes"].get<uint64_t>();
  CHECK(row["total_bytes"] == sum);
  CHECK(row["context_bytes"] > uint64_t{1} << 31);
  REQUIRE(report["padding"].size() == 4);
  CHECK(report["padding"][0]["layout"] == "rows");
  CHECK(report["padding"][0]["percent"].get<double>() == Approx(13.939).epsilon(1e-3));
}

TEST_CASE("memcalc cuts the model over tensor and pipeline parallelism first", "[cmd]") {
  const Json report = memcalc_json({"megatron-530b", "--sequence", "2048", "--tensor-parallel", "8",
                                    "--pipeline-parallel", "35", "--interleave", "3", "--recompute",
                                    "selective", "--software", "megatron-2021", "--precision",
                                    "bf16-fp32-grads", "--stage", "0", "--gpus", "280"});
  const Json row = report["results"][0];
  constexpr double kGiB = 1 << 30;  // Korthikanti et al., arXiv:2205.05198, figure 1
  CHECK(row["activations_bytes"].get<double>() / kGiB == Approx(23.076).epsilon(1e-4));
  double states = 0;
  for (const char* part : {"parameters_bytes", "gradients_bytes", "optimizer_bytes"})
    states += row[part].get<double>();
  CHECK(states / kGiB == Approx(31.64).epsilon(0.003));
}

TEST_CASE("a data sheet's size is that GPU's memory, and memcalc says so", "[cmd]") {
  const auto [limit, bytes, rule] = GENERATE(table<std::string, int64_t, std::string>({
      {"80GB", 80LL << 30, "the 80 GiB of a100-80gb and h100"},
      {"80gb", 80LL << 30, "80000MB"},
      {"40GB", 40LL << 30, "the 40 GiB of a100-40gb"},
      {"96GB", 95LL << 30, "h100-96gb-500w"},
      {"141GB", 141'000'000'000, ""},
      {"80000MB", 80'000'000'000, ""},
      {"80GiB", 80LL << 30, ""},
      {"80G", 80LL << 30, ""},
      {"79.5GB", 79'500'000'000, ""},
      {"24GB", 24'000'000'000, ""},
  }));
  const Json report = memcalc_json({"--params", "7b", "--limit", limit});
  CAPTURE(limit);
  CHECK(report["parameters"] == 7'000'000'000);
  CHECK(report["limit_bytes"] == bytes);
  CHECK(contains(report.value("limit_rule", ""), rule));
  CHECK(report.contains("limit_rule") == !rule.empty());
  const Json plan = Json::parse(run_gxp({"shard-plan", "llama3-8b", "--cluster", "dgx-h100",
                                         "--limit", limit, "--format", "json"})
                                    .out);
  CHECK(plan["limit_bytes"] == bytes);
  CHECK(plan.contains("limit_rule") == !rule.empty());
}

TEST_CASE("memcalc --solve fills a GPU's memory with a MODEL", "[cmd]") {
  const Arguments of = GENERATE(Arguments{"--solve", "batch", "--sequence", "2048"},
                                Arguments{"--solve", "seq", "--recompute", "selective"},
                                Arguments{"--solve", "layers"});
  const Json results =
      memcalc_json(Arguments{"llama3-8b", "--limit", "80GB", "--gpus", "8,16", "--stage", "2,3"} +
                   of)["results"];
  REQUIRE(results.size() == 4);
  for (const Json& row : results) {
    CHECK(row["value"] >= 1);
    CHECK(row["total_bytes"] <= 80LL << 30);
    CHECK(row["next_total_bytes"] > 80LL << 30);
  }
  CHECK(results[3]["value"] > results[0]["value"]);
}

TEST_CASE("memcalc tells what would make a MODEL fit", "[cmd]") {
  const Json report = memcalc_json(
      {"llama3-8b", "--limit", "40GB", "--gpus", "8", "--stage", "1", "--sequence", "8192"});
  CHECK(report["results"][0]["fits"] == false);
  CHECK(report["results"][0]["binding"] == "activations");
  REQUIRE(report["changes"].size() >= 2);
  for (const Json& change : report["changes"]) CHECK(change["total_bytes"] <= 40LL << 30);
  CHECK_FALSE(
      memcalc_json({"gpt2", "--limit", "40GB", "--gpus", "8", "--stage", "1"}).contains("changes"));
}

TEST_CASE("memcalc --list --limit tells the lowest stage with which each model fits", "[cmd]") {
  const Json fits = memcalc_json({"--list", "--limit", "80GB", "--gpus", "8"})["fits"];
  std::map<std::string, Json> stages;
  for (const Json& row : fits) stages[row["name"]] = row["stage"];
  CHECK(stages.at("gpt2-xl") == 0);
  CHECK(stages.at("llama2-7b") == 1);  // 112 GB whole, 38.5 with its optimizer sharded
  CHECK(stages.at("llama2-13b") == 1);
  CHECK(stages.at("llama3-70b").is_null());  // 141 GB with all sharded
}

struct RefusedQuestion {
  Arguments arguments;
  std::string words;  // of the error
};
const std::vector<RefusedQuestion>& refused_questions() {
  static const std::vector<RefusedQuestion> kQuestions = {
      {Arguments(), "give either MODEL or --params"},
      {{"gpt2", "--params", "7e9"}, "give either MODEL or --params"},
      {{"--params", "7e9", "--optimizer", "muon"}, "keeps more for embeddings, head and norms"},
      {Arguments{"gpt2-xxl"}, "did you mean 'gpt2-xl'"},
      {{"--params", "0"}, "--params '0': must be a number of parameters from 1 to 1e15"},
      {{"--params", "many"}, "--params 'many'"},
      {{"--params", "1.5"}, "--params '1.5'"},
      {{"--params", "1e16"}, "--params '1e16'"},
      {{"--params", "nan"}, "--params 'nan'"},
      {{"--params", "7e9x"}, "--params '7e9x'"},
      {{"--params", "7e9", "--stage", "4"}, "stage 4: ZeRO has stages 0"},
      {{"--params", "7e9", "--stage", "1,,2"}, "'' is not a whole number"},
      {{"--params", "7e9", "--gpus", "0"}, "plan 0 GPUs"},
      {{"--params", "7e9", "--gpus", "8,x"}, "'x' is not a whole number"},
      {{"--params", "7e9", "--gpus", "8", "--shard", "3"}, "3 does not divide 8"},
      {{"--params", "7e9", "--precision", "fp17"}, "did you mean 'fp16'"},
      {{"--params", "7e9", "--optimizer", "adamx"}, "did you mean 'ada"},
      {{"--params", "7e9", "--limit", "much"}, "--limit 'much'"},
      {{"--params", "7e9", "--unit", "GIB"}, "--unit 'GIB'"},
      {{"--params", "7e9", "--solve", "gpus"}, "add --limit 80GB"},
      {{"--params", "7e9", "--solve", "batch", "--limit", "80GB"}, "use --solve gpus"},
      {{"--params", "7e9", "--compat", "deepsped"}, "did you mean 'deepspeed'"},
      {{"--params", "7e9", "--compat", "deepspeed", "--stage", "1"}, "use --stage 2,3"},
      {{"--params", "7e9", "--compat", "deepspeed", "--stage", "3"}, "add --largest-layer"},
      {{"--params", "7e9", "--compat", "deepspeed", "--gpus-per-host", "3"}, "3 does not divide 8"},
      {{"--params", "7e9", "--compat", "paper", "--precision", "fp32"}, "precision fp32"},
      {{"--params", "7e9", "--compat", "paper", "--shard", "2"}, "hybrid sharding"},
      {{"--params", "7e9", "--compat", "paper", "--optimizer", "sgd"}, "assumes Adam"},
      {{"--params", "7e9", "--sequence", "2048"}, "activations depend on the model's shape"},
      {{"gpt2", "--sequence", "8", "--software", "fsdq"}, "did you mean 'fsdp'"},
      {{"gpt2", "--software", "fsdp"}, "add --sequence"},
      {{"--params", "7e9", "--padding"}, "--padding depends on the tensors"},
      {{"gpt2", "--interleave", "2", "--sequence", "8"},
       "--interleave needs several pipeline stages"},
      {{"gpt2", "--pipeline-parallel", "15"}, "more than 12 layers"},
      {{"gpt2", "--tensor-parallel", "8"}, "12 attention heads"},
      {{"gpt2", "--pipeline-parallel", "3", "--gpus", "8"}, "a copy of the model takes 3"},
      {{"gpt2", "--compat", "paper", "--pipeline-parallel", "2"},
       "know no activations and no plan"},
      {{"gpt2", "--solve", "rows", "--limit", "1GB"}, "must be one of: gpus, batch, seq, layers"},
      {{"gpt2", "--solve", "gpus", "--limit", "1GB", "--gpus", "8"}, "leave out --gpus"},
      {{"gpt2", "--solve", "batch", "--limit", "1GB"}, "add --sequence"},
      {{"gpt2", "--solve", "seq", "--limit", "1GB", "--sequence", "8"}, "leave out --sequence"},
      {{"gpt2", "--solve", "seq", "--limit", "1GB", "--precision", "fp32"}, "is for 16 bits"},
      {{"gpt2", "--solve", "batch", "--limit", "1GB", "--sequence", "8", "--micro-batch", "2"},
       "leave out --micro-batch"},
      {{"gpt2", "--solve", "layers", "--limit", "1GB", "--compat", "paper"}, "leave out --compat"},
      {{"gpt2", "--limit", "2000TB"}, "more than any GPU has"},
      {{"gpt2", "--sequence", "2048", "--precision", "fp32"}, "is for 16 bits"},
      {{"gpt2", "--sequence", "2048", "--recompute", "half"}, "must be one of: none, selective"},
      {{"gpt2", "--sequence", "1048576", "--micro-batch", "65536"}, "exceed 1e18 bytes"},
      {{"gpt2", "--list"}, "leave MODEL out"},
      {{"gpt2", "--recompute", "full"}, "add --sequence"},
      {{"gpt2", "--micro-batch", "2"}, "add --sequence"},
      {{"gpt2", "--sequence", "9", "--compat", "paper"}, "know no activations and no plan"},
      {{"gpt2", "--compat", "eleuther"}, "--compat 'eleuther' is unknown"},
      {{"gpt2", "--largest-layer", "1e6"}, "go with --compat deepspeed"},
  };
  return kQuestions;
}

TEST_CASE("memcalc refuses a question in one line that says what to ask", "[cmd]") {
  const auto [arguments, words] = GENERATE(from_range(refused_questions()));
  const Outcome outcome = memcalc(arguments);
  CAPTURE(arguments, outcome.err);
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  REQUIRE(outcome.errors().size() == 1);
  CHECK(contains(outcome.errors()[0], words));
}

}  // namespace
}  // namespace gxp
