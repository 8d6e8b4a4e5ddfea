#include "lib/config/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/arch/family.h"
#include "lib/arch/optimizers.h"
#include "lib/base/error.h"
#include "lib/config/other_names.h"
#include "lib/config/print.h"
#include "lib/config/settings.h"
#include "tests/catch.h"

namespace gxp {
namespace {

const std::string kData = "[data]\ntrain = ['a']\n";  // the one setting without a default: 2 lines

RunConfig load(const std::string& text, const std::vector<std::string>& sets = {},
               const Environment& environment = {}) {
  return parse_config(text, "run.toml", sets, environment).run;
}

// What the user is told; "" if nothing.
std::string complaint(const std::string& text, const std::vector<std::string>& sets = {},
                      const Environment& environment = {}) {
  try {
    load(text, sets, environment);
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
}

}  // namespace

TEST_CASE("a setting that nobody names has its member's initialiser", "[config]") {
  const RunConfig run = load(kData);
  CHECK(run.optim.lr == OptimConfig().lr);
  CHECK(run.parallel.bucket_bytes == 25u << 20);
  CHECK(run.data.train == std::vector<std::string>{"a"});
}

TEST_CASE("a run file sets every kind of value", "[config]") {
  const RunConfig run = load(
      "data.train = ['a', \"b\"]\n[optim]\nlr = 1\nbeta2 = 9_9e-2\n[train]\nseed = 0x10\n"
      "[parallel]\nbucket_bytes = '4MiB'\n[comm]\nsegment_bytes = 512\n");
  CHECK(run.data.train == std::vector<std::string>{"a", "b"});
  CHECK(run.optim.lr == 1.0);
  CHECK(run.optim.beta2 == 0.99);
  CHECK(run.train.seed == 16);
  CHECK(run.parallel.bucket_bytes == 4u << 20);
  CHECK(run.comm.segment_bytes == 512);
}

TEST_CASE("the command line beats the environment, which beats the file", "[config]") {
  const std::string file = kData + "[optim]\nlr = 1.0\n";
  const Environment environment = {{"GXP_OPTIM_LR", "2"}};
  CHECK(load(file).optim.lr == 1);
  CHECK(load(file, {}, environment).optim.lr == 2);
  CHECK(load(file, {"optim.lr=3"}, environment).optim.lr == 3);
  CHECK(load(file, {"optim.lr=3", "optim.lr=4"}, environment).optim.lr == 4);
}

TEST_CASE("every setting knows where its value comes from", "[config]") {
  const LoadedConfig loaded =
      parse_config(kData + "[train]\nsteps = 5\n", "run.toml",
                   std::vector<std::string>{"optim.lr=1"}, {{"GXP_LR_SCHEDULE_NAME", "constant"}});
  CHECK(to_string(loaded.origins.at("data.train")) == "run.toml:2");
  CHECK(to_string(loaded.origins.at("train.steps")) == "run.toml:4");
  CHECK(to_string(loaded.origins.at("optim.lr")) == "--set");
  CHECK(to_string(loaded.origins.at("lr_schedule.name")) == "GXP_LR_SCHEDULE_NAME");
  CHECK(to_string(loaded.origins.at("model.heads")) == "default");
}

TEST_CASE("strings and lists need no quotes outside files", "[config]") {
  const auto [text, list] = GENERATE(table<std::string, std::vector<std::string>>(
      {{"a.txt", {"a.txt"}}, {"a,b", {"a", "b"}}, {"['a,b', \"c\"]", {"a,b", "c"}}, {"1", {"1"}}}));
  CHECK(load("", {"data.train=" + text}).data.train == list);
  CHECK(load(kData, {"checkpoint.dir=x=y z"}).checkpoint.dir == "x=y z");
  CHECK(load(kData, {"checkpoint.dir=\"a\\tb\""}).checkpoint.dir == "a\tb");
}

TEST_CASE("a list of numbers is read as TOML writes it, and without brackets outside files",
          "[config]") {
  const auto [text, list] = GENERATE(table<std::string, std::vector<double>>(
      {{"[0.7, 3]", {0.7, 3}}, {"0.7,3", {0.7, 3}}, {"2", {2}}, {"[]", {}}}));
  std::string files = "data.train=[";
  for (size_t i = 0; i < std::max<size_t>(list.size(), 1); ++i) files += "'a',";
  const RunConfig run = load("", {files + "]", "data.weights=" + text});
  CHECK(run.data.weights == list);
  CHECK(load("", {files + "]", "data.weights=" + to_toml(Value(run.data.weights))}).data.weights ==
        list);
}

TEST_CASE("variables of other kinds, and empty ones, are left alone", "[config]") {
  const RunConfig run = load(kData, {}, {{"GXP_RANK", "3"}, {"GXP_OPTIM_LR", ""}, {"HOME", "/"}});
  CHECK(run.optim.lr == OptimConfig().lr);
}

struct BadLine {
  std::string text;  // after kData
  std::string complaint;
};
const std::vector<BadLine>& bad_lines() {
  static const std::vector<BadLine> kLines = {
      {"[optim]\nlrr = 1", "run.toml:4: optim.lrr: unknown key; did you mean 'lr'?"},
      {"[optim]\nfoo = 1", "run.toml:4: optim.foo: unknown key"},
      {"[comm]\nkernel_copies = false", "run.toml:4: comm.kernel_copies: is now called comm.cma"},
      {"[optm]\nlr = 1", "run.toml:3: optm: unknown section; did you mean 'optim'?"},
      {"[optimizer]\nlr = 1", "run.toml:3: optimizer: unknown section; gxp calls it [optim]"},
      {"[optim]\nlearning_rate = 1",
       "run.toml:4: optim.learning_rate: unknown key; gxp calls it optim.lr"},
      {"[optim]\nwarmup_steps = 1",
       "run.toml:4: optim.warmup_steps: unknown key; did you mean 'lr_schedule.warmup_steps'?"},
      {"[optim]\nlr = -1", "run.toml:4: optim.lr: must be positive, is -1.0"},
      {"[optim]\nlr = nan", "run.toml:4: optim.lr: must be finite, is nan"},
      {"[optim]\nlr = 'x'", "run.toml:4: optim.lr: must be a number, is \"x\""},
      {"[optim]\nlr = 1979-05-27", "run.toml:4: optim.lr: must be a number, is a date or time"},
      {"[optim.lr]\nx = 1", "run.toml:3: optim.lr: must be a number, is a table"},
      {"[optim]\nbeta1 = 1", "run.toml:4: optim.beta1: must be at least 0 and below 1, is 1.0"},
      {"[model]\nhidden = -4", "run.toml:4: model.hidden: must be from 1 to 1048576, is -4"},
      {"[model]\nhidden = 4.0", "run.toml:4: model.hidden: must be an integer, is 4.0"},
      {"[train]\nsteps = 4294967296",
       "run.toml:4: train.steps: must be at most 2147483647, is 4294967296"},
      {"[train]\nseed = -1", "run.toml:4: train.seed: must be at least 0, is -1"},
      {"[train]\ndevice = 'cqu'",
       "run.toml:4: train.device: must be one of: auto, cpu, cuda; it is \"cqu\"; did you mean "
       "'cpu'?"},
      {"[train]\nkeep = 'norm'",
       "run.toml:4: train.keep: must be one of: auto, none, norms, all; it is \"norm\"; did you "
       "mean 'norms'?"},
      {"[parallel]\nbucket_bytes = '4Q'",
       "run.toml:4: parallel.bucket_bytes: must be bytes, as an integer or like \"25MiB\", is "
       "\"4Q\""},
      {"[checkpoint]\ndir = true", "run.toml:4: checkpoint.dir: must be a string, is true"},
      {"valid = 3", "run.toml:3: data.valid: must be a list of strings, is 3"},
      {"valid = [1]", "run.toml:3: data.valid: must be a list of strings, is [1.0]"},
      {"valid = [true]",
       "run.toml:3: data.valid: must be a list of strings, is a list of neither strings nor "
       "numbers"},
      {"weights = ['a']", "run.toml:3: data.weights: must be a list of numbers, is [\"a\"]"},
      {"weights = 1", "run.toml:3: data.weights: must be a list of numbers, is 1"},
      {"weights = [-1]", "run.toml:3: data.weights: must be positive, is -1.0"},
      {"weights = [1, 2]",
       "run.toml:3: data.weights: must have a weight for each entry of data.train, 1, but has 2"},
      {"valid = ['x']\nvalidation_split = 0.1",
       "run.toml:4: data.validation_split: must be 0 with files in data.valid, is 0.1"},
      {"[train]\nprofile_steps = '12-10'",
       "run.toml:4: train.profile_steps: must be two steps in ascending order, such as \"10-12\", "
       "is \"12-10\""},
      {"[train]\nsteps = 11\nprofile_steps = '10-12'",
       "run.toml:5: train.profile_steps: must end by train.steps (11), is 10-12"},
      {"[train]\nsteps = 11\nrun_dir = 'r'\ntrace_steps = '10-12'",
       "run.toml:6: train.trace_steps: must end by train.steps (11), is 10-12"},
      {"[train]\ntrace_steps = '1-2'",
       "run.toml:4: train.trace_steps: needs a directory for its file; set train.run_dir or "
       "checkpoint.dir"},
      {"[model]\nheads = 5", "run.toml:4: model.heads: must divide model.hidden (256), is 5"},
      {"[model]\nfamily = 'llama'\nkv_heads = 3",
       "run.toml:5: model.kv_heads: must divide model.heads (4), is 3"},
      {"[model]\nfamily = 'llama'\nhead_size = 7",
       "run.toml:5: model.head_size: must be even for rotary positions, is 7"},
      {"[model]\nfamily = 'llama'\nhidden = 60",
       "run.toml: model.head_size: must be even for rotary positions, is 15 (model.hidden / "
       "model.heads)"},
      {"[model]\nfamily = 'llama'\nheads = 1048576\nhead_size = 4",
       "run.toml:6: model.head_size: times model.heads (1048576) must be at most 1048576, is "
       "4194304"},
      {"[model]\nkv_heads = 2",
       "run.toml:4: model.kv_heads: is not for model.family gpt2 and gpt_neox; leave it out for "
       "gpt2"},
      {"[model]\nattention_bias = false",
       "run.toml:4: model.attention_bias: is only for model.family gpt_neox, llama, qwen3 and 6 "
       "others; leave it out for gpt2"},
      {"[model]\nfamily = 'gemma2'\nmlp_bias = true",
       "run.toml:5: model.mlp_bias: is only for model.family llama, smollm3 and granite; leave it "
       "out for gemma2"},
      {"[model]\nfamily = 'mistral'\nwindow_layers = '0,4'",
       "run.toml:5: model.window_layers: must list layers below model.layers (4), such as "
       "\"0-2,5\", is \"0,4\""},
      {"sequence = 257", "run.toml:3: data.sequence: must be at most model.context (256), is 257"},
      {"[train]\nvalid_every = 2",
       "run.toml:4: train.valid_every: needs files in data.valid, or "
       "data.validation_split"},
      {"[offload]\noptimizer = 'memory'\n[optim]\nstate_dtype = 'int8'",
       "run.toml:4: offload.optimizer: must be none with optim.state_dtype int8, is memory: the "
       "scales of its blocks do not fill tiles; bf16 can be offloaded"},
      {"[optim]\nname = 'lion'\nstate_dtype = 'bf16'",
       "run.toml:5: optim.state_dtype: is only for optim.name adamw and adam; leave it out for "
       "lion"},
      {"[train]\nrounding = 'stochastic'",
       "run.toml:4: train.rounding: must be nearest with train.precision fp32; stochastic is for "
       "bf16"},
      {"[lora]\nalpha = 32.0",
       "run.toml: lora.rank: must be above 0 for the other settings of [lora]; set it, or leave "
       "them out"},
      {"[train]\nattention = 'cudnn'\nprecision = 'bf16'\n[model]\nfamily = 'mistral'\nwindow = 64",
       "run.toml:4: train.attention: must be auto or own with model.window 64; cuDNN's graph has "
       "no window"},
      {"[train]\nattention = 'cudnn'\nprecision = 'bf16'\n[model]\nfamily = 'gemma2'\nscore_cap = "
       "50",
       "run.toml:4: train.attention: must be auto or own with model.score_cap 50; cuDNN's graph "
       "has no cap"},
      {"[train]\nmatmul = 'fp8'\nprecision = 'fp16'",
       "run.toml:4: train.matmul: must be precision with train.precision fp16; fp8 is for bf16"},
      {"[train]\nfp8_weights = 'kept'\nprecision = 'bf16'",
       "run.toml:4: train.fp8_weights: must be again with train.matmul precision; it is for fp8"},
      {"[train]\nfp8_accumulation = 'fast'\nprecision = 'bf16'",
       "run.toml:4: train.fp8_accumulation: must be f32 with train.matmul precision; fast "
       "accumulation is for fp8"},
      {"[train]\nmatmul = 'tf32'\nprecision = 'bf16'",
       "run.toml:4: train.matmul: must be precision with train.precision bf16; tf32 is for fp32"},
      {"[train]\nprecision = 'bf16'\ngrad_accum_dtype = 'fp16'",
       "run.toml:5: train.grad_accum_dtype: must not be fp16 with train.precision bf16, which does "
       "not scale the loss"},
      {"[parallel]\nreduce_dtype = 'fp16'",
       "run.toml:4: parallel.reduce_dtype: must not be fp16 with train.precision fp32, which does "
       "not scale the loss"},
      {"[train]\ndeterministic = 'any-world-size'\n[parallel]\nreduce_dtype = 'bf16'",
       "run.toml:6: parallel.reduce_dtype: must be train.grad_accum_dtype (fp32) with "
       "train.deterministic any-world-size, where every sum of gradients is rounded alike, is "
       "bf16"},
      {"[optim]\nmomentum = 0.9",
       "run.toml:4: optim.momentum: is only for optim.name sgd and muon; leave it out for adamw"},
      {"[optim]\nname = 'muon'\neps1 = 0.1",
       "run.toml:5: optim.eps1: is only for optim.name adafactor; leave it out for muon"},
      {"[optim]\nname = 'muon'\nns_steps = 0",
       "run.toml:5: optim.ns_steps: must be from 1 to 100, is 0"},
      {"[optim]\nname = 'adafactor'\ndecay_rate = 0.8",
       "run.toml:5: optim.decay_rate: must be from -1 to 0, is 0.8"},
      {"[optim]\nname = 'sgd'\nmomentum = 1",
       "run.toml:5: optim.momentum: must be at least 0 and below 1, is 1.0"},
      {"[optim]\nname = 'sgd'\ndampening = 0.5",
       "run.toml:5: optim.dampening: needs optim.momentum above 0, is 0.5"},
      {"[optim]\nname = 'sgd'\nmomentum = 0.9\ndampening = 0.5\nnesterov = true",
       "run.toml:7: optim.nesterov: needs optim.momentum above 0 and optim.dampening 0, which are "
       "0.9 and 0.5"},
      {"[optim]\nname = 'adamx'",
       "run.toml:4: optim.name: must be one of: adamw, adam, sgd, lion, adafactor, muon; it is "
       "\"adamx\"; did you mean "
       "'adamw'?"},
      {"[lr_schedule]\nmin_lr = 1",
       "run.toml:4: lr_schedule.min_lr: must be at most optim.lr (0.0006), is 1"},
      {"[lr_schedule]\nwarmup_steps = 1001",
       "run.toml:4: lr_schedule.warmup_steps: must be at most train.steps (1000), is 1001"},
      {"[lr_schedule]\nwarmup_steps = 9\ntotal_steps = 8",
       "run.toml:4: lr_schedule.warmup_steps: must be at most lr_schedule.total_steps (8), is 9"},
      {"[checkpoint]\nevery = 1",
       "run.toml:4: checkpoint.every: needs a directory in checkpoint.dir"},
  };
  return kLines;
}

TEST_CASE("a bad line is named with its place, key, rule and value", "[config]") {
  const BadLine line = GENERATE(from_range(bad_lines()));
  CHECK(complaint(kData + line.text) == line.complaint);
}

TEST_CASE("an optimizer's own defaults yield to what is given", "[config]") {
  const OptimConfig adam = load(kData + "[optim]\nname = 'adam'\nweight_decay = 0.3").optim;
  CHECK(adam.beta2 == 0.999);
  CHECK(adam.weight_decay == 0.3);
  CHECK(load(kData + "[optim]\nname = 'lion'").optim.lr == 1e-4);
  CHECK(load(kData + "[optim]\nname = 'adamw'").optim.beta2 == OptimConfig().beta2);
}

TEST_CASE("what a row says of settings is of settings, and of values that they take", "[config]") {
  for (const Family& family : families()) {
    for (const auto key : family.keys) CHECK(find_setting("model", key) != nullptr);
  }
  for (const auto& rule : model_rules()) CHECK(find_setting("model", rule.key) != nullptr);
  for (const OptimizerRow& row : optimizers()) {
    CAPTURE(row.name);
    for (const auto key : row.keys) CHECK(find_setting("optim", key) != nullptr);
    for (const auto& rule : row.rules) CHECK(find_setting("optim", rule.key) != nullptr);
    const std::string section = fmt::format("[optim]\nname = '{}'\n", row.name);
    const OptimConfig loaded = load(kData + section).optim;
    std::string given;
    for (const auto& [key, value] : row.defaults) given += fmt::format("{} = {}\n", key, value);
    CHECK(load(kData + section + given).optim.lr == loaded.lr);
  }
}

TEST_CASE("a setting has its family's default until it is given", "[config]") {
  const std::string llama = kData + "[model]\nfamily = 'llama'\n";
  const Setting& tied = *find_setting("model", "tied_head");
  const Setting& activation = *find_setting("model", "activation");
  CHECK(tied.get(load(kData)) == Value(true));
  CHECK(tied.get(load(llama)) == Value(false));
  CHECK(tied.get(load(llama + "tied_head = true")) == Value(true));
  CHECK(activation.get(load(llama)) == Value(std::string("silu")));
  CHECK(activation.get(load(llama + "activation = 'gelu'")) == Value(std::string("gelu")));
  CHECK(complaint(kData + "[model]\nattention_bias = true") == "");  // as it is there
}

TEST_CASE("a model's directory gives the settings that a run leaves out", "[config]") {
  const std::string model = GXP_TEST_DATA "/models/gemma2";
  const std::string key = GENERATE("init", "config");
  const std::string file = GENERATE("", "/config.json");
  const LoadedConfig loaded =
      parse_config(fmt::format("{}[model]\n{} = '{}{}'\n", kData, key, model, file), "run.toml",
                   std::vector<std::string>{"data.sequence=8"});
  CHECK(loaded.run.model.family == "gemma2");
  CHECK(loaded.run.model.score_cap == 1.5);
  CHECK(to_string(loaded.origins.at("model.hidden")) == "from " + model + "/config.json");
  CHECK(to_string(loaded.origins.at("model." + key)) == "run.toml:4");
  CHECK(load(print_config(loaded)).model.resolved() == loaded.run.model.resolved());
}

TEST_CASE("a setting that a run repeats must agree with the model's directory", "[config]") {
  const std::string model = GXP_TEST_DATA "/models/llama-plain";
  const auto with = [&](const std::string& set) {
    return complaint(
        fmt::format("data.train = ['a']\ndata.sequence = 8\nmodel.config = '{}'\n", model), {set});
  };
  CHECK(with("model.hidden=36") == "");
  CHECK(with("model.head_size=0") == "");  // hidden / heads, as it is there
  CHECK(with("model.context=4096") == "");
  CHECK(with("model.hidden=64") ==
        "--set: model.hidden: is 64, but " + model + "/config.json says 36; leave it out");
  CHECK(contains(with("model.tied_head=true"), "model.tied_head: is true, but "));
  CHECK(contains(with("model.family=qwen2"), "model.family: is \"qwen2\", but "));
  CHECK(complaint(kData + "[model]\ninit = '" GXP_TEST_DATA "/models/gpt2-tied'\ncontext = 8") ==
        "run.toml:5: model.context: is 8, but " GXP_TEST_DATA
        "/models/gpt2-tied/config.json says 40; leave it out");
}

TEST_CASE("a directory of a model that gxp does not compute is an error of its setting",
          "[config]") {
  CHECK(contains(complaint(kData + "[model]\nconfig = '" GXP_TEST_DATA "/models/phi3-longrope'"),
                 "run.toml:4: model.config: gxp does not compute the model of " GXP_TEST_DATA
                 "/models/phi3-longrope/config.json: rope_type is longrope"));
  CHECK(complaint(kData + "[model]\ninit = 'no/such/directory'") == "");  // train says so
}

TEST_CASE("number types and strategies go by the names of other programs, too", "[config]") {
  const RunConfig run = load(kData +
                             "[train]\nprecision = 'bfloat16'\ndevice = 'CPU'\n"
                             "[parallel]\nstrategy = 'ZeRO-3'\nreduce_dtype = 'float32'\n");
  CHECK(run.train.precision == NumberType::kBf16);
  CHECK(run.train.device == TrainDevice::kCpu);
  CHECK(run.parallel.strategy == "zero3");
  CHECK(run.parallel.reduce_dtype == NumberType::kFp32);
  CHECK(load(kData, {"parallel.strategy=fsdp"}).parallel.strategy == "full_shard");
  CHECK(complaint(kData, {"parallel.strategy=deepspeed"}) != "");
}

TEST_CASE("every name of another program is answered with a setting of gxp", "[config]") {
  const std::string name = GENERATE("learning_rate", "batch_size", "max_steps", "seq_len",
                                    "gradient_accumulation_steps", "n_layer", "mixed_precision");
  const std::string setting = setting_for_option(name);
  CAPTURE(name, setting);
  CHECK(find_setting(setting.substr(0, setting.find('.')), setting.substr(setting.find('.') + 1)) !=
        nullptr);
  CHECK(setting_called(name).find(setting) != std::string::npos);
}

TEST_CASE("a key before the first section is sent to the section that has it", "[config]") {
  CHECK(complaint("steps = 1\n" + kData) ==
        "run.toml:1: steps: must be in a section; did you mean 'train.steps'?");
  CHECK(complaint("foo = 1\n" + kData) == "run.toml:1: foo: must be in a section");
}

TEST_CASE("text that is not TOML is reported with its line, and nothing else is", "[config]") {
  // The second and third ended the process, within toml++.
  const auto [text, start] = GENERATE(table<std::string, std::string>({
      {"[model]\nhidden = = 3\n", "run.toml:2: not valid TOML: "},
      {"[model]\n[[ =]]\n", "run.toml:2: not valid TOML: a name must follow '['"},
      {"[model]\nx = [0,\n}", "run.toml:1: not valid TOML: it is not TOML; is a list not closed?"},
  }));
  const std::string message = complaint(text);
  CHECK(message.starts_with(start));
  CHECK(message.find('\n') == std::string::npos);
}

TEST_CASE("bad values on the command line and in the environment name their origin", "[config]") {
  const auto [set, message] = GENERATE(table<std::string, std::string>({
      {"optim.lr=-1", "--set: optim.lr: must be positive, is -1.0"},
      {"optim.lr=fast", "--set: optim.lr: must be a number, is \"fast\""},
      {"optim.lr=1\n[train]\nsteps=2",
       "--set: optim.lr: must be a number, is \"1\\u000A[train]\\u000Asteps=2\""},
      {"optim.beta_1=1", "--set: optim.beta_1: unknown key; did you mean 'beta1'?"},
      {"optin.lr=1", "--set: optin: unknown section; did you mean 'optim'?"},
      {"optim.lr", "--set: 'optim.lr': must be SECTION.KEY=VALUE"},
      {"lr=1.5", "--set: 'lr=1.5': must be SECTION.KEY=VALUE"},
  }));
  CHECK(complaint(kData, {set}) == message);
  CHECK(complaint(kData, {}, {{"GXP_OPTIM_CLIPP", "1"}}) ==
        "GXP_OPTIM_CLIPP: optim.clipp: unknown key; did you mean 'clip'?");
}

TEST_CASE("all problems come in one message, in the order of the lines", "[config]") {
  CHECK(complaint("[optim]\nlr = -1\n[model]\nheads = 0\nhidde = 3\n[x]\n", {"a.b=1"}) ==
        "6 problems in the settings\n"
        "run.toml: data.train: must name at least one file\n"
        "run.toml:2: optim.lr: must be positive, is -1.0\n"
        "run.toml:4: model.heads: must be from 1 to 1048576, is 0\n"
        "run.toml:5: model.hidde: unknown key; did you mean 'hidden'?\n"
        "run.toml:6: x: unknown section\n"
        "--set: a: unknown section");
}

TEST_CASE("a file that cannot be read is an error of the system", "[config]") {
  const auto [path, message] = GENERATE(table<std::string, std::string>(
      {{"/nonexistent/run.toml", "read run file /nonexistent/run.toml: No such file or directory"},
       {"/", "read run file /: Is a directory"},
       {"/dev/zero",
        "read run file /dev/zero: it is a device, not a regular file; copy its contents to one"}}));
  try {
    load_config(path);
    FAIL("loaded " << path);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kIo);
    CHECK(error.what() == message);
  }
}

TEST_CASE("TOML that is as deep as it may be is read or refused, not the end of the stack",
          "[config]") {
  std::string text = "[a.a.a.a.a.a.a.a.a]\n";
  for (int i = 0; i < 250; ++i) text += "a.a.a.a.a.a.a.a.a = { ";
  CHECK_FALSE(complaint(text + "b = 1" + std::string(250, '}')).empty());
  std::string deep = "a";
  for (int i = 0; i < 300'000; ++i) deep += ".a";
  CHECK(complaint(deep + " = 1\n") == "run.toml:1: not valid TOML: a key may have 9 parts at most");
}

TEST_CASE("without a file the command line can say all", "[config]") {
  const std::vector<std::string> sets = {"data.train=a", "train.steps=3"};
  CHECK(load_config("", sets).run.train.steps == 3);
  CHECK_THROWS_WITH(load_config(""), "settings: data.train: must name at least one file");
}

}  // namespace gxp
