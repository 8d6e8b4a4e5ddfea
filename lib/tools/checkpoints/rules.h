// The rules of --map (rename.h), read from TOML.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/tensor_views.h"

namespace gxp {

enum class RuleKind : uint8_t { kRename, kDrop, kReorder, kTranspose, kZeros };

struct Rule {
  int line = 0;
  RuleKind kind = RuleKind::kRename;
  std::string text = {};
  std::regex from = {};
  std::string to = {};                  // of kRename and kZeros
  std::optional<RotaryRows> rows = {};  // of kReorder; nothing: "unchanged"
  uint64_t head_size = 0;               // of kReorder; 0: the model's
  bool optional = false;                // whether it may match nothing
};

// `text` in the order of its lines; `path` names it in errors. kConfig, with file and line.
std::vector<Rule> read_rules(std::string_view text, const std::string& path);

}  // namespace gxp
