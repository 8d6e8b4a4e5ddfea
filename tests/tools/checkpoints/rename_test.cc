#include "lib/tools/checkpoints/rename.h"

#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

using Catch::Matchers::Contains;

std::vector<std::string> names_after(const std::vector<std::string>& names,
                                     const std::string& rules) {
  const TemporaryDirectory dir;
  write_bytes(dir / "rules.toml", rules);
  NamedTensors tensors;
  for (const std::string& name : names) tensors.tensors.push_back(counting_tensor(name, {1}));
  rename_tensors(tensors, dir / "rules.toml");
  std::vector<std::string> result;
  for (const NamedTensor& tensor : tensors.tensors) result.push_back(tensor.info.name);
  return result;
}

}  // namespace

TEST_CASE("rules rename and drop tensors in the order of their file", "[ckpt]") {
  const std::vector<std::string> names = {"layers.0.w", "layers.10.w", "inv_freq", "other"};
  CHECK(names_after(names, R"toml(
[[rename]]
from = "layers\\.(\\d+)\\.(.*)"
to = "h.$1.$2"
[[drop]]
from = ".*freq"
[[rename]]
from = 'h[.]10[.](.*)'
to = 'last.$1'
)toml") == std::vector<std::string>{"h.0.w", "last.w", "other"});
  CHECK(names_after(names, "") == names);
}

TEST_CASE("both roles of a name are renamed", "[ckpt]") {
  const TemporaryDirectory dir;
  write_bytes(dir / "rules.toml", "[[rename]]\nfrom = 'a'\nto = 'b'\n");
  NamedTensors tensors{
      .tensors = {counting_tensor("a", {1}), counting_tensor("a", {1}, 0, Role::kAdamM)}};
  CHECK(rename_tensors(tensors, dir / "rules.toml")[size_t(RuleKind::kRename)] == 2);
  CHECK(find_tensor(tensors, "b", Role::kAdamM) != nullptr);
}

TEST_CASE("rules that cannot be meant are refused with file and line", "[ckpt]") {
  const auto [words, rules] = GENERATE(table<std::string, std::string>({
      {"two tensors would be called 'c'", "[[rename]]\nfrom = '[ab]'\nto = 'c'"},
      {"rules.toml:1: 'x' matches no tensor", "[[drop]]\nfrom = 'x'"},
      {"rules.toml:3: 'a' matches no tensor",
       "[[drop]]\nfrom = 'a'\n[[rename]]\nfrom = 'a'\nto = 'c'"},
      {"is not a regular expression", "[[drop]]\nfrom = '('"},
      {"takes from and to", "[[rename]]\nfrom = 'a'"},
      {"nothing but from", "[[drop]]\nfrom = 'a'\nto = 'b'"},
      {"to must be a string", "[[rename]]\nfrom = 'a'\nto = 1"},
      {"'renames' is not", "[[renames]]\nfrom = 'a'"},
      {"'rename' is not", "[rename]\nfrom = 'a'"},
      {"must be a table", "drop = ['a']"},
      {"rules.toml:1:", "[[rename]"},
      {"the size of a head is not known", "[[reorder]]\nfrom = 'a'\nrows = 'pairs-to-halves'"},
      {"from, rows and head_size", "[[reorder]]\nfrom = 'a'\nto = 'b'"},
      {"rows must be a string", "[[reorder]]\nfrom = 'a'"},
      {"which takes no head_size", "[[reorder]]\nfrom = 'a'\nrows = 'unchanged'\nhead_size = 2"},
      {"is no matrix's", "[[transpose]]\nfrom = 'a'"},
      {"nothing but from", "[[transpose]]\nfrom = 'a'\nto = 'b'"},
      {"takes from and to", "[[zeros]]\nfrom = 'a'"},
      {"optional must be", "[[drop]]\nfrom = 'a'\noptional = 1"},
      {"neither pairs", "[[reorder]]\nfrom = 'a'\nrows = 'x'\nhead_size = 2"},
      {"an even number", "[[reorder]]\nfrom = 'a'\nrows = 'pairs-to-halves'\nhead_size = 3"},
      {"heads of 4", "[[reorder]]\nfrom = 'a'\nrows = 'pairs-to-halves'\nhead_size = 4"},
      {"empty or holds a NUL", "[[rename]]\nfrom = 'a'\nto = ''"},
  }));
  CAPTURE(words);
  const auto [kind, text] = error_of([&, rules = rules] { names_after({"a", "b"}, rules); });
  CHECK(kind == ErrorKind::kConfig);
  CHECK_THAT(text, Contains(words));
}

TEST_CASE("a rule that is optional may match nothing", "[ckpt]") {
  CHECK(names_after({"a"}, "[[drop]]\nfrom = 'x'\noptional = true") ==
        std::vector<std::string>{"a"});
}

TEST_CASE("matrices are transposed, and missing vectors are zeros", "[ckpt]") {
  const TemporaryDirectory dir;
  write_bytes(dir / "rules.toml",
              "[[transpose]]\nfrom = '.*w'\n[[zeros]]\nfrom = '(.*)w'\nto = '$1b'\n");
  NamedTensors tensors{.tensors = {counting_tensor("1.w", {2, 3}), counting_tensor("2.w", {2, 3}),
                                   counting_tensor("2.b", {2}, 5),
                                   counting_tensor("1.w", {2, 3}, 7, Role::kAdamM)}};
  const RuleCounts counts = rename_tensors(tensors, dir / "rules.toml");
  CHECK(counts[size_t(RuleKind::kTranspose)] == 3);
  const auto values = [&](const char* name, Role role) {
    const NamedTensor* tensor = find_tensor(tensors, name, role);
    std::vector<float> read(tensor->info.count());
    tensor->read(0, {reinterpret_cast<std::byte*>(read.data()), read.size() * sizeof(float)});
    return read;
  };
  CHECK(values("1.w", Role::kWeight) == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(values("1.w", Role::kAdamM) == std::vector<float>{7, 10, 8, 11, 9, 12});
  CHECK(values("1.b", Role::kWeight) == std::vector<float>{0, 0});
  CHECK(values("2.b", Role::kWeight) == std::vector<float>{5, 6});
  CHECK_THAT(lost_parts(tensors.optimizer), Contains("1.b"));  // which has no moments
}

TEST_CASE("a map of gxp's own is for the models that it knows", "[ckpt]") {
  const auto [words, map, family] = GENERATE(table<std::string, std::string, std::string>({
      {"the model is a gpt2; this map is for llama and qwen3", "torchtitan", "gpt2"},
      {"--config DIR tells it", "torchtitan", ""},
      {"this map is for llama", "meta-llama", "mistral"},
      {"matches no tensor", "meta-llama", "llama"},
      {"matches no tensor", "nanogpt", ""},
  }));
  CAPTURE(map, family);
  NamedTensors tensors{.tensors = {counting_tensor("x", {2})}};
  const KeyValues settings =
      family.empty() ? KeyValues() : KeyValues{{"model.family", '"' + family + '"'}};
  const auto error = error_of([&, name = map] { rename_tensors(tensors, name, settings); });
  CHECK(error.kind == ErrorKind::kConfig);
  CHECK_THAT(error.message, Contains(words));
}

TEST_CASE("rows of heads are reordered between pairs and halves, or the renaming is refused",
          "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string names =
      "[[rename]]\nfrom = 'attention[.]wq[.]weight'\nto = 'self_attn.q_proj.weight'\n";
  const std::string order = "[[reorder]]\nfrom = '.*wq.*'\nhead_size = 4\nrows = ";
  const auto applied = [&](NamedTensors tensors, const std::string& rules,
                           const KeyValues& settings = {}) {
    write_bytes(dir / "rules.toml", rules);
    rename_tensors(tensors, dir / "rules.toml", settings);
    return tensors;
  };
  const NamedTensors meta{.tensors = {counting_tensor("attention.wq.weight", {8, 2})}};
  CHECK_THAT(error_of([&] { applied(meta, names); }).message,
             Contains("[[reorder]] with from, rows = \"pairs-to-halves\""));
  const NamedTensors theirs = applied(meta, order + "'pairs-to-halves'\n" + names);
  std::vector<float> values(16);
  theirs.tensors[0].read(0, {reinterpret_cast<std::byte*>(values.data()), 16 * sizeof(float)});
  for (size_t row : {0, 1, 2, 3, 4, 5, 6, 7})
    CHECK(values[2 * row] == float(2 * (row / 4 * 4 + row % 2 * 2 + row % 4 / 2)));
  const NamedTensors back =
      applied(applied(meta, order + "'pairs-to-halves'"), order + "'halves-to-pairs'");
  CHECK(sha256_hex(back.tensors[0]) == sha256_hex(meta.tensors[0]));
  const std::string models = "[[reorder]]\nfrom = '.*wq.*'\nrows = 'pairs-to-halves'\n";
  for (const KeyValues& settings :
       {KeyValues{{"model.hidden", "8"}, {"model.heads", "2"}},
        KeyValues{{"model.hidden", "64"}, {"model.heads", "2"}, {"model.head_size", "4"}}}) {
    const NamedTensors same = applied(meta, models + names, settings);
    CHECK(sha256_hex(same.tensors[0]) == sha256_hex(theirs.tensors[0]));
  }
  const NamedTensors kept =
      applied(meta, "[[reorder]]\nfrom = '.*wq.*'\nrows = 'unchanged'\n" + names);
  CHECK(sha256_hex(kept.tensors[0]) == sha256_hex(meta.tensors[0]));
}

}  // namespace gxp
