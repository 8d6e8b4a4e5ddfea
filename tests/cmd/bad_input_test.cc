// Bad input: one line that a user understands, the documented exit code, and nothing lost.
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>

#include "lib/base/error.h"
#include "lib/net/socket/socket.h"
#include "tests/catch.h"
#include "tests/cmd/golden_run.h"
#include "tests/cmd/reserved_port.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

// The one line that tells the failure has all `words`.
void check_failure(const Outcome& outcome, int code, const std::vector<std::string>& words) {
  CAPTURE(outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  const std::vector<std::string> errors = outcome.errors();
  REQUIRE(errors.size() == 1);
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(contains(errors[0], word));
  }
}

Arguments set(const std::string& key, const std::string& value) {
  return {"--set", key + "=" + value};
}

// The run file with a piece of its text replaced.
Arguments edit(const GoldenRun& run, const std::string& from, const std::string& to) {
  std::string text = read_file(run.path("run.toml"));
  text.replace(text.find(from), from.size(), to);
  make_file(run.path("run.toml"), text);
  return {};
}

// Trains on the first `bytes` of the run's tokens, those from `at` on replaced by `token`.
Arguments tokens(const GoldenRun& run, size_t bytes, size_t at = 0, int32_t token = -1) {
  std::string data = read_file(run.golden("tokens.i32")).substr(0, bytes);
  if (at > 0) std::memcpy(data.data() + 4 * at, &token, sizeof token);
  make_file(run.path("tokens.i32"), data);
  return set("data.train", run.path("tokens.i32"));
}

// Starts from the run's weights with a NaN as their last value.
Arguments nan_weight(const GoldenRun& run) {
  std::string weights = read_file(run.golden("init.safetensors"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(weights.data() + weights.size() - sizeof nan, &nan, sizeof nan);
  make_file(run.path("init.safetensors"), weights);
  return set("model.init", run.path("init.safetensors"));
}

// Trains, changes the newest checkpoint's file NAME by `change`, and asks for the rest.
Arguments spoil(const GoldenRun& run, const std::string& name,
                const std::function<void(std::string&)>& change) {
  run.run({"--nproc", "2", "--set", "train.steps=6"});
  const std::string file = run.path("run/ckpt/step-00000006/" + name);
  std::string bytes = read_file(file);
  change(bytes);
  make_file(file, bytes);
  return {"--resume"};
}

struct BadCase {
  std::string what;
  std::function<Arguments(const GoldenRun&)> arrange;
  int code;
  std::vector<std::string> words;
};

using Run = const GoldenRun&;
const std::vector<BadCase> kCases = {
    {"unknown key",
     [](Run r) { return edit(r, "micro_batch", "micro_bacth"); },
     2,
     {"run.toml:", "train.micro_bacth", "unknown key", "did you mean 'micro_batch'"}},
    {"unknown section",
     [](Run r) { return edit(r, "[optim]", "[optin]"); },
     2,
     {"run.toml:", "optin", "did you mean 'optim'"}},
    {"wrong type",
     [](Run r) { return edit(r, "steps = ", "steps = \"many\" # "); },
     2,
     {"run.toml:", "train.steps", "must be an integer", "\"many\""}},
    {"not TOML", [](Run r) { return edit(r, "[train]", "[train"); }, 2, {"run.toml:"}},
    {"negative size",
     [](Run) { return set("model.hidden", "-32"); },
     2,
     {"--set", "model.hidden", "must be from 1", "-32"}},
    {"heads",
     [](Run) { return set("model.heads", "5"); },
     2,
     {"model.heads", "must divide model.hidden (32)", "5"}},
    {"a ratio of nothing",
     [](Run) { return set("offload.ratio", "0.5"); },
     2,
     {"offload.ratio", "has no effect", "offload.optimizer"}},
    {"wraps of nothing",
     [](Run) { return set("parallel.wrap_min_params", "0"); },
     2,
     {"parallel.wrap_min_params", "must be positive"}},
    {"wraps from units that there are not",
     [](Run) {
       return Arguments{"--set", "parallel.wrap=match", "--set", "parallel.wrap_units=[\"x.*\"]"};
     },
     2,
     {"parallel.wrap_units 'x.*'", "embedding to head", "shard-plan --units"}},
    {"offload to files nowhere",
     [](Run) { return set("offload.optimizer", "file"); },
     2,
     {"offload.path", "must name a directory"}},
    {"offload to a place that is not there",
     [](Run) {
       return Arguments{"--set", "offload.optimizer=file", "--set", "offload.path=/no/such/place"};
     },
     4,
     {"offload rank ", "'s state", "/no/such/place", "No such file"}},
    {"offload of whole tensors",
     [](Run) {
       return Arguments{"--set", "offload.optimizer=memory", "--set", "optim.name=muon"};
     },
     2,
     {"offload.optimizer", "muon", "whole tensors"}},
    {"a device that is too small",
     [](Run) {
       return Arguments{"--set", "model.hidden=512",
                        "--set", "model.layers=2",
                        "--set", "train.device_memory_bytes=80MiB"};
     },
     2,
     {"train.device_memory_bytes 80 MiB", " more, most of it in ",
      "what fits:", "offload.optimizer = \"memory\""}},
    {"a device for nothing",
     [](Run) { return set("train.device_memory_bytes", "1KiB"); },
     2,
     {"train.device_memory_bytes 1 KiB", "use more ranks or a smaller model"}},
    {"resume from nowhere",
     [](Run) {
       return Arguments{"--resume", "--set", "checkpoint.dir=", "--set", "checkpoint.every=0"};
     },
     2,
     {"--resume", "checkpoint.dir is not set"}},
    {"missing run file",
     [](Run r) {
       fs::remove(r.path("run.toml"));
       return Arguments();
     },
     4,
     {"run.toml", "No such file"}},
    {"missing data",
     [](Run r) { return set("data.train", r.path("none.i32")); },
     4,
     {"none.i32", "No such file"}},
    {"empty data", [](Run r) { return tokens(r, 0); }, 4, {"tokens.i32", "is empty"}},
    {"truncated row",
     [](Run r) { return tokens(r, 1000); },
     4,
     {"tokens.i32", "250 tokens", "a multiple of 21", "truncated"}},
    {"truncated token", [](Run r) { return tokens(r, 1001); }, 4, {"tokens.i32", "1001 bytes"}},
    {"token too large",
     [](Run r) { return tokens(r, 12096, 400, 61); },
     4,
     {"tokens.i32", "token 61 at position 400", "vocabulary of 61", "model.vocab_size"}},
    {"negative token",
     [](Run r) { return tokens(r, 12096, 400, -1); },
     4,
     {"tokens.i32", "token -1 at position 400"}},
    {"other model's weights",
     [](Run) { return set("model.hidden", "16"); },
     2,
     {"init.safetensors", "has the shape", "[model]"}},
    {"NaN in the weights", nan_weight, 4, {"init.safetensors", "transformer.wte.weight is nan"}},
    {"diverging",
     [](Run) {
       return Arguments{"--set", "optim.lr=1e30", "--set", "optim.clip=0"};
     },
     1,
     {"loss is nan", "lower optim.lr"}},
    {"unwritable checkpoints",
     [](Run r) { return set("checkpoint.dir", r.path("run.toml") + "/ckpt"); },
     4,
     {"run.toml/ckpt", "Not a directory"}},
    {"unwritable metrics",
     [](Run r) {
       fs::create_directory(r.path("metrics.jsonl"));
       return Arguments();
     },
     4,
     {"write metrics", "metrics.jsonl", "Is a directory"}},
    {"unwritable run directory",
     [](Run r) { return set("train.run_dir", r.path("run.toml")); },
     4,
     {"run.toml", "Not a directory"}},
    {"changed checkpoint",
     [](Run r) { return spoil(r, "shard-00001-of-00002.bin", [](auto& b) { b[1000] ^= 1; }); },
     4,
     {"shard-00001-of-00002.bin", "changed", "remove", "step-00000006"}},
    {"truncated checkpoint",
     [](Run r) { return spoil(r, "shard-00000-of-00002.bin", [](auto& b) { b.pop_back(); }); },
     4,
     {"shard-00000-of-00002.bin", "bytes expected, found", "remove"}},
    {"changed manifest",
     [](Run r) { return spoil(r, "manifest.json", [](auto& b) { b[b.size() / 2] ^= 1; }); },
     4,
     {"manifest.json", "changed", "remove", "step-00000006"}},
    {"newest checkpoint that cannot be looked into",
     [](Run r) {
       r.run({"--set", "train.steps=6"});
       fs::remove_all(r.path("run/ckpt/step-00000006"));
       make_file(r.path("run/ckpt/step-00000006"), "");
       return Arguments{"--resume"};
     },
     4,
     {"step-00000006", "Not a directory", "may be the newest"}},
    {"another data order",
     [](Run r) {
       r.run({"--set", "train.steps=6"});
       return Arguments{"--resume", "--set", "train.seed=7"};
     },
     2,
     {"train.seed is 1 there and 7 in this run"}}};

const std::string kSecret(64, 'a');

Surroundings with_secret(const std::string& secret) {
  return {.environment = {{"GXP_JOB_SECRET", secret}}, .file_bytes = 0};
}

// The command of one of two hosts.
Arguments on_host(int host, const std::string& master, const std::string& timeout = "1",
                  const Arguments& more = {}) {
  return Arguments{"--nnodes", "2",    "--node-rank",    std::to_string(host),
                   "--master", master, "--join-timeout", timeout} +
         more;
}

// Both hosts at once, the second with its own secret and further arguments.
std::pair<Outcome, Outcome> run_hosts(const std::string& timeout, const std::string& other_secret,
                                      const Arguments& other = {}) {
  const ReservedPort port;
  const GoldenRun run, other_run;
  Process first(gxp_argv(run.train(on_host(0, port.master(), timeout))), with_secret(kSecret));
  Process second(gxp_argv(other_run.train(on_host(1, port.master(), timeout, other))),
                 with_secret(other_secret));
  return {first.end(), second.end()};
}

}  // namespace

TEST_CASE("bad input is told in one line with the documented exit code", "[cmd]") {
  const std::string nproc = GENERATE("1", "3");
  for (const BadCase& row : kCases) {
    const GoldenRun run;
    Arguments arguments = row.arrange(run);
    arguments.insert(arguments.end(), {"--nproc", nproc});
    CAPTURE(row.what, nproc);
    check_failure(run.run(arguments), row.code, row.words);
  }
}

TEST_CASE("a wrong command line is told in one line with exit code 2", "[cmd]") {
  const auto [arguments, words] = GENERATE(table<Arguments, std::string>(
      {{{"trian"}, "unknown command 'trian'; did you mean 'train'?"},
       {{"train", "run.toml", "--nprocs", "2"},
        "unknown option '--nprocs'; did you mean '--nproc'?"},
       {{"train", "run.toml", "--nproc", "0"}, "--nproc"},
       {{"train", "run.toml", "--learning-rate", "1"},
        "unknown option '--learning-rate'; use --set optim.lr=VALUE"},
       {{"train", "run.toml", "--nproc_per_node", "0"}, "--nproc"},
       {{"train", "run.toml", "--master_addr", "h"},
        "unknown option '--master-addr'; use --master HOST:PORT"},
       {{"train", "run.toml", "--num_processes=2"},
        "'--num-processes'; use --nproc: the ranks of one host"},
       {{"train", "run.toml", "--deepspeed", "ds.json"},
        "unknown option '--deepspeed'; use --import FILE"},
       {{"train", "run.toml", "--clip-grad", "1"},
        "unknown option '--clip-grad'; use --set optim.clip=VALUE"},
       {{"memcalc", "--params", "1e6", "--precision", "int4"}, "--precision"},
       {{"allreduce-test", "--warmup_iters", "-1"}, "--warmup_iters"},
       {{"train"}, "RUN.toml is required"}}));
  check_failure(run_gxp(arguments), 2, {words});
}

TEST_CASE("a checkpoint that exceeds the file limit leaves the older ones as they were", "[cmd]") {
  const std::string nproc = GENERATE("1", "2");
  const GoldenRun run;
  REQUIRE(run.run({"--set", "train.steps=4"}).code == 0);
  const std::string before = run.weights();
  // A shard has about 180 KB divided by nproc.
  const Outcome outcome = run.run(
      {"--resume", "--nproc", nproc, "--set", "train.micro_batch=3", "--set", "comm.transport=tcp"},
      {.environment = {}, .file_bytes = 50000});
  check_failure(outcome, 4, {"write", "step-00000012.partial", "File too large"});
  CHECK(run.weights() == before);
}

TEST_CASE("a full disk leaves the older checkpoints as they were", "[cmd]") {
  const std::string isolate = geteuid() == 0 ? "unshare -m" : "unshare -rm";
  const GoldenRun run;
  const auto on_small_disk = [&](const std::string& script) {
    const std::string mount = "mount -t tmpfs -o size=500k none " + run.path("disk");
    return Process({"sh", "-c", isolate + " sh -c '" + mount + " && " + script + "'"}).end();
  };
  fs::create_directory(run.path("disk"));
  if (on_small_disk("true").code != 0) {
    WARN("skipped: this user may not mount a small disk in a mount namespace of its own");
    return;
  }
  const std::string checkpoints = run.path("disk/ckpt");
  const bool async = GENERATE(false, true);
  const Outcome outcome = on_small_disk(
      fmt::format("{0} train {1} --nproc 3 --set checkpoint.dir={2} --set train.run_dir={3} "
                  "--set checkpoint.every=1 --set checkpoint.keep=0 --set checkpoint.async={4}; "
                  "code=$?; ls -A {2} >&2; {0} convert-ckpt {2} --verify >/dev/null || exit 99; "
                  "exit $code",
                  GXP_BINARY, run.path("run.toml"), checkpoints, run.path("run"), async));
  check_failure(outcome, 4, {"step-00000003.partial", "No space left on device"});
  CHECK(contains(outcome.err, "\nstep-00000001\nstep-00000002\n"));
}

TEST_CASE("a port that is taken is told at once", "[cmd]") {
  const ReservedPort port(true);
  const GoldenRun run;
  check_failure(run.run(on_host(0, port.master()), with_secret(kSecret)), 4,
                {"listen on " + port.master(), "is taken", "choose another", "--master"});
}

TEST_CASE("a host that never comes is named by its ranks", "[cmd]") {
  const ReservedPort port;
  const GoldenRun run;
  check_failure(run.run(on_host(0, port.master()), with_secret(kSecret)), 5,
                {"rank 1", "did not reach", port.master(), "within 1 s"});
  check_failure(run.run(on_host(0, port.master(), "1", {"--nproc", "2"}), with_secret(kSecret)), 5,
                {"rank 2", "3", "did not reach"});
  check_failure(run.run(on_host(1, port.master()), with_secret(kSecret)), 5,
                {"connect to rank 0 at " + port.master(), "is its process running"});
}

TEST_CASE("what is missing on one host is told on the other at once", "[cmd]") {
  const bool has_launcher = GENERATE(true, false);
  const ReservedPort port;
  const Endpoint master = parse_endpoint(port.master());
  const GoldenRun run, other_run;
  const auto start = [&](const GoldenRun& of, int host, const Arguments& more = {}) {
    const std::string number = std::to_string(host);
    Surroundings shell = with_secret(kSecret);
    if (!has_launcher)
      shell.environment.insert({{"RANK", number},
                                {"LOCAL_RANK", number},
                                {"WORLD_SIZE", "2"},
                                {"MASTER_ADDR", master.host},
                                {"MASTER_PORT", std::to_string(master.port)}});
    const Arguments arguments = has_launcher ? on_host(host, port.master(), "50", more) : more;
    return std::make_unique<Process>(gxp_argv(of.train(arguments)), shell);
  };
  const auto first = start(run, 0);
  REQUIRE(poll_until([&] {
    return error_of([&] { connect_tcp(master, "rank 0", Deadline::after({})); }).message.empty();
  }));
  const std::string missing = other_run.path("missing.txt");
  const auto second = start(other_run, 1, set("data.train", "[\"" + missing + "\"]"));
  check_failure(second->end(), 4, {missing, "No such file"});
  check_failure(first->end(), 5, {"rank 1: ", missing, "No such file"});
}

TEST_CASE("hosts with different secrets are both told so", "[cmd]") {
  const auto [first, second] = run_hosts("2", std::string(64, 'b'));
  check_failure(first, 5, {"rank 1", "did not reach"});
  CHECK(contains(first.err, "refused a client"));
  CHECK(contains(first.err, "the job secret differs"));
  check_failure(second, 5, {"the job secret differs", "GXP_JOB_SECRET"});
}

TEST_CASE("hosts with different settings are both told which", "[cmd]") {
  const auto [first, second] = run_hosts("20", kSecret, {"--set", "optim.lr=0.5"});
  check_failure(first, 2, {"optim.lr: 0.003 on rank 0, 0.5 on rank 1"});
  check_failure(second, 2, {"optim.lr: 0.003 on rank 0, 0.5 on rank 1"});
}

TEST_CASE("hosts with secret files of their own are told which and where", "[cmd]") {
  const ReservedPort port;
  const GoldenRun run, other_run;
  const auto home = [](const GoldenRun& of) {
    return Surroundings{.environment = {{"XDG_CONFIG_HOME", of.path("config")}}, .file_bytes = 0};
  };
  Process first(gxp_argv(run.train(on_host(0, port.master(), "2"))), home(run));
  Process second(gxp_argv(other_run.train(on_host(1, port.master(), "2"))), home(other_run));
  check_failure(second.end(), 5,
                {"the job secret differs", "its own secret file",
                 other_run.path("config/gxp/job.secret"), "copy it to all hosts"});
  CHECK(contains(first.end().err, run.path("config/gxp/job.secret")));
}

TEST_CASE("several hosts need a master and a secret that can be read or made", "[cmd]") {
  const GoldenRun run;
  check_failure(
      run.run(on_host(0, "127.0.0.1:1"),
              {.environment = {{"XDG_CONFIG_HOME", run.path("run.toml")}}, .file_bytes = 0}),
      4, {"run.toml/gxp/job.secret", "run.toml is not a directory", "GXP_JOB_SECRET_FILE"});
  check_failure(run.run({"--nnodes", "2"}, with_secret(kSecret)), 2, {"--master"});
  check_failure(run.run(on_host(0, "127.0.0.1:1"), with_secret("short")), 2,
                {"GXP_JOB_SECRET", "64 hexadecimal digits"});
}

}  // namespace gxp
