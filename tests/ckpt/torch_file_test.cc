#include "lib/ckpt/torch/pt_file.h"

#include <nlohmann/json.hpp>

#include "lib/ckpt/torch/optimizer_state.h"
#include "lib/ckpt/torch/state_dict.h"
#include "lib/ckpt/torch/torch_archive.h"
#include "tests/catch.h"
#include "tests/ckpt/torch_samples.h"

namespace gxp {
namespace {

// What expected.json says of train_ckpt.pt, with the optimizer's numbers as the names that they
// have in the order of the model, and its steps left out.
std::map<std::string, std::string> expected_training() {
  const std::vector<std::string> names = {"fc1.weight", "fc1.bias", "bn.weight", "bn.bias",
                                          "fc2.weight"};
  const auto json = nlohmann::json::parse(read_bytes(kTorchFixtures + "train_ckpt.expected.json"));
  std::map<std::string, std::string> result;
  for (const auto& [key, tensor] : json["tensors"].items()) {
    std::string name = "weight " + key.substr(key.find('.') + 1);
    if (key.starts_with("optimizer.")) {
      if (key.ends_with("step")) continue;
      name = (key.ends_with("_sq") ? "adam_v " : "adam_m ") + names[size_t(key[16] - '0')];
    }
    result[name] = fmt::format("{} ({}) {}", tensor["dtype"].get<std::string>(),
                               fmt::join(tensor["shape"].get<std::vector<uint64_t>>(), ", "),
                               tensor["sha256"].get<std::string>());
  }
  return result;
}

// A checkpoint in the making: dicts of tensors, and what else a test puts.
struct PtSample {
  PickleWriter pickle;
  std::vector<NamedTensor> storages;

  void tensor(const std::vector<uint64_t>& shape) {
    storages.push_back(counting_tensor("s", shape, float(storages.size())));
    put_tensor(pickle, storages.back().info, fmt::format("{}", storages.size() - 1));
  }
  void dict(const std::vector<std::pair<std::string, std::vector<uint64_t>>>& tensors) {
    pickle.begin_dict();
    for (const auto& [name, shape] : tensors) {
      pickle.text(name);
      tensor(shape);
    }
    pickle.end_dict();
  }
  std::string write(const TemporaryDirectory& dir) {
    return write_archive(dir, pickle.finish(), storages);
  }
};

struct MatchCase {
  std::string what;
  std::vector<std::pair<std::string, std::vector<uint64_t>>> weights;
  std::vector<std::vector<std::vector<uint64_t>>> groups;  // the shapes; empty: no state
  std::vector<std::string> names;                          // of those with state; none: not known
};

using Weights = std::vector<std::pair<std::string, std::vector<uint64_t>>>;
const Weights kBlock = {{"w1", {4, 2}}, {"b1", {4}}, {"w2", {2, 4}}, {"b2", {2}}};

const std::vector<MatchCase> kMatchCases = {
    {"one group", kBlock, {{{4, 2}, {4}, {2, 4}, {2}}}, {"w1", "b1", "w2", "b2"}},
    {"nanoGPT's groups", kBlock, {{{4, 2}, {2, 4}}, {{4}, {2}}}, {"w1", "w2", "b1", "b2"}},
    {"a frozen weight", kBlock, {{{4, 2}, {}, {2, 4}, {2}}}, {"w1", "w2", "b2"}},
    {"some weights only", kBlock, {{{4}, {2}}}, {"b1", "b2"}},
    {"statistics between",
     {{"w", {3}}, {"n.running_mean", {3}}, {"n.running_var", {3}}, {"b", {3}}},
     {{{3}, {3}}},
     {"w", "b"}},
    {"equal shapes, one left out", {{"a", {3}}, {"b", {3}}, {"c", {3}}}, {{{3}, {3}}}, {}},
    {"equal shapes in two groups", {{"a", {3}}, {"b", {3}}}, {{{3}}, {{3}}}, {}},
    {"another order", kBlock, {{{4}, {4, 2}, {2, 4}, {2}}}, {}},
    {"another shape", kBlock, {{{5, 2}, {4}, {2, 4}, {2}}}, {}},
};

// {"model": ..., "optimizer": ...} with momenta of these shapes.
std::string write_match(const TemporaryDirectory& dir, const MatchCase& match) {
  PtSample sample;
  PickleWriter& pickle = sample.pickle;
  pickle.begin_dict();
  pickle.text("model");
  sample.dict(match.weights);
  pickle.text("optimizer");
  pickle.begin_dict();
  pickle.text("state");
  pickle.begin_dict();
  int64_t index = 0;
  for (const auto& group : match.groups) {
    for (const auto& shape : group) {
      if (!shape.empty()) pickle.integer(index);
      if (!shape.empty()) sample.dict({{"momentum_buffer", shape}});
      ++index;
    }
  }
  pickle.end_dict();
  pickle.text("param_groups");
  pickle.begin_list();
  index = 0;
  for (const auto& group : match.groups) {
    pickle.begin_dict();
    pickle.text("params");
    pickle.begin_list();
    for (size_t i = 0; i < group.size(); ++i) pickle.integer(index++);
    pickle.end_list();
    pickle.text("step");  // where Apex's FusedAdam has it
    pickle.integer(5);
    pickle.end_dict();
  }
  pickle.end_list();
  pickle.end_dict();
  pickle.end_dict();
  return sample.write(dir);
}

}  // namespace

TEST_CASE("a training checkpoint of torch has its moments under the parameters' names", "[ckpt]") {
  const NamedTensors read = read_pt(kTorchFixtures + "train_ckpt.pt");
  CHECK(digests(read) == expected_training());
  CHECK(read.step == 3);
  CHECK(read.metadata.at("loss") == "0.125");
  CHECK(read.metadata.at("name") == "run-\u00e9");
  CHECK(read.metadata.at("big") == "1099511627776");
  CHECK(verify_pt(kTorchFixtures + "train_ckpt.pt") == 1);
  CHECK(verify_pt(kTorchFixtures + "state_dict_legacy_nozip.pt") == 0);
}

TEST_CASE("torch's files are recognised by content, and damaged ones by name", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const char* name : {"state_dict.pt", "state_dict_legacy_nozip.pt", "train_ckpt.pt"}) {
    std::filesystem::copy(kTorchFixtures + name, dir / "model.bin");
    CHECK(format_at(dir / "model.bin").name == "pt");
    std::filesystem::remove(dir / "model.bin");
  }
  write_bytes(dir / "empty.pt", "");
  write_bytes(dir / "other.zip", "PK\3\4" + std::string(100, '\0'));
  CHECK(is_pt(dir / "empty.pt"));
  CHECK_FALSE(is_pt(dir / "other.zip"));
  CHECK_FALSE(is_pt(dir / "absent.pt"));
  CHECK_FALSE(is_pt(dir.path()));
  CHECK(error_of([&] { read_pt(dir / "empty.pt"); }).kind == ErrorKind::kCorrupt);
}

TEST_CASE("a training run survives torch's format and back, bit by bit", "[ckpt]") {
  const TemporaryDirectory dir;
  const NamedTensors run = training_run();
  write_checkpoint(run, find_format("pt"), dir / "a.pt", {});
  const NamedTensors read = read_checkpoint(dir / "a.pt");
  CHECK(digests(read) == digests(run));
  CHECK(read.config == run.config);
  CHECK(read.state == run.state);
  CHECK(read.step == 7);
  CHECK(read.samples_consumed == 99);
  CHECK(read.metadata.empty());
}

TEST_CASE("a training run is written as torch's optimizers save it", "[ckpt]") {
  const TemporaryDirectory dir;
  write_pt(training_run(), dir / "a.pt", {});
  const auto archive = TorchArchive::open(FileRange::open(dir / "a.pt"));
  const PickleValue optimizer = member(archive.root(), "optimizer", "x");
  const PickleValue state = member(optimizer, "state", "x");
  REQUIRE(state.size() == 2);
  for (const char* key : {"step", "exp_avg", "exp_avg_sq"})
    CHECK(is_tensor(member(state.value(0), key, "x")));
  const std::string common =
      "'betas': (0.9, 0.999), 'eps': 1e-08, 'amsgrad': False, 'capturable': False, 'maximize': "
      "False, 'differentiable': False, 'foreach': None, 'fused': None, 'decoupled_weight_decay': "
      "True, ";
  CHECK(render(member(optimizer, "param_groups", "x")) ==
        "[{'lr': 0.25, 'weight_decay': 0.01, " + common +
            "'params': [0], 'param_names': ['w']}, {'lr': 0.25, 'weight_decay': 0, " + common +
            "'params': [1], 'param_names': ['b']}]");
}

TEST_CASE("optimizer state goes to the one weight that it can be of, or to none", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const MatchCase& match : kMatchCases) {
    CAPTURE(match.what);
    const NamedTensors read = read_pt(write_match(dir, match));
    std::vector<std::string> names;
    for (const NamedTensor& tensor : read.tensors)
      if (tensor.info.role == Role::kMomentum) names.push_back(tensor.info.name);
    CHECK(names == match.names);
    CHECK(read.step == (names.empty() ? std::nullopt : std::optional<uint64_t>(5)));
  }
}

TEST_CASE("a tied head is no parameter of its own", "[ckpt]") {
  const TemporaryDirectory dir;
  const NamedTensors two = read_pt(kTorchFixtures + "state_dict.pt");
  CHECK(sha256_hex(*find_tensor(two, "tied.a")) == sha256_hex(*find_tensor(two, "tied.b")));
  PtSample sample;
  sample.pickle.begin_dict();
  sample.pickle.text("state_dict");
  sample.pickle.begin_dict();
  const TensorInfo info = counting_tensor("", {2}).info;
  sample.storages.push_back(counting_tensor("", {2}));
  for (const char* name : {"a", "b"}) {
    sample.pickle.text(name);
    put_tensor(sample.pickle, info, "0");
  }
  sample.pickle.end_dict();
  sample.pickle.text("optimizer_states");
  sample.pickle.begin_list();
  sample.pickle.begin_dict();
  sample.pickle.text("state");
  sample.pickle.begin_dict();
  sample.pickle.integer(0);
  sample.dict({{"exp_avg", {2}}});
  sample.pickle.end_dict();
  sample.pickle.text("param_groups");
  sample.pickle.begin_list();
  sample.pickle.begin_dict();
  sample.pickle.text("params");
  sample.pickle.begin_list();
  sample.pickle.integer(0);
  for (int i = 0; i < 2; ++i) {
    sample.pickle.end_list();
    sample.pickle.end_dict();
  }
  sample.pickle.end_list();
  sample.pickle.end_dict();
  const NamedTensors read = read_pt(sample.write(dir));
  CHECK(find_tensor(read, "a", Role::kAdamM) != nullptr);
  CHECK(read.tensors.size() == 3);
}

TEST_CASE("optimizer state that is kept by name needs no groups", "[ckpt]") {
  const TemporaryDirectory dir;
  PtSample sample;
  PickleWriter& pickle = sample.pickle;
  pickle.begin_dict();
  for (const char* part : {"model", "optim"}) {
    pickle.text(part);
    if (part == std::string("model")) {
      sample.dict({{"a", {3}}, {"b", {3}}});
      continue;
    }
    pickle.begin_dict();
    pickle.text("state");
    pickle.begin_dict();
    pickle.text("b");
    sample.dict({{"exp_avg", {3}}, {"max_exp_avg_sq", {3}}});
    pickle.end_dict();
    pickle.end_dict();
  }
  pickle.end_dict();
  const NamedTensors read = read_pt(sample.write(dir));
  CHECK(find_tensor(read, "b", Role::kAdamM) != nullptr);
  CHECK(read.tensors.size() == 3);
}

TEST_CASE("nested state dicts have names joined by dots", "[ckpt]") {
  const TemporaryDirectory dir;
  PtSample sample;
  sample.pickle.begin_dict();
  sample.pickle.text("net");
  sample.pickle.begin_list();
  sample.dict({{"w", {1}}, {"b", {2}}});
  sample.dict({{"w", {3}}});
  sample.pickle.end_list();
  sample.pickle.integer(5);
  sample.tensor({4});
  sample.pickle.text("epoch");
  sample.pickle.integer(5);
  sample.pickle.end_dict();
  std::vector<std::string> names;
  for (const NamedTensor& tensor : read_pt(sample.write(dir)).tensors)
    names.push_back(tensor.info.name);
  CHECK(names == std::vector<std::string>{"net.0.w", "net.0.b", "net.1.w", "5"});
}

TEST_CASE("every hostile state dict is refused with the file's name and the fault", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string head = "\x80\x02";
  std::string deep, laughs = "}q";  // q, h, 0: put into the memo, get, drop
  for (int i = 0; i < 70; ++i) deep += "}X" + std::string("\1\0\0\0a", 5);
  deep += "N" + std::string(70, 's');
  laughs += '\0';
  for (int i = 1; i < 40; ++i)  // each dict has the one before it under two keys
    laughs += std::string("0}(K\1h") + char(i - 1) + "K\2h" + char(i - 1) + "uq" + char(i);
  const auto text = [](const std::string& word) {
    return std::string("X") + char(word.size()) + std::string(3, '\0') + word;
  };
  const std::string system = "cposix\nsystem\n(" + text("id") + "tR";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {system, "a dict of tensors expected, found posix.system(...); save a state_dict()"},
      {"c__main__\nNet\n)\x81}b", "found __main__.Net(...)"},
      {"}" + text("w") + system + "s", "'w' is posix.system(...), which gxp does not know"},
      {"}" + text("m") + "}" + text("w") + system + "ss", "'m.w' is posix.system(...)"},
      {"}" + text("model") + "}" + text("w") + system + "ss", "'w' is posix.system(...)"},
      {"}" + text("w") + "ctorch._utils\n_rebuild_tensor_v2\n)Rs", "tensor 'w': the call that"},
      {deep, "nested deeper than 64"},
      {laughs, "1048576 values"},
      {"}(" + text("model") + "}" + text("model") + "}u", "the key 'model' occurs twice"},
  };
  for (const auto& [opcodes, words] : cases) {
    CAPTURE(words);
    const std::string path = write_archive(dir, head + opcodes + ".", {});
    const auto error = error_of([&] { read_pt(path); });
    CHECK(error.kind == ErrorKind::kCorrupt);
    CHECK_THAT(error.message, Catch::Matchers::Contains(path) && Catch::Matchers::Contains(words));
  }
}

TEST_CASE("tensors' names are texts, not empty, and occur once", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto refused = [&](const std::function<void(PickleWriter&)>& put_key) {
    PtSample sample;
    sample.pickle.begin_dict();
    for (int i = 0; i < 2; ++i) {
      put_key(sample.pickle);
      sample.tensor({1});
    }
    sample.pickle.end_dict();
    return error_of([&] { read_pt(sample.write(dir)); }).message;
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(refused([](auto& pickle) { pickle.text("w"); }), Contains("tensor 'w' occurs twice"));
  CHECK_THAT(refused([](auto& pickle) { pickle.text(""); }), Contains("is empty or holds a NUL"));
  CHECK_THAT(refused([](auto& pickle) { pickle.text({"a\0", 2}); }), Contains("holds a NUL"));
  CHECK_THAT(refused([](auto& pickle) { pickle.real(1); }),
             Contains("number 1 is not a tensor name"));
}

TEST_CASE("views of one storage do not make a small file a large checkpoint", "[ckpt]") {
  const TemporaryDirectory dir;
  PtSample sample;
  sample.storages.push_back(counting_tensor("", {1 << 20}));
  sample.pickle.begin_dict();
  for (int i = 0; i < 30; ++i) {
    sample.pickle.text(fmt::format("view{}", i));
    put_tensor(sample.pickle, sample.storages[0].info, "0");
  }
  sample.pickle.end_dict();
  CHECK_THAT(error_of([&] { read_pt(sample.write(dir)); }).message,
             Catch::Matchers::Contains("claim more than 8 times the file's"));
}

TEST_CASE("an archive that was saved without CRCs is read", "[ckpt]") {
  const TemporaryDirectory dir;
  std::string bytes = read_bytes(kTorchFixtures + "state_dict.pt");
  for (size_t at = bytes.find("PK\1\2"); at != std::string::npos; at = bytes.find("PK\1\2", at + 4))
    bytes.replace(at + 16, 4, 4, '\0');
  write_bytes(dir / "a.pt", bytes);
  CHECK(verify_pt(dir / "a.pt") == 0);
  CHECK(digests(read_pt(dir / "a.pt")) == digests(read_pt(kTorchFixtures + "state_dict.pt")));
}

}  // namespace gxp
