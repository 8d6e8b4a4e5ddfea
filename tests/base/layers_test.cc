// Holds every #include of lib/, kernels/ and cmd/ against lib/LAYERS.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

struct Layer {
  int band = 0;
  std::set<std::string> may_include;  // names; "net/*" is net and all below it, "*" everything
};

struct Layers {
  std::map<std::string, Layer> by_name;  // "config", "kernels/cpu"
  std::vector<std::string> order;        // as in the file
};

// "lib/net/store" is "net/store", "kernels/cpu" itself; "" is outside of the tree.
std::string name_of(const std::string& folder) {
  if (folder.starts_with("lib/")) return folder.substr(4);
  const std::string top = folder.substr(0, folder.find('/'));
  return top == "kernels" || top == "cmd" ? folder : "";
}

std::string layer_of(const std::string& path) {
  return name_of(fs::path(path).parent_path().string());
}

bool is_below(const std::string& name, const std::string& folder) {
  return name.starts_with(folder + "/");
}

bool covers(const std::string& permission, const std::string& name) {
  if (permission == "*" || permission == name) return true;
  if (!permission.ends_with("/*")) return false;
  const std::string folder = permission.substr(0, permission.size() - 2);
  return name == folder || is_below(name, folder);
}

// What a line includes in quotes; "" if it does not.
std::string included_by(const std::string& line) {
  std::istringstream words(line);
  std::string directive, target;
  words >> std::ws;
  if (words.get() != '#' || !(words >> directive >> target) || directive != "include") return "";
  const size_t end = target.find('"', 1);
  return target[0] == '"' && end != std::string::npos ? target.substr(1, end - 1) : "";
}

// A row: "1 lib/arch : base config".
Layers read_layers(const fs::path& root) {
  Layers layers;
  std::ifstream file(root / "lib/LAYERS");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Layer layer;
    std::string folder, word;
    words >> layer.band >> folder >> word;  // the word is the colon
    while (words >> word) layer.may_include.insert(word);
    layers.order.push_back(name_of(folder));
    layers.by_name[layers.order.back()] = layer;
  }
  return layers;
}

// "" or what is wrong with an include of `target` in a file of `owner`.
std::string verdict(const Layers& layers, const std::string& owner, const std::string& target) {
  const std::string name = layer_of(target);
  if (!layers.by_name.contains(owner)) return "folder is not in lib/LAYERS";
  if (name.empty()) return "path must begin with lib/, kernels/ or cmd/";
  if (!layers.by_name.contains(name)) return "target is not in lib/LAYERS";
  if (name == owner) return "";
  for (const std::string& permission : layers.by_name.at(owner).may_include) {
    if (covers(permission, name)) return "";
  }
  return "layer may not include it";
}

// "lib/data/file.cc:3: includes lib/net/rank.h: layer may not include it"
std::vector<std::string> violations_in(const Layers& layers, const fs::path& root,
                                       const std::string& path) {
  std::vector<std::string> found;
  std::ifstream file(root / path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::string target = included_by(line);
    const std::string problem = target.empty() ? "" : verdict(layers, layer_of(path), target);
    if (problem.empty()) continue;
    found.push_back(path + ":" + std::to_string(number) + ": includes " + target + ": " + problem);
  }
  return found;
}

bool is_source(const fs::path& path) {
  static const std::set<std::string> kExtensions = {".h", ".cc", ".cuh", ".cu"};
  return kExtensions.contains(path.extension().string());
}

std::vector<std::string> sources_of(const fs::path& root) {
  std::vector<std::string> paths;
  for (const char* folder : {"lib", "kernels", "cmd"}) {
    if (!fs::is_directory(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (is_source(entry.path())) paths.push_back(entry.path().lexically_relative(root).string());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

std::vector<std::string> violations(const fs::path& root) {
  const Layers layers = read_layers(root);
  std::vector<std::string> all;
  for (const std::string& path : sources_of(root)) {
    std::ranges::copy(violations_in(layers, root, path), std::back_inserter(all));
  }
  return all;
}

// "net: store", for what a layer may include and does not.
std::set<std::string> unused_permissions(const fs::path& root) {
  const Layers layers = read_layers(root);
  std::set<std::string> unused;
  for (const auto& [name, layer] : layers.by_name) {
    for (const std::string& permission : layer.may_include) unused.insert(name + ": " + permission);
  }
  for (const std::string& path : sources_of(root)) {
    std::ifstream file(root / path);
    const std::string owner = layer_of(path);
    for (std::string line; std::getline(file, line);) {
      const std::string name = layer_of(included_by(line));
      if (name.empty() || name == owner || !layers.by_name.contains(owner)) continue;
      for (const std::string& permission : layers.by_name.at(owner).may_include) {
        if (covers(permission, name)) unused.erase(owner + ": " + permission);
      }
    }
  }
  return unused;
}

// "net: net/store is not above it": permissions for rows that are not above, or of a higher band.
std::vector<std::string> out_of_order(const Layers& layers) {
  std::vector<std::string> found;
  std::set<std::string> above;
  for (const std::string& name : layers.order) {
    const Layer& layer = layers.by_name.at(name);
    for (const std::string& target : layers.order) {
      const auto allows = [&](const auto& permission) {
        return permission != "*" && target != name && covers(permission, target);
      };
      if (std::ranges::none_of(layer.may_include, allows)) continue;
      if (layers.by_name.at(target).band > layer.band)
        found.push_back(name + ": " + target + " is of a higher band");
      else if (!above.contains(target))
        found.push_back(name + ": " + target + " is not above it");
    }
    above.insert(name);
  }
  return found;
}

// A source tree of one's own, gone at the end.
class PlantedTree {
 public:
  PlantedTree() {
    write("lib/LAYERS",
          "# a comment\n0 lib/base :\n1 lib/net : base\n1 lib/net/store : net\n"
          "1 lib/arch : base\n7 cmd : base net/*\n");
  }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root() / path).parent_path());
    std::ofstream(root() / path) << text;
  }
  [[nodiscard]] fs::path root() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("no file includes what its layer may not", "[base][layers]") {
  for (const std::string& violation : violations(GXP_SOURCE_DIR)) FAIL_CHECK(violation);
}

TEST_CASE("nothing is permitted that nobody includes", "[base][layers]") {
  for (const std::string& permission : unused_permissions(GXP_SOURCE_DIR)) FAIL_CHECK(permission);
}

TEST_CASE("a layer may include only rows above its own, of its band or a lower one",
          "[base][layers]") {
  const Layers layers = read_layers(GXP_SOURCE_DIR);
  REQUIRE(layers.order.size() > 10);
  for (const std::string& problem : out_of_order(layers)) FAIL_CHECK(problem);
}

TEST_CASE("a folder and one of its sub-folders do not include each other", "[base][layers]") {
  const PlantedTree tree;
  tree.write("lib/LAYERS", "1 lib/net : net/store\n1 lib/net/store : net\n");
  CHECK(out_of_order(read_layers(tree.root())) ==
        std::vector<std::string>{"net: net/store is not above it"});
  tree.write("lib/LAYERS", "2 lib/net/store :\n1 lib/net : net/store\n");
  CHECK(out_of_order(read_layers(tree.root())) ==
        std::vector<std::string>{"net: net/store is of a higher band"});
}

TEST_CASE("no folder has so many files that nobody finds one", "[base][layers]") {
  constexpr int kMostFiles = 45;
  std::map<std::string, int> files;
  for (const char* top : {"lib", "kernels", "cmd", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(GXP_SOURCE_DIR) / top)) {
      const std::string folder = entry.path().parent_path().string();
      const bool is_data = folder.find("/tests/data") != std::string::npos;
      if (entry.is_regular_file() && !is_data) ++files[folder];
    }
  }
  for (const auto& [folder, count] : files) {
    CAPTURE(folder);
    CHECK(count <= kMostFiles);
  }
}

TEST_CASE("includes that the table allows are accepted", "[base][layers]") {
  const PlantedTree tree;
  tree.write("lib/net/a.cc",
             "#include \"lib/net/a.h\"\n#include \"lib/base/b.h\"\n#include <lib/arch/x.h>\n");
  tree.write("lib/net/store/a.cc", "#include \"lib/net/store/a.h\"\n#include \"lib/net/b.h\"\n");
  tree.write("cmd/main.cc", "#include \"lib/net/store/a.h\"\n#include \"lib/base/x.h\"\n");
  CHECK(violations(tree.root()).empty());
  CHECK(unused_permissions(tree.root()) == std::set<std::string>{"arch: base"});
}

TEST_CASE("a planted violation is found with its file and line", "[base][layers]") {
  const auto [path, line, problem] = GENERATE(table<std::string, std::string, std::string>(
      {{"lib/base/a.h", "#include \"lib/net/b.h\"", "layer may not include it"},
       {"lib/arch/a.cc", "  # include \"lib/net/b.h\"  // why", "layer may not include it"},
       {"lib/net/store/a.cc", "#include \"lib/base/b.h\"", "layer may not include it"},
       {"lib/net/deep/a.cc", "#include \"lib/net/b.h\"", "folder is not in lib/LAYERS"},
       {"cmd/a.cc", "#include \"lib/arch/b.h\"", "layer may not include it"},
       {"lib/util/a.h", "#include \"lib/base/b.h\"", "folder is not in lib/LAYERS"},
       {"lib/net/a.h", "#include \"lib/util/b.h\"", "target is not in lib/LAYERS"},
       {"lib/net/a.h", "#include \"b.h\"", "path must begin with lib/, kernels/ or cmd/"}}));
  const PlantedTree tree;
  tree.write(path, "#pragma once\n" + line + "\n");
  const std::vector<std::string> found = violations(tree.root());
  REQUIRE(found.size() == 1);
  CHECK(found[0].starts_with(path + ":2: includes "));
  CHECK(found[0].ends_with(": " + problem));
}

}  // namespace gxp
