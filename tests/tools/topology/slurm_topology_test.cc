#include "lib/tools/topology/read/slurm_topology.h"

#include <algorithm>

#include "lib/tools/topology/read/topology.h"
#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

Topology parse_slurm(const std::string& text) { return read_slurm_topology(text, "t.conf"); }

// "spine>leaf:n1,n2": from the top to the first switch of a host, and the hosts there.
std::string way_to(const Topology& topology, const std::string& host) {
  const auto found = std::ranges::find(topology.hosts, host, &TopologyHost::name);
  if (found == topology.hosts.end()) return "";
  std::string way;
  for (size_t i = found->leaves.at(0); i != kNoSwitch; i = topology.switches[i].above)
    way = topology.switches[i].name + (way.empty() ? "" : ">") + way;
  return way;
}

}  // namespace

TEST_CASE("a tree of switches has its nodes below its leaves", "[topo]") {
  const Topology topology = parse_slurm(
      "# two leaves\n"
      "switchname=leaf0 Nodes=n[08-10,12]  # four\n"
      "SwitchName=leaf1 \\\n   Nodes=gpu-a,r[1-2]n[5,7]\r\n"
      "SwitchName=spine Switches=leaf[0-1]\n");
  CHECK(topology.hosts.size() == 9);
  CHECK(way_to(topology, "n08") == "spine>leaf0");
  CHECK(way_to(topology, "r2n7") == "spine>leaf1");
  CHECK(way_to(topology, "gpu-a") == "spine>leaf1");
  CHECK(way_to(topology, "n11") == "");
  CHECK(topology.notes.empty());
  CHECK(topology.trees.empty());
}

TEST_CASE("blocks are groups of nodes", "[topo]") {
  const Topology topology =
      parse_slurm("BlockName=b1 Nodes=n[1-18]\nBlockName=b2 Nodes=n[19-36]\nBlockSizes=18,36\n");
  CHECK(topology.hosts.size() == 36);
  CHECK(topology.switches.at(0).is_block);
  CHECK(way_to(topology, "n19") == "b2");
}

TEST_CASE("what scontrol shows is read as the file that it shows", "[topo]") {
  const Topology tree = parse_slurm(
      "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=a,b\n"
      "SwitchName=a Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=b Level=0 LinkSpeed=1 "
      "Nodes=n[3-4]");
  for (const TopologyHost& host : tree.hosts) CHECK(host.leaves.size() == 1);
  CHECK(way_to(tree, "n3") == "top>b");
  CHECK(tree.notes.size() == 1);  // of LinkSpeed
  const Topology blocks = parse_slurm(
      "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\n"
      "AggregatedBlock=b[1-1] BlockIndex=1 Nodes=n[1-2] BlockSize=4\n");
  CHECK(blocks.switches.size() == 1);
  CHECK(blocks.notes.empty());
}

TEST_CASE("what is left out or not used of a topology.conf is noted", "[topo]") {
  const auto [text, note] = GENERATE(table<std::string, std::string>({
      {"SwitchName=s Switches=x", "t.conf: switch x has no line of its own"},
      {"SwitchName=s Nodes=n LinkSpeed=100",
       "t.conf:1:22: LinkSpeed=100 is ignored, since it has no unit"},
      {"SwitchName=s Colour=red", "t.conf:1:14: Colour is unknown; ignored"},
      {"SwitchName=a Nodes=n\nSwitchName=b Switches=a\nSwitchName=c Switches=a",
       "t.conf:3:14: switch a is already below b; the first is kept"},
  }));
  CHECK(parse_slurm(text).notes == std::vector<std::string>{note});
}

TEST_CASE("a broken topology.conf is an error that says where and why", "[topo]") {
  const auto [text, said] = GENERATE(table<std::string, std::string>({
      {"SwitchName=s Nodes", "t.conf:1:14: \"Nodes\" is not KEY=VALUE"},
      {"SwitchName=s Nodes=", "t.conf:1:14: \"Nodes=\" is not KEY=VALUE"},
      {"\n  Nodes=n", "t.conf:2:3: neither SwitchName nor BlockName"},
      {"SwitchName=s Nodes=n[1-", "t.conf:1:14: '[' without ']'"},
      {"SwitchName=s Nodes=n[3-1]", "\"[3-1]\" is not a range of numbers"},
      {"SwitchName=s Nodes=n[x]", "\"[x]\" is not a range of numbers"},
      {"SwitchName=s Nodes=n[0-999999999]", "is not a range of numbers"},
      {"SwitchName=s Nodes=a[0-999]b[0-999]", "more than 65536 names"},
      {"SwitchName=s Nodes=,a", "an empty name"},
      {"SwitchName=s Switches=s", "switch s is below itself"},
      {"SwitchName=a Switches=b\nSwitchName=b Switches=a", "t.conf:2:14: switch a is below itself"},
      {"SwitchName=s Nodes=a\nSwitchName=s Nodes=b", "t.conf:2:1: s occurs twice"},
      {"SwitchName=s BlockName=b", "SwitchName and BlockName in one line"},
      {"BlockSizes=18", "it names no switch and no block"},
  }));
  const std::string message = complaint(ErrorKind::kCorrupt, [&, &t = text] { parse_slurm(t); });
  CAPTURE(text);
  CHECK(message.find("read topology t.conf:") == 0);
  CHECK(message.find(said) != std::string::npos);
}

TEST_CASE("switches in too many levels and too many names are refused", "[topo]") {
  std::string down;
  std::string up;
  std::string many;
  for (int i = 0; i < 40; ++i) {
    down += "SwitchName=s" + std::to_string(i) + " Switches=s" + std::to_string(i + 1) + "\n";
    up += "SwitchName=s" + std::to_string(i + 1) + " Switches=s" + std::to_string(i) + "\n";
    many += "SwitchName=s" + std::to_string(i) + " Nodes=n[0-65535]\n";
  }
  for (const std::string& text : {down, up})
    CHECK(complaint(ErrorKind::kCorrupt, [&] { parse_slurm(text); }).find("more than 32 levels") !=
          std::string::npos);
  CHECK(complaint(ErrorKind::kCorrupt, [&] { parse_slurm(many); }).find("names in all") !=
        std::string::npos);
}

TEST_CASE("only what begins with switches or blocks is a topology.conf", "[topo]") {
  CHECK(looks_like_slurm_topology("\n# x\n SwitchName=s"));
  CHECK(looks_like_slurm_topology("blocksizes=4"));
  CHECK_FALSE(looks_like_slurm_topology("NodeName=n"));
  CHECK_FALSE(looks_like_slurm_topology(""));
}

}  // namespace gxp
