// The checks behind lint's rules. One more rule is a function and a row in one of the lint_*.cc.
// What the rows say of NCCL is of NCCL 2.30, src/graph/xml.cc and topo.cc.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/inspect/check/lint.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {

// A tag of XML, as NCCL's own reader splits a text.
struct XmlTag {
  enum class Kind { kOpen, kClose, kSingle, kOther };  // kOther: <?...> and <!...>
  Kind kind = Kind::kOpen;
  std::string_view name{};
  SourcePlace place{};
  size_t attributes = 0;
  size_t longest_value = 0;
  bool is_broken = false;     // over lines, or by tabs
  std::string_view before{};  // what stands before it and is neither space nor line end
  SourcePlace before_place{};
};
std::vector<XmlTag> scan_tags(std::string_view text);

constexpr size_t kShown = 40;  // bytes of a text of the file, in findings

// Adds a finding of the rule that is being checked.
using Say = std::function<void(SourcePlace place, std::string what)>;

struct LintSubject {
  const HostTree& host;
  std::vector<std::string> names;  // of parts
  explicit LintSubject(const HostTree& tree) : host(tree), names(names_of_parts(tree)) {}
  // "GPU0 (0000:1b:00.0)".
  [[nodiscard]] std::string called(PartId id) const;
};

inline bool has_bus_id(const Part& part) { return !part.bus_id.empty(); }

using TagCheck = void (*)(std::span<const XmlTag> tags, const Say& say);
using HostCheck = void (*)(const LintSubject& subject, const Say& say);

struct LintRow {
  LintRule rule;
  TagCheck tags = nullptr;  // one of the two, or none: what the reader refuses
  HostCheck host = nullptr;
  bool of_file = false;  // asks for what NCCL's XML must say, and other sources need not
};

// The rows of lint_tags.cc and so on, in the order in which they are checked.
std::span<const LintRow> lint_tags_rows();
std::span<const LintRow> lint_numa_rows();
std::span<const LintRow> lint_pcie_rows();
std::span<const LintRow> lint_speed_rows();
std::span<const LintRow> lint_devices_rows();
std::span<const LintRow> lint_links_rows();

}  // namespace gxp
