// One name, one type: two definitions of a name in one namespace are undefined behaviour, which no
// compiler has to report. It happened, and one type's destructor destroyed the other's objects.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

using Definitions = std::map<std::string, std::set<std::string>>;  // headers by name

// Types that a header defines outside of classes, as clang-format lays them out. A member class that
// is defined apart from its class, or a specialisation apart from its template, counts by the name
// that it belongs to: who reads one header must see all of the name.
void add_definitions(const fs::path& header, Definitions& definitions) {
  static const std::regex kSpace(R"(^(inline )?namespace ([\w:]+) \{)");
  static const std::regex kEnd(R"(^\}  // namespace ([\w:]+)$)");
  static const std::regex kType(
      R"(^(?:class|struct|union|enum|enum class) (?:alignas\([^)]*\) )?(?:\[\[\w+\]\] )?(\w+)(?:::\w+|<.*>)?(?: final)?(?: :.*)?(?: \{.*|)$)");
  static const std::regex kAlias(R"(^using (\w+) =.*)");
  std::vector<std::string> spaces;
  std::ifstream file(header);
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kSpace)) spaces.push_back(match[2]);
    if (std::regex_match(line, match, kEnd) && !spaces.empty()) spaces.pop_back();
    if (!std::regex_match(line, match, kType) && !std::regex_match(line, match, kAlias)) continue;
    const std::string space = spaces.empty() ? "" : spaces.back();
    definitions[space + "::" + std::string(match[1])].insert(header.string());
  }
}

// "gxp::Stream: lib/device/stream.h lib/net/child_process.h"
std::vector<std::string> defined_twice(const fs::path& root) {
  Definitions definitions;
  for (const char* folder : {"lib", "kernels", "cmd"}) {
    if (!fs::is_directory(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".h" || extension == ".cuh") add_definitions(entry.path(), definitions);
    }
  }
  std::vector<std::string> found;
  for (const auto& [name, headers] : definitions) {
    if (headers.size() == 1) continue;
    std::string text = name + ":";
    for (const std::string& header : headers)
      text += " " + fs::path(header).lexically_relative(root).string();
    found.push_back(text);
  }
  return found;
}

}  // namespace

TEST_CASE("no two headers define the same name", "[base][layers]") {
  for (const std::string& problem : defined_twice(GXP_SOURCE_DIR)) FAIL_CHECK(problem);
}

TEST_CASE("a name that is defined twice is found, whatever defines it", "[base][layers]") {
  const TemporaryDirectory tree;
  const auto write = [&](const std::string& path, const std::string& text) {
    fs::create_directories((fs::path(tree.path()) / path).parent_path());
    std::ofstream(fs::path(tree.path()) / path) << text;
  };
  const std::string first =
      GENERATE("class Twice {", "struct Twice final : Base {", "enum class Twice : int { kOne };",
               "using Twice = int;", "class Twice::Member {", "struct Twice<double> {");
  write("lib/a/a.h", "namespace gxp {\n" + first + "\nclass Once;\n}  // namespace gxp\n");
  write("lib/b/b.h", "namespace gxp {\nstruct Twice {\nclass Once {};\n};\n}  // namespace gxp\n");
  write("lib/c/c.h", "namespace gxp::c {\nstruct Twice {\n};\n}  // namespace gxp::c\n");
  CHECK(defined_twice(tree.path()) == std::vector<std::string>{"gxp::Twice: lib/a/a.h lib/b/b.h"});
}

}  // namespace gxp
