#include "lib/ckpt/safetensors/safetensors.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

const std::string kFixtures = GXP_TEST_DATA "/ckpt/";

// What the library that wrote the fixture says is in it, in the form of digests().
std::map<std::string, std::string> expected_digests(const std::string& fixture) {
  const auto json = nlohmann::json::parse(read_bytes(kFixtures + fixture + "/expected.json"));
  std::map<std::string, std::string> result;
  for (const auto& [name, tensor] : json["tensors"].items()) {
    const auto shape = tensor["shape"].get<std::vector<uint64_t>>();
    result["weight " + name] =
        fmt::format("{} ({}) {}", tensor["dtype"].get<std::string>(), fmt::join(shape, ", "),
                    tensor["sha256"].get<std::string>());
  }
  return result;
}

std::string with_length(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

// A header with one tensor entry's text, over 8 bytes of data.
std::string with_entry(const std::string& entry) {
  return with_length("{\"a\":" + entry + "}", std::string(8, 'x'));
}

const std::string kGood = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";

struct Hostile {
  std::string bytes;
  std::string words;  // that the message must have
};

std::vector<Hostile> hostile_files() {
  const std::string eight(8, 'x');
  return {
      {"", "truncated"},
      {"1234567", "truncated"},
      {std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8) + "{}", "header would take"},
      {std::string("\x03\0\0\0\0\0\0\0", 8) + "{}", "header would take"},
      {with_length("", ""), "read"},
      {with_length("{", ""), "read"},
      {with_length("[]", ""), "an object expected"},
      {with_length("{}", "x"), "longer than its header"},
      {with_length("{\"\xff\":1}", ""), "UTF-8"},
      {with_length(std::string(100000, '['), ""), "nested deeper"},
      {with_length("{\"a\":" + kGood + ",\"a\":" + kGood + "}", eight), "occurs twice"},
      {with_length("{\"a\":" + kGood + ",\"b\":" + kGood + "}", eight), "tensor 'b' begins"},
      {with_length("{\"\":" + kGood + "}", eight), "a tensor's name is empty"},
      {with_length("{\"a\\u0000\":" + kGood + "}", eight), "NUL"},
      {with_length("{\"__metadata__\":{\"n\":1},\"a\":" + kGood + "}", eight), "__metadata__"},
      {with_length("{\"__metadata__\":[],\"a\":" + kGood + "}", eight), "__metadata__"},
      {with_entry("[]"), "an object expected"},
      {with_entry(R"({"shape":[2],"data_offsets":[0,8]})"), "'dtype' is missing"},
      {with_entry(R"({"dtype":"F32","data_offsets":[0,8]})"), "'shape' is missing"},
      {with_entry(R"({"dtype":"F32","shape":[2]})"), "'data_offsets' is missing"},
      {with_entry(R"({"dtype":"F4","shape":[16],"data_offsets":[0,8]})"), "dtype 'F4'"},
      {with_entry(R"({"dtype":1,"shape":[2],"data_offsets":[0,8]})"), "a string expected"},
      {with_entry(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), "a whole number"},
      {with_entry(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), "a whole number"},
      {with_entry(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})"), "an array expected"},
      {with_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), "[begin, end]"},
      {with_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), "[begin, end]"},
      {with_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})"), "a whole number"},
      {with_entry(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), "takes 12 bytes"},
      {with_entry(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), "expected 0"},
      {with_entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), "longer than"},
      {with_entry(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})"), "truncated"},
      {with_entry(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})"),
       "exceeds 64 bits"},
      {with_entry(R"({"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]})"),
       "exceeds 64 bits"},
      {with_entry(R"({"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]})"),
       "a whole number"},
      {with_entry(fmt::format(R"({{"dtype":"F64","shape":[{}],"data_offsets":[0,8]}})",
                              fmt::join(std::vector<int>(65, 1), ","))),
       "65 dimensions"},
  };
}

void check_corrupt(const std::string& path, const std::string& words) {
  CAPTURE(words);
  const auto [kind, text] = error_of([&] { read_safetensors(path); });
  CHECK(kind == ErrorKind::kCorrupt);
  CHECK_THAT(text, Catch::Matchers::Contains(path) && Catch::Matchers::Contains(words));
}

}  // namespace

TEST_CASE("fixtures read as the libraries that wrote them say", "[ckpt]") {
  const std::string fixture = GENERATE("safetensors_single", "safetensors_sharded", "hf_gpt2");
  CAPTURE(fixture);
  CHECK(digests(read_safetensors(kFixtures + fixture)) == expected_digests(fixture));
}

TEST_CASE("a file is written with the reference writer's bytes", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string original = kFixtures + "safetensors_single/model.safetensors";
  NamedTensors tensors = read_safetensors(original);
  REQUIRE(tensors.step == 1001);
  std::reverse(tensors.tensors.begin(), tensors.tensors.end());
  write_safetensors_file(tensors, dir / "a.safetensors");
  CHECK(read_bytes(dir / "a.safetensors") == read_bytes(original));
  struct stat status = {};
  REQUIRE(::stat((dir / "a.safetensors").c_str(), &status) == 0);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  CHECK((status.st_mode & 0777) == (0666 & ~mask));
}

TEST_CASE("a directory is split into shards no larger than asked for", "[ckpt]") {
  const TemporaryDirectory dir;
  const NamedTensors tensors{.tensors = {counting_tensor("a", {100}), counting_tensor("b", {25}),
                                         counting_tensor("c", {25, 5}), counting_tensor("d", {1}),
                                         counting_tensor("m", {9}, 0, Role::kAdamM)}};
  write_safetensors_directory(tensors, dir / "out", {500});
  CHECK(list(dir / "out") ==
        std::vector<std::string>{
            ".finished", "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
            "model-00003-of-00003.safetensors", "model.safetensors.index.json"});
  const auto index = nlohmann::json::parse(read_bytes(dir / "out/model.safetensors.index.json"));
  CHECK(index["metadata"]["total_size"] == 4 * 251);
  CHECK(index["weight_map"]["b"] == "model-00001-of-00003.safetensors");
  auto expected = digests(tensors);
  expected.erase("adam_m m");
  CHECK(digests(read_safetensors(dir / "out")) == expected);
}

TEST_CASE("scalars, empty tensors, leading and trailing spaces are legal", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string header =
      R"( {"z":{"dtype":"F32","shape":[0,18446744073709551615,7],"data_offsets":[0,0]},)"
      R"("s":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}   )";
  write_bytes(dir / "a.safetensors", with_length(header, std::string(8, '\0')));
  const auto tensors = read_safetensors(dir / "a.safetensors");
  REQUIRE(tensors.tensors.size() == 2);
  CHECK(tensors.tensors[0].info.bytes() == 0);
  CHECK(tensors.tensors[1].info.count() == 1);
  write_bytes(dir / "none.safetensors", with_length("{}", ""));
  CHECK(read_safetensors(dir / "none.safetensors").tensors.empty());
}

TEST_CASE("every hostile header is refused with the file's name and the fault", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const Hostile& hostile : hostile_files()) {
    write_bytes(dir / "bad.safetensors", hostile.bytes);
    check_corrupt(dir / "bad.safetensors", hostile.words);
  }
}

TEST_CASE("the header of 80,000 tensors is read", "[ckpt]") {
  std::string json;
  for (int i = 0; i < 80'000; ++i)
    json +=
        fmt::format(R"({}"layer.{}.weight":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                    i == 0 ? '{' : ',', i, i, i + 1);
  json += '}';
  const auto header = parse_safetensors_header(json, 8 + json.size() + 80'000, "many");
  REQUIRE(header.entries.size() == 80'000);
  CHECK(header.entries.back().info.name == "layer.79999.weight");
}

TEST_CASE("a file cut anywhere is refused", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string whole = read_bytes(kFixtures + "safetensors_single/model.safetensors");
  for (size_t length = 0; length < whole.size(); length += 1 + length / 8) {
    write_bytes(dir / "cut.safetensors", whole.substr(0, length));
    check_corrupt(dir / "cut.safetensors", "");
  }
}

TEST_CASE("a changed header byte is an error or harmless, never a crash", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string path = dir / "flip.safetensors";
  const std::string whole = read_bytes(kFixtures + "safetensors_single/model.safetensors");
  for (size_t i = 0; i < 1240; i += 7) {
    std::string changed = whole;
    changed[i] = char(changed[i] ^ (1 << (i % 8)));
    write_bytes(path, changed);
    const auto [kind, text] = error_of([&] { digests(read_safetensors(path)); });
    if (!text.empty()) CHECK(kind == ErrorKind::kCorrupt);
  }
}

TEST_CASE("an index that names foreign or missing things is refused", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string index = dir / "model.safetensors.index.json";
  write_safetensors_file({.tensors = {counting_tensor("a", {2})}}, dir / "one.safetensors");
  std::filesystem::copy(dir / "one.safetensors", dir / "two.safetensors");
  write_safetensors_file({.tensors = {counting_tensor("b", {2})}}, dir / "other.safetensors");
  ::mkfifo((dir / "pipe").c_str(), 0600);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({})", "'weight_map' is missing"},
      {R"({"weight_map":[]})", "an object expected"},
      {R"({"weight_map":{"a":1}})", "a string expected"},
      {R"({"weight_map":{"a":"../one.safetensors"}})", "not the name of a file"},
      {R"({"weight_map":{"a":".."}})", "not the name of a file"},
      {R"({"weight_map":{"a":"/one.safetensors"}})", "not the name of a file"},
      {R"({"weight_map":{"a":"one.safetensors","b":"one.safetensors"}})", "'b' into one.s"},
      {R"({"weight_map":{"a":"other.safetensors","b":"one.safetensors"}})", "but it is in o"},
      {R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})", "but it is in none"},
  };
  for (const auto& [json, words] : cases) {
    write_bytes(index, json);
    check_corrupt(index, words);
  }
  for (const char* name : {"absent", "pipe"}) {
    write_bytes(index, fmt::format(R"({{"weight_map":{{"a":"{}"}}}})", name));
    CHECK(error_of([&] { read_safetensors(index); }).kind == ErrorKind::kIo);
  }
}

TEST_CASE("of an index and a file that it does not name, neither is taken unasked", "[ckpt]") {
  const TemporaryDirectory dir;
  const NamedTensors two{.tensors = {counting_tensor("a", {2}), counting_tensor("b", {2})}};
  const NamedTensors one{.tensors = {counting_tensor("a", {3})}};
  write_safetensors_directory(two, dir / "both", {.shards = 2});
  write_safetensors_file(one, dir / "both/model.safetensors");
  check_corrupt(dir / "both", "name the one of the two");
  CHECK(digests(read_safetensors(dir / "both/model.safetensors.index.json")) == digests(two));
  CHECK(digests(read_safetensors(dir / "both/model.safetensors")) == digests(one));
}

}  // namespace gxp
