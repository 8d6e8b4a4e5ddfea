// Files in memory that tell of a host's hardware.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/topo/read/system_root.h"

namespace gxp {

class RecordedRoot : public SystemRoot {
 public:
  // The directories above come with it. The last of a path holds.
  void add_file(std::string_view path, std::string content) {
    add(path, {Kind::kFile, std::move(content)});
  }
  void add_directory(std::string_view path) { add(path, {Kind::kDirectory, {}}); }
  void add_link(std::string_view path, std::string target) {
    add(path, {Kind::kLink, std::move(target)});
  }

 protected:
  [[nodiscard]] Entry look_at(const std::string& path) const override {
    const auto found = nodes_.find(path);
    if (found == nodes_.end()) return {};
    return {found->second.kind, found->second.kind == Kind::kLink ? found->second.text : ""};
  }
  [[nodiscard]] std::optional<std::string> content_of(const std::string& path) const override {
    return nodes_.find(path)->second.text;
  }
  [[nodiscard]] std::vector<std::string> names_in(const std::string& path) const override {
    const std::string prefix = path + "/";
    std::vector<std::string> names;
    for (auto node = nodes_.lower_bound(prefix);
         node != nodes_.end() && node->first.starts_with(prefix); ++node) {
      const std::string name = node->first.substr(prefix.size());
      if (name.find('/') == name.npos) names.push_back(name);
    }
    return names;
  }

 private:
  struct Node {
    Kind kind = Kind::kDirectory;
    std::string text;  // content or target
  };
  void add(std::string_view path, Node node) {
    nodes_[std::string(path)] = std::move(node);
    for (size_t slash = path.rfind('/'); slash != 0; slash = path.rfind('/', slash - 1))
      nodes_[std::string(path.substr(0, slash))].kind = Kind::kDirectory;
  }
  std::map<std::string, Node, std::less<>> nodes_;  // by path, directories among them
};

}  // namespace gxp
