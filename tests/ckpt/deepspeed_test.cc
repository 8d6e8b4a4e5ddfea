#include <nlohmann/json.hpp>

#include "lib/ckpt/format.h"
#include "lib/ckpt/zip/zip_archive.h"
#include "lib/ckpt/zip/zip_writer.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

const std::string kZeroFixtures = GXP_TEST_DATA "/ckpt/";

nlohmann::json expected_zero(const std::string& fixture) {
  return nlohmann::json::parse(read_bytes(kZeroFixtures + fixture + "/expected.json"));
}

// "F32 (11, 5) SHA-256", as digests() has it.
std::string zero_digest(const nlohmann::json& entry) {
  return fmt::format("{} ({}) {}", entry["dtype"].get<std::string>(),
                     fmt::join(entry["shape"].get<std::vector<uint64_t>>(), ", "),
                     entry["sha256"].get<std::string>());
}

// What zero_to_fp32 gives, and the moments.
std::map<std::string, std::string> expected_digests(const nlohmann::json& expected) {
  std::map<std::string, std::string> digests;
  for (const auto& [name, entry] : expected["tensors"].items())
    digests["weight " + name] = zero_digest(entry);
  for (const auto& [name, entry] : expected["optimizer"].items()) {
    const size_t dot = name.rfind('.');
    const std::string key = name.substr(dot + 1);
    if (key == "fp32") continue;
    digests[(key == "exp_avg" ? "adam_m " : "adam_v ") + name.substr(0, dot)] = zero_digest(entry);
  }
  return digests;
}

}  // namespace

TEST_CASE("a ZeRO checkpoint has the weights of zero_to_fp32 and the optimizer's moments",
          "[ckpt][deepspeed]") {
  const std::string fixture =
      GENERATE("ds_zero1_fp32", "ds_zero2_bf16", "ds_zero3_bf16", "ds_zero2_bf16_paramalign");
  CAPTURE(fixture);
  const nlohmann::json expected = expected_zero(fixture);
  const NamedTensors tensors = read_checkpoint(kZeroFixtures + fixture);
  auto found = digests(tensors);
  // DeepSpeed's tool loses a frozen parameter of stage 1.
  if (expected["stage"] == 1) CHECK(found.erase("weight frozen.weight") == 1);
  CHECK(found == expected_digests(expected));
  CHECK(tensors.format == "deepspeed");
  CHECK(tensors.strategy == fmt::format("zero{}", expected["stage"].get<int>()));
  CHECK(tensors.step == 2);
  CHECK(tensors.samples_consumed == 8);
  CHECK(tensors.world_size == 2);
  CHECK(tensors.metadata.at("samples") == "123");
  CHECK(digests(read_checkpoint(kZeroFixtures + fixture + "/global_step2")) == digests(tensors));
}

TEST_CASE("a ZeRO checkpoint is read from any element on", "[ckpt][deepspeed]") {
  const std::string fixture =
      GENERATE("ds_zero1_fp32", "ds_zero3_bf16", "ds_zero2_bf16_paramalign");
  CAPTURE(fixture);
  for (const NamedTensor& tensor : read_checkpoint(kZeroFixtures + fixture).tensors) {
    CAPTURE(tensor.info.name);
    const size_t element = size_of(tensor.info.dtype);
    std::string whole(tensor.info.bytes(), '\0'), part;
    tensor.read(0, memory_of(whole));
    for (uint64_t begin = 0; begin < tensor.info.count(); ++begin) {
      part.assign(std::min<size_t>(7 * element, whole.size() - begin * element), '\0');
      tensor.read(begin, memory_of(part));
      CHECK(part == whole.substr(begin * element, part.size()));
    }
  }
}

TEST_CASE("DeepSpeed's own format is read, not written", "[ckpt][deepspeed]") {
  const auto names = format_names();
  CHECK(std::ranges::find(names, "deepspeed") == names.end());
  const auto error = error_of([] { find_format("deepspeed"); });
  CHECK(error.kind == ErrorKind::kUsage);
  CHECK(error.says("does not write"));
}

namespace {

// What is done to a copy of a fixture's files, and words that the error must have.
struct ZeroFileChange {
  const char* fixture;
  std::function<void(const std::string& tag)> change;
  const char* words;
};

const std::string kOptim = "/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt";
const std::string kOptim0 = "/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt";

std::function<void(const std::string&)> renamed(const std::string& from, const std::string& to) {
  return [=](const std::string& tag) { fs::rename(tag + from, tag + to); };
}

std::function<void(const std::string&)> added(const std::string& name) {
  return [=](const std::string& tag) { write_bytes(tag + name, "x"); };
}

const ZeroFileChange kZeroFileChanges[] = {
    {"ds_zero2_bf16", [](const std::string& tag) { write_bytes(tag + "/../latest", "../etc"); },
     "is not the name of a directory"},
    {"ds_zero2_bf16", renamed(kOptim, "/gone"), "2 partitions, but the files are of 1 ranks"},
    {"ds_zero2_bf16", renamed(kOptim0, "/gone"), "is missing for rank 0"},
    {"ds_zero2_bf16", renamed("/mp_rank_00_model_states.pt", "/gone"), "stage 2 needs"},
    {"ds_zero2_bf16", added("/zero_pp_rank_1_mp_rank_00_optim_states.pt"), "has the same rank"},
    {"ds_zero2_bf16", added("/mp_rank_01_model_states.pt"), "tensor parallel rank 1"},
    {"ds_zero2_bf16", added("/layer_0_expert_0_mp_rank_00_model_states.pt"), "experts (MoE)"},
    {"ds_zero2_bf16", added("/expp_rank_0_mp_rank_00_optim_states.pt"), "experts (MoE)"},
    {"ds_zero2_bf16", added("/layer_00-model_00-model_states.pt"), "pipeline stage"},
    {"ds_zero2_bf16", added("/offloaded_tensors"), "NVMe"},
    {"ds_zero2_bf16", added("/zero_pp_rank_0_mp_rank_00_model_states.pt"), "two checkpoints"},
    {"ds_zero3_bf16", renamed("/zero_pp_rank_1_mp_rank_00_model_states.pt", "/gone"),
     "dp_world_size is 2, but there are model states of 1 ranks"},
    {"ds_zero2_bf16",
     [](const std::string& tag) {
       fs::copy_file(tag + kOptim0, tag + kOptim, fs::copy_options::overwrite_existing);
     },
     "group_paddings says 0"},
};

void check_refused_after(const ZeroFileChange& row) {
  CAPTURE(row.words);
  const TemporaryDirectory dir;
  fs::copy(kZeroFixtures + row.fixture, dir / "run", fs::copy_options::recursive);
  row.change(dir / "run/global_step2");
  const auto [kind, message] = error_of([&] { read_checkpoint(dir / "run"); });
  CHECK(kind == ErrorKind::kCorrupt);
  CHECK_THAT(message, Catch::Matchers::Contains(row.words));
}

}  // namespace

TEST_CASE("files of a ZeRO checkpoint that do not belong together are refused",
          "[ckpt][deepspeed]") {
  for (const ZeroFileChange& row : kZeroFileChanges) check_refused_after(row);
}

namespace {

// Rewrites the archive with the last `from` in its pickle replaced by `to`.
void patch_pickle(const std::string& path, const std::string& from, const std::string& to) {
  {
    const ZipArchive zip = ZipArchive::open(FileRange::open(path));
    OutputFile file(path + ".new");
    ZipWriter writer(file);
    for (const ZipMember& member : zip.members()) {
      std::string payload = zip.read(member, 1 << 20);
      const size_t at = member.name.ends_with("/data.pkl") ? payload.rfind(from) : 0;
      REQUIRE(at != std::string::npos);
      if (member.name.ends_with("/data.pkl")) payload.replace(at, from.size(), to);
      writer.add(member.name, payload);
    }
    writer.finish();
    file.close();
  }
  fs::rename(path + ".new", path);
}

struct ZeroPatch {
  const char* fixture;
  std::string file;
  std::string from;  // opcodes: K is a number of one byte, \x85 and \x86 make tuples, e ends a list
  std::string to;
  const char* words;
};

const std::string kModule = "/mp_rank_00_model_states.pt";
const std::string kModule1 = "/zero_pp_rank_1_mp_rank_00_model_states.pt";

const ZeroPatch kZeroPatches[] = {
    {"ds_zero2_bf16", kOptim,
     "K\x03K\x03"
     "e",
     "K\x03K\x02"
     "e",
     "group_paddings says 2, but 3"},
    {"ds_zero2_bf16", kOptim, "K\x1a", "K\x1b", "put parameter 'down.weight' elsewhere"},
    {"ds_zero2_bf16", kOptim, "down.weight", "down.weighs", "elsewhere than the shapes"},
    {"ds_zero2_bf16", kOptim,
     "K\x02K\x02"
     "e",
     "K\x02K\x03"
     "e",
     "3 partitions, but the files are of 2"},
    {"ds_zero2_bf16", kOptim, "K\x02\x85", "K\x05\x85", "the stage is 5"},
    {"ds_zero2_bf16", kOptim, "K\x02\x85", "K\x01\x85", "stage 1, but rank 0 has stage 2"},
    {"ds_zero2_bf16", kOptim, "K=", "K<", "60 elements of weight; the shapes require 61"},
    {"ds_zero2_bf16", kOptim, "K=", "KA", "reaches beyond its storage"},
    {"ds_zero2_bf16", kOptim, "exp_avg_sq", "exp_avg_sr", "keeps other tensors"},
    {"ds_zero2_bf16", kOptim, "ctorch._utils\n_rebuild_tensor_v2\n", "cos\nsystem\n", "os.system"},
    {"ds_zero2_bf16", kOptim, "fragment_address\n", "fragment_addressed\n",
     "not a fragment_address"},
    {"ds_zero2_bf16", kOptim, "single_partition_of_fp32_groups", "single_partition_of_fp32_groupz",
     "'single_partition_of_fp32_groups' is missing"},
    {"ds_zero2_bf16_paramalign", kOptim,
     std::string("K\x01K\x05K\x00"
                 "e",
                 7),
     std::string("K\x01K\x04K\x00"
                 "e",
                 7),
     "differ from rank 0's"},
    {"ds_zero2_bf16", kModule, "K\x07K\x05\x86", "K\x08K\x05\x86", "the shapes require"},
    {"ds_zero2_bf16", kModule, "dp_world_size", "dp_world_sizx", "'dp_world_size' is missing"},
    {"ds_zero2_bf16", kModule, "frozen_param_fragments", "frozen_param_fragment", "are missing"},
    {"ds_zero3_bf16", kModule1, "K\x07\x85", "K\x08\x85", "its parameters differ from those of"},
    {"ds_zero3_bf16", kOptim, "K.\x85", "K-\x85", "45 elements of weight; rank 0 has 46"},
};

}  // namespace

TEST_CASE("pickles of a ZeRO checkpoint that contradict its layout are refused",
          "[ckpt][deepspeed]") {
  for (const ZeroPatch& row : kZeroPatches) {
    CAPTURE(row.fixture, row.from, row.words);
    const TemporaryDirectory dir;
    fs::copy(kZeroFixtures + row.fixture, dir / "run", fs::copy_options::recursive);
    patch_pickle(dir / "run/global_step2" + row.file, row.from, row.to);
    const auto [kind, message] = error_of([&] { read_checkpoint(dir / "run"); });
    CHECK(kind == ErrorKind::kCorrupt);
    CHECK_THAT(message, Catch::Matchers::Contains(row.words));
  }
}

TEST_CASE("a universal checkpoint has the tensors of the checkpoint that it was made of",
          "[ckpt][deepspeed]") {
  const std::string fixture = GENERATE("ds_zero2_bf16", "ds_zero3_bf16");
  CAPTURE(fixture);
  const auto original = digests(read_checkpoint(kZeroFixtures + fixture));
  const NamedTensors universal = read_checkpoint(kZeroFixtures + fixture + "_universal");
  auto found = digests(universal);
  CHECK(found.size() == original.size());
  for (const auto& [name, digest] : original) {
    CAPTURE(name);
    // Stage 2's converter writes the frozen weight as f32.
    if (name != "weight frozen.weight") CHECK(found[name] == digest);
  }
  CHECK(universal.format == "universal");
  CHECK(universal.step == 2);
  CHECK(universal.samples_consumed == 8);
  CHECK(universal.world_size == 2);
  CHECK(universal.strategy == read_checkpoint(kZeroFixtures + fixture).strategy);
}

TEST_CASE("a ZeRO run survives the way through the universal format", "[ckpt][deepspeed]") {
  const std::string fixture =
      GENERATE("ds_zero1_fp32", "ds_zero2_bf16", "ds_zero3_bf16", "ds_zero3_bf16_universal");
  CAPTURE(fixture);
  const TemporaryDirectory dir;
  NamedTensors original = read_checkpoint(kZeroFixtures + fixture);
  original.config = {{"model.heads", "3"}};
  original.state = {{"lr", "0.05"}};
  write_checkpoint(original, find_format("universal"), dir / "out", {});
  const NamedTensors copy = read_checkpoint(dir / "out");
  CHECK(digests(copy) == digests(original));
  CHECK(copy.format == "universal");
  CHECK(copy.config == original.config);
  CHECK(copy.state == original.state);
  CHECK(copy.step == 2);
  CHECK(copy.samples_consumed == 8);
  CHECK(copy.world_size == 2);
  CHECK(copy.strategy == original.strategy);
  CHECK(read_bytes(dir / "out/latest_universal") == "global_step2");
  CHECK(digests(read_checkpoint(dir / "out/global_step2")) == digests(original));
}

TEST_CASE("a universal checkpoint is replaced and removed whole, and nothing else with it",
          "[ckpt][deepspeed]") {
  const TemporaryDirectory dir;
  const NamedTensors run = read_checkpoint(kZeroFixtures + "ds_zero2_bf16");
  write_checkpoint(run, find_format("universal"), dir / "out", {});
  write_checkpoint(run, find_format("universal"), dir / "out", {.replace = true});
  write_checkpoint(run, find_format("gxp"), dir / "out", {.replace = true});
  CHECK(list(dir.path()) == std::vector<std::string>{"out"});
  write_checkpoint(run, find_format("universal"), dir / "out", {.replace = true});
  write_bytes(dir / "out/global_step2/zero/emb.weight/notes.txt", "dear");
  const auto error =
      error_of([&] { write_checkpoint(run, find_format("gxp"), dir / "out", {.replace = true}); });
  CHECK(error.kind == ErrorKind::kUsage);
  CHECK(error.says("global_step2/zero/emb.weight/notes.txt"));
  CHECK(read_bytes(dir / "out/global_step2/zero/emb.weight/notes.txt") == "dear");
}

TEST_CASE("a tensor whose name no directory can have is not written as universal",
          "[ckpt][deepspeed]") {
  for (const char* name : {"..", "a/b", "optimizer_state.pt"}) {
    CAPTURE(name);
    const TemporaryDirectory dir;
    const NamedTensors run{.tensors = {counting_tensor(name, {3})}};
    const auto error =
        error_of([&] { write_checkpoint(run, find_format("universal"), dir / "out", {}); });
    CHECK(error.kind == ErrorKind::kConfig);
    CHECK(list(dir.path()).empty());
  }
}

namespace {

const ZeroFileChange kUniversalChanges[] = {
    {"ds_zero2_bf16_universal",
     [](const std::string& tag) { write_bytes(tag + "/../latest_universal", "a/b"); },
     "is not the name of a directory"},
    {"ds_zero2_bf16_universal", renamed("/zero/up.weight", "/away"), "'up.weight' is missing"},
    {"ds_zero2_bf16_universal", renamed("/zero/scale/fp32.pt", "/away"), "fp32.pt is missing"},
    {"ds_zero2_bf16_universal", renamed("/zero/norm.bias/exp_avg.pt", "/away"),
     "zero/norm.bias: optimizer state is missing here but present for 'down.weight'"},
    {"ds_zero2_bf16_universal", added("/zero/file"), "not a parameter's directory"},
    {"ds_zero2_bf16_universal",
     [](const std::string& tag) {
       patch_pickle(tag + "/zero/up.weight/exp_avg.pt", "K\x07K\x05\x86", "K\x05K\x07\x86");
     },
     "but (7, 5) in the model states"},
    {"ds_zero2_bf16_universal",
     [](const std::string& tag) {
       patch_pickle(tag + "/zero/up.weight/fp32.pt", "param", "parax");
     },
     "'param' is missing"},
    {"ds_zero3_bf16_universal",
     [](const std::string& tag) {
       patch_pickle(tag + "/zero/up.weight/fp32.pt", "K#\x85", "K\"\x85");
     },
     "the shape is (34), but (7, 5)"},
    {"ds_zero3_bf16_universal",
     [](const std::string& tag) {
       for (const char* rank : {"0", "1"})
         fs::remove(fmt::format("{}/zero_pp_rank_{}_mp_rank_00_model_states.pt", tag, rank));
     },
     "no model states record its shape"}};

}  // namespace

TEST_CASE("a universal checkpoint that contradicts itself is refused", "[ckpt][deepspeed]") {
  for (const ZeroFileChange& row : kUniversalChanges) check_refused_after(row);
}

}  // namespace gxp
