#include "lib/tools/imports/syntax.h"

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

using Words = std::vector<std::string>;

SourceTree json(const char* text) { return SourceTree::parse(text); }

// What a kConfig error says.
template <class Call>
std::string syntax_complaint(Call call) {
  const Caught caught = error_of(call);
  CHECK(caught.kind == ErrorKind::kConfig);
  return caught.message;
}

}  // namespace

TEST_CASE("HJSON is read as the JSON that it stands for", "[imports]") {
  const auto [text, wanted] = GENERATE(table<std::string, const char*>(
      {{R"({"a": 1, "b": [true, null, -2.5e3], "c": {"d": "x\n\u00e9\ud83d\ude00"}})",
        R"({"a": 1, "b": [true, null, -2500.0], "c": {"d": "x\n\u00e9\ud83d\ude00"}})"},
       {"# one\n// two\n{ /* three */ a: 1 # four\n b: 2, c: 3 }", R"({"a": 1, "b": 2, "c": 3})"},
       {"{a: no quotes, to the end\n b: 5 apples\n}",
        R"({"a": "no quotes, to the end", "b": "5 apples"})"},
       {"{a: [\n 1\n 2\n three\n], 'b': 'q'}", R"({"a": [1, 2, "three"], "b": "q"})"},
       {"{\n  a:\n  '''\n  one\n    two\n  '''\n}", R"({"a": "one\n  two"})"},
       {"{a: 1e9, b: 2e8,}", R"({"a": 1e9, "b": 2e8})"},
       {"{a: {b: 1}}", R"({"a": {"b": 1}})"}}));
  CAPTURE(text);
  CHECK(parse_hjson(text, "f") == json(wanted));
}

TEST_CASE("text that is no HJSON is refused with its line", "[imports]") {
  const auto [text, complaint] = GENERATE(table<std::string, std::string>(
      {{"{\"a\": 1,\n\"a\": 2}", "f:2: the key 'a' occurs twice; DeepSpeed refuses duplicate keys"},
       {"{\"a\": {\"b\": 2\n", "f:2: the file is cut off: '}' is missing"},
       {"{\"a\": \"x", "f:1: the file is cut off: a string is not closed"},
       {"{\"a\": \"\\q\"}", "f:1: an escape in a string is not JSON's"},
       {"{a 1}", "f:1: ':' was expected behind the key 'a'"},
       {"{a: 1} b", "f:1: there is text behind the last '}'"},
       {"{a: /* x", "f:1: the file is cut off: a comment is not closed"},
       {std::string(70, '{'), "f:1: a key was expected"},
       {"{a:" +
            [] {
              std::string deep;
              for (int i = 0; i < 200; ++i) deep += "[";
              return deep;
            }(),
        "f:1: nested deeper than 64"}}));
  CAPTURE(text);
  CHECK(syntax_complaint([&] { parse_hjson(text, "f"); }) == complaint);
}

TEST_CASE("YAML's words have the values that PyYAML gives them", "[imports]") {
  const auto [word, wanted] =
      GENERATE(table<std::string, const char*>({{"no", "false"},
                                                {"'no'", "\"no\""},
                                                {"On", "true"},
                                                {"yEs", "\"yEs\""},
                                                {"~", "null"},
                                                {"NULL", "null"},
                                                {"", "null"},
                                                {"12", "12"},
                                                {"-3", "-3"},
                                                {"1_000", "1000"},
                                                {"010", "8"},
                                                {"0", "0"},
                                                {"1.5", "1.5"},
                                                {"1e5", "\"1e5\""},
                                                {"1.0e+5", "1e5"},
                                                {"1.0e5", "\"1.0e5\""},
                                                {"10.0.0.1", "\"10.0.0.1\""},
                                                {"[]", "[]"},
                                                {"[1, a]", "[1, \"a\"]"}}));
  CAPTURE(word);
  CHECK(parse_yaml_tree("a: " + word, "f")["a"] == json(wanted));
}

TEST_CASE("YAML that grows without end or contradicts itself is refused", "[imports]") {
  std::string aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    aliases += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) aliases += "*a" + std::to_string(i - 1) + ",";
    aliases += "]\n";
  }
  const std::string complaint = syntax_complaint([&] { parse_yaml_tree(aliases, "f"); });
  CHECK(complaint.find("more than 100000 values") != std::string::npos);
  CHECK(syntax_complaint([] { parse_yaml_tree("a: 1\na: 2", "f"); }) ==
        "f:2: the key 'a' occurs twice");
}

TEST_CASE("a command line is split as a shell does it", "[imports]") {
  const auto [text, wanted] = GENERATE(
      table<std::string, Words>({{"a -b 1", {"a", "-b", "1"}},
                                 {"a \\\n  -b \"x y\" 'z w'q # end\n", {"a", "-b", "x y", "z wq"}},
                                 {"a\\ b  c\r\n", {"a b", "c"}},
                                 {"", {}}}));
  CHECK(parse_command_words(text, "f")["words"].get<Words>() == wanted);
  CHECK(syntax_complaint([] {
          parse_command_words("a -o $HOME", "f");
        }).starts_with("f:1: the shell gives '$' a meaning"));
}

}  // namespace gxp
