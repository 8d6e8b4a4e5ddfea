// Matrices of bandwidths between objects of hwloc's XML.
#include <fmt/format.h>

#include <array>
#include <sstream>

#include "lib/tools/topology/read/hwloc_objects.h"

namespace gxp {
namespace {

constexpr double kMaxObjects = 1024;

struct MatrixKind {
  std::string_view name;
  CrossLinkKind kind;
};
constexpr std::array<MatrixKind, 2> kMatrices = {
    {{"NVLinkBandwidth", CrossLinkKind::kNvLink}, {"XGMIBandwidth", CrossLinkKind::kXgmi}}};

std::vector<std::string> words_in(const pugi::xml_node& matrix, const char* element) {
  std::vector<std::string> words;
  for (const pugi::xml_node part : matrix.children(element)) {
    std::istringstream text(part.text().as_string());
    for (std::string word; text >> word;) words.push_back(word);
  }
  return words;
}

// The indexes of objects of one type lack the type.
std::vector<PartId> parts_of(const HwlocHost& host, const pugi::xml_node& matrix) {
  const std::string_view type = matrix.attribute("type").value();
  std::vector<PartId> parts;
  for (const std::string& index : words_in(matrix, "indexes")) {
    const bool has_type = index.find(':') != std::string::npos;
    const auto found = host.by_index.find(has_type ? index : fmt::format("{}:{}", type, index));
    parts.push_back(found == host.by_index.end() ? kNoPart : found->second);
  }
  return parts;
}

void read_matrix(HwlocHost& host, const pugi::xml_node& matrix, CrossLinkKind kind) {
  const auto count = size_t(host.xml.number(matrix, matrix.attribute("nbobjs"), {1, kMaxObjects}));
  const std::vector<PartId> parts = parts_of(host, matrix);
  const std::vector<std::string> values = words_in(matrix, "u64values");
  if (parts.size() != count || values.size() != count * count) {
    host.xml.fail_at(matrix, fmt::format("a matrix of {} objects has {} indexes and {} values",
                                         count, parts.size(), values.size()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const PartId from = parts[i / count], to = parts[i % count];
    const auto mb_per_s = parse_number(values[i]);
    if (!mb_per_s || *mb_per_s < 0)
      host.xml.fail_at(matrix, fmt::format("\"{}\" is not a bandwidth", values[i].substr(0, 40)));
    if (*mb_per_s == 0 || i / count == i % count || from == kNoPart || to == kNoPart) continue;
    if (host.tree[from].kind != PartKind::kGpu) continue;  // a CPU's ends are not listed
    const bool to_cpu = host.tree[to].kind == PartKind::kNumaNode;
    host.tree.add_cross_link(
        {.kind = kind,
         .from = from,
         .to = to,
         .target = host.tree[to].bus_id,
         .target_class = to_cpu ? "0x068001" : host.tree[to].identity.class_code,
         .gb_per_s = *mb_per_s / 1000,
         .place = host.xml.place_of(matrix)});
  }
}

}  // namespace

void read_hwloc_matrices(HwlocHost& host, const pugi::xml_node& topology) {
  for (const char* const element : {"distances2", "distances2hetero"}) {
    for (const pugi::xml_node matrix : topology.children(element)) {
      for (const MatrixKind& each : kMatrices) {
        if (matrix.attribute("name").value() == each.name) read_matrix(host, matrix, each.kind);
      }
    }
  }
}

}  // namespace gxp
