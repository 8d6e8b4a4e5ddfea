#include "lib/ckpt/torch/dcp.h"

#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "lib/ckpt/torch/dcp_metadata.h"
#include "lib/ckpt/torch/dcp_metadata_writer.h"
#include "lib/ckpt/torch/dcp_names.h"
#include "tests/catch.h"
#include "tests/ckpt/torch_samples.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using Names = std::vector<std::string>;

const std::string kDcpFixture = GXP_TEST_DATA "/ckpt/dcp_fsdp2";

// What expected.json says, without the steps of parameters.
std::map<std::string, std::string> expected_dcp() {
  const auto json = nlohmann::json::parse(read_bytes(kDcpFixture + "/expected.json"));
  std::map<std::string, std::string> result;
  for (const auto& [key, tensor] : json["tensors"].items()) {
    std::string name = "weight " + key.substr(key.find('.') + 1);
    if (key.starts_with("optim.")) {
      if (key.ends_with(".step")) continue;
      const std::string parameter = key.substr(12, key.rfind('.') - 12);  // after "optim.state."
      name = (key.ends_with("_sq") ? "adam_v " : "adam_m ") + parameter;
    }
    result[name] = fmt::format("{} ({}) {}", tensor["dtype"].get<std::string>(),
                               fmt::join(tensor["shape"].get<std::vector<uint64_t>>(), ", "),
                               tensor["sha256"].get<std::string>());
  }
  return result;
}

// A copy of the fixture, for damaging.
std::string copy_dcp(const TemporaryDirectory& dir) {
  std::string path = dir / "dcp";
  fs::remove_all(path);
  fs::copy(kDcpFixture, path);
  for (const auto& entry : fs::directory_iterator(path))
    fs::permissions(entry.path(), fs::perms::owner_all);
  return path;
}

void check_dcp_refused(const std::string& path, const std::string& words) {
  CAPTURE(words);
  const auto error = error_of([&] { read_dcp(path); });
  CHECK(error.kind == ErrorKind::kCorrupt);
  CHECK_THAT(error.message, Contains(path) && Contains(words));
}

// `from` in .metadata is replaced by `to` of the same length, wherever it is.
struct DcpEdit {
  std::string from, to, words;
};

const std::string kRow7 = {'K', 7, 'K', 0, '\x86'}, kRow6 = {'K', 6, 'K', 0, '\x86'},
                  kRow9 = {'K', 9, 'K', 0, '\x86'};
const std::vector<DcpEdit> kDcpEdits = {
    {"__0_0.distcp", "../../../etc", "not the name of a file beside .metadata"},
    {"__0_0.distcp", "/etc/./hosts", "not the name of a file"},
    {"TensorStorageMetadata", "TensorStorageMetadatX",
     "metadata.TensorStorageMetadata expected, found torch.distributed.checkpoint.metadata."
     "TensorStorageMetadatX(...)"},
    {"MetadataIndex", "MetadataIndeX", "MetadataIndex expected, found"},
    {"_StorageInfo", "_StorageInfX", "_StorageInfo expected"},
    {"ChunkStorageMetadata", "ChunkStorageMetadatX", "ChunkStorageMetadata expected"},
    {"TensorProperties", "TensorPropertieX", "TensorProperties expected"},
    {"BytesStorageMetadata", "BytesStorageMetadatX", "TensorStorageMetadata expected, found"},
    {"torch.strided", "torch.stridex", "layout torch.serialization._get_layout(...)"},
    {"_get_layout", "_get_layouX", "layout torch.serialization._get_layouX(...)"},
    {"float32", "float33", "element type torch.float33 is not supported"},
    {"storage_data", "storage_datX", "'storage_data' is missing"},
    {"state_dict_metadata", "state_dict_metadatX", "'state_dict_metadata' is missing"},
    {"planner_data", "planner_datX", "'planner_data' is missing"},
    {"relative_path", "relative_patX", "'relative_path' is missing"},
    {"\nemb.weight", "\nemb.weighX", "'model.emb.weight': planner_data has a tuple of 2"},
    {kRow7, kRow6, "chunk at (6, 0) of size (6, 6) overlaps the one at (0, 0) of size (7, 6)"},
    {kRow7, kRow9, "chunk at (9, 0) of size (6, 6) reaches beyond the tensor's shape (13, 6)"},
    {{'K', 13, 'K', 6}, {'K', 14, 'K', 6}, "6 of its 84 elements are in no chunk"},
    {{'M', '\xa9', 6}, {'M', '\xff', 7}, "overlaps the one at"},
};

using DcpEntries = std::vector<DcpWritten>;

// The run is written, and .metadata made again with a change.
std::string write_changed(const TemporaryDirectory& dir,
                          const std::function<void(DcpEntries&)>& change) {
  const std::string path = dir / "dcp";
  fs::remove_all(path);
  write_checkpoint(training_run(), find_format("dcp"), path, {});
  const DcpMetadata metadata = read_dcp_metadata(FileRange::open(path + "/.metadata"));
  DcpEntries entries;
  for (const DcpTensor& tensor : metadata.tensors)
    entries.push_back({tensor.key,
                       TensorInfo{tensor.key.text, Role::kWeight, tensor.dtype, tensor.shape},
                       tensor.places[0]});
  for (const DcpObject& object : metadata.objects)
    entries.push_back({object.key, std::nullopt, object.place});
  change(entries);
  write_bytes(path + "/.metadata", make_dcp_metadata(entries, metadata.files));
  return path;
}

struct NamingCase {
  std::string what;
  std::vector<std::pair<Names, std::string>> tensors;  // path, and what it is: "adam_m w"
};

const std::vector<NamingCase> kNamingCases = {
    {"flat", {{{"a.w"}, "weight a.w"}, {{"b"}, "weight b"}}},
    {"model and optimizer",
     {{{"model", "a.w"}, "weight a.w"},
      {{"optim", "state", "a.w", "exp_avg"}, "adam_m a.w"},
      {{"optim", "state", "a.w", "step"}, "step"},
      {{"optim", "state", "a.w", "max_exp_avg_sq"}, "left out"}}},
    {"an application's state",
     {{{"app", "model", "w"}, "weight w"},
      {{"app", "optim", "state", "w", "momentum_buffer"}, "momentum w"}}},
    {"torchtitan",
     {{{"layers.0.w"}, "weight layers.0.w"},
      {{"optimizer", "state.layers.0.w.exp_avg_sq"}, "adam_v layers.0.w"},
      {{"train_state", "step"}, "step"}}},
    {"not nested",
     {{{"model.w"}, "weight model.w"}, {{"optim.state.model.w.exp_avg"}, "adam_m model.w"}}},
    {"two models",
     {{{"model", "w"}, "weight w"},
      {{"ema", "w"}, "weight ema.w"},
      {{"optim", "state", "w", "exp_avg"}, "adam_m w"}}},
    {"a generator beside the model", {{{"model", "w"}, "weight w"}, {{"rng"}, "weight rng"}}},
    {"names that would meet", {{{"model", "w"}, "weight model.w"}, {{"w"}, "weight w"}}},
    {"nested modules", {{{"net", "enc", "w"}, "weight enc.w"}, {{"net", "w"}, "weight w"}}},
    {"numbers", {{{"model", "w"}, "weight w"}, {{"optim", "state", "0", "exp_avg"}, "left out"}}},
    {"misleading weights",
     {{{"model", "state.w.exp_avg"}, "weight state.w.exp_avg"},
      {{"model", "step"}, "weight step"}}},
};

std::string describe(const DcpName& name) {
  switch (name.use) {
    case DcpUse::kStep:
      return "step";
    case DcpUse::kLeftOut:
      return "left out";
    default:
      return fmt::format("{} {}", to_string(name.role), name.name);
  }
}

// The lines that dcp_peer.py prints; nothing where there is no torch.
std::optional<Names> load_with_torch(const std::string& path) {
  const char* python = std::getenv("GXP_PEER_PYTHON");
  const std::string command =
      fmt::format("{} {}/../ckpt/peers/dcp_peer.py {} 2>{}.err",
                  python == nullptr ? "python3" : python, GXP_TEST_DATA, path, path);
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer;
  while (const size_t bytes = std::fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), bytes);
  const int status = ::pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)
    return std::nullopt;
  INFO(read_bytes(path + ".err"));
  REQUIRE(status == 0);
  Names lines;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  return lines;
}

}  // namespace

TEST_CASE("an FSDP run of two ranks has the values that torch has recorded", "[ckpt]") {
  const NamedTensors read = read_checkpoint(kDcpFixture);
  CHECK(read.format == "dcp");
  CHECK(digests(read) == expected_dcp());
  CHECK(read.step == 3);
  CHECK(read.world_size == 2);
  CHECK(read.metadata.at("tag") == "seed2001");
  CHECK(read.metadata.at("optim.param_groups.1.lr") == "0.01");
  CHECK(verify_dcp(kDcpFixture) == 2);
}

TEST_CASE("a training run survives DCP and back, bit by bit, in any number of files", "[ckpt]") {
  const TemporaryDirectory dir;
  const uint64_t shard_bytes = GENERATE(uint64_t{1}, uint64_t{20}, uint64_t{5'000'000'000});
  const NamedTensors run = training_run();
  write_checkpoint(run, find_format("dcp"), dir / "out", {.shard_bytes = shard_bytes});
  const NamedTensors read = read_checkpoint(dir / "out");
  CHECK(digests(read) == digests(run));
  CHECK(read.config == run.config);
  CHECK(read.state == run.state);
  CHECK(read.step == 7);
  CHECK(read.samples_consumed == 99);
  const Names files = list(dir / "out");
  CHECK(files[0] == ".metadata");
  CHECK((shard_bytes < 5000) == (files.size() > 2));
  CHECK(std::ranges::all_of(files, is_dcp_file));
  CHECK(verify_dcp(dir / "out") == files.size() - 1);
}

TEST_CASE("an FSDP run survives gxp's format and DCP", "[ckpt]") {
  const TemporaryDirectory dir;
  write_checkpoint(read_checkpoint(kDcpFixture), find_format("gxp"), dir / "gxp", {});
  write_checkpoint(read_checkpoint(dir / "gxp"), find_format("dcp"), dir / "dcp", {});
  const NamedTensors read = read_checkpoint(dir / "dcp");
  CHECK(digests(read) == expected_dcp());
  CHECK(read.step == 3);
}

TEST_CASE("weights and optimizer state of DCP are told apart and named", "[ckpt]") {
  for (const NamingCase& naming : kNamingCases) {
    CAPTURE(naming.what);
    std::vector<DcpTensor> tensors;
    Names expected, found;
    for (const auto& [path, name] : naming.tensors) {
      const bool is_scalar = path.back().ends_with("step");
      tensors.push_back({.key = {fmt::format("{}", fmt::join(path, ".")), path}});
      if (!is_scalar) tensors.back().shape = {2};
      expected.push_back(name);
    }
    for (const DcpName& name : name_dcp_tensors(tensors)) found.push_back(describe(name));
    CHECK(found == expected);
  }
}

TEST_CASE("a DCP directory with a hostile .metadata is refused with its name and the fault",
          "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string good = read_bytes(kDcpFixture + "/.metadata");
  for (const DcpEdit& edit : kDcpEdits) {
    const std::string path = copy_dcp(dir);
    std::string bytes = good;
    REQUIRE(edit.from.size() == edit.to.size());
    REQUIRE(bytes.find(edit.from) != std::string::npos);
    for (size_t at = 0; (at = bytes.find(edit.from, at)) != std::string::npos; ++at)
      bytes.replace(at, edit.to.size(), edit.to);
    write_bytes(path + "/.metadata", bytes);
    check_dcp_refused(path, edit.words);
  }
  const std::string path = copy_dcp(dir);
  write_bytes(path + "/.metadata", good + "x");
  check_dcp_refused(path, "1 bytes after its pickle");
  const std::string call("\x80\2cposix\nsystem\nX\2\0\0\0id\x85R.", 26);
  write_bytes(path + "/.metadata", call);
  check_dcp_refused(path, "metadata.Metadata expected, found posix.system(...)");
}

TEST_CASE("a .metadata that its files contradict is refused", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::vector<std::pair<std::function<void(DcpEntries&)>, std::string>> cases = {
      {[](DcpEntries& all) { all.push_back(all[0]); }, "it occurs twice in planner_data"},
      {[](DcpEntries& all) { all[1].place = all[0].place; }, "overlaps the one at 0"},
      {[](DcpEntries& all) { std::swap(all[0].place, all[1].place); },
       "at 1577 holds F32 of shape (3)"},
      {[](DcpEntries& all) { all[0].tensor->dtype = StorageDType::kI32; }, ".metadata tells I32"},
      {[](DcpEntries& all) {
         all[0].tensor->shape = {3, 2};
       },
       "holds F32 of shape (2, 3)"},
      {[](DcpEntries& all) { all[0].place.bytes -= 1; }, "no end record"},
      {[](DcpEntries& all) {
         all[0].place = {0, 1, 1576};
       },
       "zip64 end record"},
      {[](DcpEntries& all) { all[0].place.bytes = uint64_t{1} << 62; }, "beyond the end"},
      {[](DcpEntries& all) { all[0].place.offset = uint64_t{1} << 62; }, "beyond the end"},
      {[](DcpEntries& all) { all[0].place.bytes = 0; }, "no end record"},
      {[](DcpEntries& all) { all[0].key.path = {"model"}; }, "planner_data has a tuple of 1"},
      {[](DcpEntries& all) { all[0].key.text = ""; }, "is not a key"},
      {[](DcpEntries& all) { all[2].tensor->shape = {7}; }, "holds F32 of shape (2, 3)"},
  };
  for (const auto& [change, words] : cases) check_dcp_refused(write_changed(dir, change), words);
}

TEST_CASE("a DCP directory without .metadata or without a file is no checkpoint", "[ckpt]") {
  const TemporaryDirectory dir;
  std::string path = copy_dcp(dir);
  fs::resize_file(path + "/__1_0.distcp", 72000);
  check_dcp_refused(path, "__1_0.distcp: an archive that .metadata names would take 1577 bytes at");
  fs::remove(path + "/__1_0.distcp");
  CHECK(error_of([&] { read_dcp(path); }).kind == ErrorKind::kIo);
  CHECK_THAT(error_of([&] { read_dcp(path); }).message, Contains("__1_0.distcp"));
  fs::rename(path + "/.metadata", path + "/__0.metadata");
  check_dcp_refused(path, "each rank has written a __0.metadata of its own");
  fs::remove(path + "/__0.metadata");
  CHECK(format_at(path).name == "dcp");
  check_dcp_refused(path, ".metadata is missing; a save writes it last");
}

TEST_CASE("a changed element in a DCP file is found by verification", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string path = copy_dcp(dir);
  std::string bytes = read_bytes(path + "/__0_0.distcp");
  bytes[bytes.find("archive/data/0") + 100] ^= 1;
  write_bytes(path + "/__0_0.distcp", bytes);
  CHECK_THAT(error_of([&] { verify_dcp(path); }).message, Contains("CRC-32"));
}

TEST_CASE("torch.distributed.checkpoint goes on from what is written", "[ckpt]") {
  const TemporaryDirectory dir;
  const NamedTensors run = training_run();
  write_checkpoint(run, find_format("dcp"), dir / "out", {});
  const auto lines = load_with_torch(dir / "out");
  if (!lines) {
    WARN("skipped: python3, or GXP_PEER_PYTHON, has no torch");
    return;
  }
  Names expected;
  for (const std::string name : {"w", "b"}) {
    for (const Role role : {Role::kWeight, Role::kAdamM, Role::kAdamV})
      expected.push_back(fmt::format("{} {} {}", to_string(role), name,
                                     sha256_hex(*find_tensor(run, name, role))));
    expected.emplace_back("step 7");
  }
  for (const char* decay : {"0.01", "0.0"})
    expected.push_back(fmt::format("group 0.25 {} (0.9, 0.999)", decay));
  expected.insert(expected.end(), {"step 7", "gxp 99"});
  CHECK(*lines == expected);
}

}  // namespace gxp
