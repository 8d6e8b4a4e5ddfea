// The checks behind lint's rules. One more rule is a function here and a row in lint_rules.cc.
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
std::span<const LintRow> lint_rows();

// lint_tags.cc
void check_declaration(std::span<const XmlTag> tags, const Say& say);
void check_between(std::span<const XmlTag> tags, const Say& say);
void check_broken_tag(std::span<const XmlTag> tags, const Say& say);
void check_element_count(std::span<const XmlTag> tags, const Say& say);
void check_child_count(std::span<const XmlTag> tags, const Say& say);
void check_attribute_count(std::span<const XmlTag> tags, const Say& say);
void check_long_value(std::span<const XmlTag> tags, const Say& say);

// lint_numa.cc
void check_unknown_attribute(const LintSubject& subject, const Say& say);
void check_unknown_element(const LintSubject& subject, const Say& say);
void check_numa_id(const LintSubject& subject, const Say& say);
void check_numa_id_twice(const LintSubject& subject, const Say& say);
void check_affinity_empty(const LintSubject& subject, const Say& say);
void check_affinity_overlap(const LintSubject& subject, const Say& say);
void check_cpu_unknown(const LintSubject& subject, const Say& say);

// lint_pcie.cc
void check_bus_id(const LintSubject& subject, const Say& say);
void check_bus_id_twice(const LintSubject& subject, const Say& say);
void check_bus_id_of_none(const LintSubject& subject, const Say& say);
void check_class_missing(const LintSubject& subject, const Say& say);
void check_class_unknown(const LintSubject& subject, const Say& say);
void check_class_contradicts(const LintSubject& subject, const Say& say);
void check_class_hides(const LintSubject& subject, const Say& say);
void check_broadcom_flattened(const LintSubject& subject, const Say& say);
void check_broadcom_kept(const LintSubject& subject, const Say& say);

// lint_speed.cc
void check_speed_misread(const LintSubject& subject, const Say& say);
void check_speed_missing(const LintSubject& subject, const Say& say);
void check_width(const LintSubject& subject, const Say& say);
void check_below_siblings(const LintSubject& subject, const Say& say);
void check_below_most(const LintSubject& subject, const Say& say);
void check_slow_uplink(const LintSubject& subject, const Say& say);
void check_shared_uplink(const LintSubject& subject, const Say& say);

// lint_devices.cc
void check_gpu_rank(const LintSubject& subject, const Say& say);
void check_gpu_rank_twice(const LintSubject& subject, const Say& say);
void check_gpu_dev(const LintSubject& subject, const Say& say);
void check_gpu_dev_twice(const LintSubject& subject, const Say& say);
void check_gpu_sm(const LintSubject& subject, const Say& say);
void check_gpu_gdr(const LintSubject& subject, const Say& say);
void check_gpu_far(const LintSubject& subject, const Say& say);
void check_net_dev(const LintSubject& subject, const Say& say);
void check_net_dev_twice(const LintSubject& subject, const Say& say);
void check_net_speed(const LintSubject& subject, const Say& say);
void check_net_same_port(const LintSubject& subject, const Say& say);

// lint_links.cc
void check_link_to_itself(const LintSubject& subject, const Say& say);
void check_link_to_nothing(const LintSubject& subject, const Say& say);
void check_link_class(const LintSubject& subject, const Say& say);
void check_link_one_way(const LintSubject& subject, const Say& say);
void check_link_counts(const LintSubject& subject, const Say& say);
void check_link_missing(const LintSubject& subject, const Say& say);

}  // namespace gxp
