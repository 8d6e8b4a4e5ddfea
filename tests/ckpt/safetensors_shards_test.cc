// Directories of ranks' shards, and tensors in blocks.
#include "lib/ckpt/safetensors/safetensors_shards.h"

#include <numeric>

#include "lib/ckpt/format.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

const std::string kShards = GXP_TEST_DATA "/ckpt/dcp_hf_sharded";

std::string shard_name(int shard, int file = 1, int files = 1) {
  return fmt::format("shard-{:05}-model-{:05}-of-{:05}.safetensors", shard, file, files);
}

struct Part {
  int shard;
  std::vector<uint64_t> shape;
  std::string info;  // DCP_SHARDING_INFO; "": none
};

// A directory with tensor 'a' in these parts.
std::string write_parts(const TemporaryDirectory& dir, const std::vector<Part>& parts) {
  fs::remove_all(dir / "parts");
  fs::create_directory(dir / "parts");
  for (const Part& part : parts) {
    NamedTensors tensors{.tensors = {counting_tensor("a", part.shape)}};
    if (!part.info.empty()) tensors.metadata["DCP_SHARDING_INFO"] = part.info;
    write_checkpoint(tensors, find_format("safetensors"), dir / "parts/" + shard_name(part.shard),
                     {});
  }
  return dir / "parts";
}

std::string at(const std::string& offsets) {
  return fmt::format(R"({{"a":{{"saved_offsets":[{}]}}}})", offsets);
}

// `whole` cut into blocks at these rows and columns.
std::vector<TensorBlock> cut(const std::vector<uint64_t>& rows,
                             const std::vector<uint64_t>& columns) {
  std::vector<TensorBlock> blocks;
  const uint64_t width = columns.back();
  for (size_t r = 0; r + 1 < rows.size(); ++r) {
    for (size_t c = 0; c + 1 < columns.size(); ++c) {
      const uint64_t n = columns[c + 1] - columns[c];
      NamedTensor part = counting_tensor("a", {rows[r + 1] - rows[r], n});
      part.read = [=, row = rows[r], column = columns[c]](uint64_t begin, Memory out) {
        for (uint64_t i = 0; i < out.bytes / 4; ++i) {
          const uint64_t e = begin + i;
          const auto value = float((row + e / n) * width + column + e % n);
          std::memcpy(out.data + 4 * i, &value, 4);
        }
      };
      blocks.push_back({{rows[r], columns[c]}, part});
    }
  }
  return blocks;
}

}  // namespace

TEST_CASE("the shards of ranks are read as the tensors that torch joins them to", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto expected = digests(read_checkpoint(GXP_TEST_DATA "/ckpt/dcp_hf_consolidated"));
  const NamedTensors joined = read_checkpoint(kShards);
  CHECK(joined.format == "safetensors");
  CHECK(joined.metadata == std::map<std::string, std::string>{{"format", "pt"}});
  CHECK(digests(joined) == expected);
  write_checkpoint(joined, find_format("gxp"), dir / "gxp", {});
  CHECK(digests(read_checkpoint(dir / "gxp")) == expected);
}

TEST_CASE("blocks of any cut give the whole's elements, from any one on", "[ckpt]") {
  auto blocks = cut(GENERATE(std::vector<uint64_t>{0, 7}, std::vector<uint64_t>{0, 3, 3, 5, 7}),
                    GENERATE(std::vector<uint64_t>{0, 6}, std::vector<uint64_t>{0, 1, 4, 6}));
  std::reverse(blocks.begin(), blocks.end());
  const NamedTensor whole = join_blocks(blocks, shape_around(blocks, "x"), "x");
  CHECK(whole.info.shape == std::vector<uint64_t>{7, 6});
  CHECK(sha256_hex(whole) == sha256_hex(counting_tensor("a", {7, 6})));
  for (const uint64_t begin : {0, 1, 5, 17, 41}) {
    std::vector<float> values(42 - begin), expected(42 - begin);
    std::iota(expected.begin(), expected.end(), float(begin));
    whole.read(begin, memory_of(values));
    CHECK(values == expected);
  }
}

TEST_CASE("shards that do not make whole tensors are refused", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto [what, parts] = GENERATE(table<std::string, std::vector<Part>>({
      {"shard 1 of 2 is missing", {{2, {2}, at("0")}}},
      {"shard 2 of 3 is missing", {{1, {2}, at("0")}, {3, {2}, at("2")}}},
      {"have 4 of the 5 elements", {{1, {2}, at("0")}, {2, {2}, at("3")}}},
      {"overlap", {{1, {3}, at("0")}, {2, {2}, at("2")}}},
      {"overlap", {{1, {}, at("")}, {2, {}, at("")}}},
      {"dimensions", {{1, {2}, at("0")}, {2, {1, 2}, at("2, 0")}}},
      {"dimensions", {{1, {2}, at("0, 0")}}},
      {"ends beyond 64 bits", {{1, {2}, at("18446744073709551615")}}},
      {"do not fit the shape", {{1, {1, 1}, at("9223372036854775807, 9223372036854775807")}}},
      {"DCP_SHARDING_INFO is missing", {{1, {2}, ""}}},
      {"'a' is missing", {{1, {2}, "{}"}}},
      {"'saved_offsets' is missing", {{1, {2}, R"({"a":{}})"}}},
      {"a whole number from 0", {{1, {2}, at("-1")}}},
      {"read", {{1, {2}, "{"}}},
  }));
  CAPTURE(what);
  const std::string path = write_parts(dir, parts);
  const auto [kind, text] = error_of([&, parts = parts] { read_checkpoint(path); });
  CHECK(kind == ErrorKind::kCorrupt);
  CHECK_THAT(text, Contains(what) && Contains(path));
}

TEST_CASE("shard files that belong to different sets are refused", "[ckpt]") {
  const TemporaryDirectory dir;
  fs::create_directory(dir / "m");
  fs::copy(kShards + "/" + shard_name(1), dir / "m/" + shard_name(1, 1, 2));
  CHECK_THAT(error_of([&] { read_checkpoint(dir / "m"); }).message,
             Contains("model file 2 of 2 is missing"));
  fs::copy(kShards + "/" + shard_name(2), dir / "m/" + shard_name(2, 3, 3));
  CHECK_THAT(error_of([&] { read_checkpoint(dir / "m"); }).message,
             Contains("belongs to another set of files"));
  CHECK_FALSE(is_sharded_safetensors(dir / "absent"));
  CHECK_FALSE(is_sharded_safetensors(dir / "m/" + shard_name(1, 1, 2)));
}

}  // namespace gxp
