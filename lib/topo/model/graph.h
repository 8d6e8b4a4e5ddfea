// The hardware graph: the devices of a host, or of anything else that is wired, and their links.
//
// Links are directed; a cable is two of them, since both directions carry their full rate at once.
// A path has the bandwidth of its narrowest link. GPUs and NICs end paths: they do not forward (a
// NIC forwards into its network, which is another graph: cluster.h).
//   Units   1 GB/s is 10^9 bytes per second; latencies are in seconds.
//   Limits  kMaxVertices, kMaxLinks; add_... throw kConfig beyond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gxp {

enum class VertexKind : uint8_t {
  kNumaNode,  // a socket or a part of one, with its memory and its PCIe roots
  kPcieSwitch,
  kNvSwitch,  // all of a host's as one
  kGpu,
  kNic,
  kPcieDevice,  // anything else
};

enum class LinkKind : uint8_t { kPcie, kNvLink, kChipToChip, kInterNuma, kNetwork };

std::string_view to_string(VertexKind kind);  // "GPU"
std::string_view to_string(LinkKind kind);    // "PCIe"
// Whether paths may lead through a vertex of this kind.
bool forwards(VertexKind kind);

using VertexId = uint32_t;  // index into vertices()
using LinkId = uint32_t;    // index into links()

struct Vertex {
  VertexKind kind = VertexKind::kPcieDevice;
  std::string name;  // "GPU 0", "mlx5_0"; unique by convention only
};

struct Link {
  VertexId from = 0;
  VertexId to = 0;
  LinkKind kind = LinkKind::kPcie;
  double gb_per_s = 0;
  double latency_s = 0;
};

class HardwareGraph {
 public:
  static constexpr size_t kMaxVertices = 1u << 12;
  static constexpr size_t kMaxLinks = 1u << 16;

  VertexId add_vertex(VertexKind kind, std::string name);
  void add_link(const Link& link);
  void add_cable(const Link& link);  // two equal links, one each way

  void rename(VertexId vertex, std::string name) { vertices_[vertex].name = std::move(name); }

  [[nodiscard]] const std::vector<Vertex>& vertices() const { return vertices_; }
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] std::span<const LinkId> links_from(VertexId vertex) const { return out_[vertex]; }
  // "GPU 0 -> NVSwitch".
  [[nodiscard]] std::string name_of(LinkId link) const;

 private:
  std::vector<Vertex> vertices_;
  std::vector<Link> links_;
  std::vector<std::vector<LinkId>> out_;
};

struct Path {
  std::vector<LinkId> links{};  // from the first vertex on
  double gb_per_s = 0;          // infinite if there are no links
  double latency_s = 0;
  bool exists = false;  // false: the vertices are not joined
};

// From `from` to each of `targets`: the widest path; of those one with the fewest links, the same
// in every run. `exists` and empty for `from` itself. Cost: O(links log links) and, per distinct
// width of a path, O(links).
std::vector<Path> find_paths(const HardwareGraph& graph, VertexId from,
                             std::span<const VertexId> targets);

}  // namespace gxp
