#include "lib/topo/model/graph.h"

#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

using enum VertexKind;

std::vector<std::string> names_along(const HardwareGraph& graph, const Path& path) {
  std::vector<std::string> names;
  for (const LinkId link : path.links) names.push_back(graph.name_of(link));
  return names;
}

Path path_between(const HardwareGraph& graph, VertexId from, VertexId to) {
  return find_paths(graph, from, {&to, 1})[0];
}

// a and b are joined directly, and over switches x, y by wider links.
struct Detour {
  HardwareGraph graph;
  VertexId a = graph.add_vertex(kGpu, "a");
  VertexId b = graph.add_vertex(kGpu, "b");
  VertexId x = graph.add_vertex(kPcieSwitch, "x");
  VertexId y = graph.add_vertex(kPcieSwitch, "y");
  void join(VertexId from, VertexId to, double gb_per_s, double latency_s = 1e-6) {
    graph.add_cable({.from = from, .to = to, .gb_per_s = gb_per_s, .latency_s = latency_s});
  }
};

}  // namespace

TEST_CASE("a path takes the widest way, and of the widest the shortest", "[topo]") {
  Detour detour;
  detour.join(detour.a, detour.b, 10);
  detour.join(detour.a, detour.x, 20);
  detour.join(detour.x, detour.y, 40);
  detour.join(detour.y, detour.b, 30);
  const Path wide = path_between(detour.graph, detour.a, detour.b);
  CHECK(names_along(detour.graph, wide) == std::vector<std::string>{"a -> x", "x -> y", "y -> b"});
  CHECK(wide.gb_per_s == 20);
  CHECK(wide.latency_s == Approx(3e-6));
  detour.join(detour.x, detour.b, 20);
  const Path shorter = path_between(detour.graph, detour.a, detour.b);
  CHECK(names_along(detour.graph, shorter) == std::vector<std::string>{"a -> x", "x -> b"});
}

TEST_CASE("a narrow start does not hide a short way", "[topo]") {
  Detour detour;
  const VertexId z = detour.graph.add_vertex(kPcieSwitch, "z");
  detour.join(detour.a, detour.x, 50);  // wide and long to y, ...
  detour.join(detour.x, z, 50);
  detour.join(z, detour.y, 50);
  detour.join(detour.a, detour.y, 10);  // ... which a reaches directly as well
  detour.join(detour.y, detour.b, 5);
  CHECK(path_between(detour.graph, detour.a, detour.b).links.size() == 2);
  CHECK(path_between(detour.graph, detour.a, detour.y).links.size() == 3);
}

TEST_CASE("GPUs and NICs do not forward", "[topo]") {
  Detour detour;
  const VertexId end = detour.graph.add_vertex(kGpu, "end");
  detour.join(detour.a, detour.b, 10);
  detour.join(detour.b, end, 10);
  CHECK_FALSE(path_between(detour.graph, detour.a, end).exists);
  CHECK(path_between(detour.graph, detour.b, end).exists);
}

TEST_CASE("a vertex reaches itself over no links", "[topo]") {
  Detour detour;
  const Path path = path_between(detour.graph, detour.x, detour.x);
  CHECK(path.exists);
  CHECK(path.links.empty());
}

TEST_CASE("a graph that grows beyond its limit is an error", "[topo]") {
  HardwareGraph graph;
  for (size_t i = 0; i < HardwareGraph::kMaxVertices; ++i) graph.add_vertex(kGpu, "g");
  CHECK(complaint(ErrorKind::kConfig, [&] { graph.add_vertex(kGpu, "one more"); }) ==
        "add one more to the hardware graph: it has 4096 vertices, the limit");
}

}  // namespace gxp
