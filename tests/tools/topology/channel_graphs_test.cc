#include "lib/tools/topology/read/channel_graphs.h"

#include "lib/base/text_file.h"
#include "tests/catch.h"
#include "tests/tools/topology/same_xml.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

ChannelGraphs parse_graphs(const std::string& text) { return read_channel_graphs(text, "g.xml"); }

std::string in_graphs(const std::string& text) {
  return "<graphs version=\"1\">\n" + text + "</graphs>";
}

}  // namespace

TEST_CASE("a graph that NCCL dumped is written back as it was read", "[topo]") {
  const std::string text =
      read_text_file(std::string(GXP_TEST_DATA) + "/topo/azure-ncv4-graph.xml", 1 << 20);
  const ChannelGraphs graphs = parse_graphs(text);
  REQUIRE(graphs.graphs.size() == 3);
  CHECK(graphs.notes.empty());
  CHECK(name_of_pattern(graphs.graphs[0].pattern.value()) == "ring");
  CHECK(graphs.graphs[0].speed_intra == 12);
  CHECK(graphs.graphs[0].channels.at(1).devices.at(1).dev == 3);
  CHECK(first_difference(text, write_channel_graphs(graphs)) == "");
}

TEST_CASE("nets, ranks, new attributes and devices of other hosts are kept", "[topo]") {
  const std::string text = in_graphs(
      "<graph id=\"0\" pattern=\"4\" nchannels=\"1\" speedintra=\"0.24\" crossnic=\"2\" new=\"x\">"
      "<channel><net dev=\"0\"/><gpu dev=\"0x1000000000007\" rank=\"12\" odd=\"\"/><net "
      "dev=\"0x1\"/></channel></graph><graph id=\"3\"/>");
  CHECK(first_difference(text, write_channel_graphs(parse_graphs(text))) == "");
  CHECK(parse_graphs(text).graphs[0].channels[0].devices[1].dev == 0x1000000000007);
}

TEST_CASE("what a graph says wrongly is noted with its place", "[topo]") {
  const auto [text, note] = GENERATE(table<std::string, std::string>({
      {"<graph nchannels=\"2\"/>", "g.xml:2:1: nchannels is 2, but there are 0 channels"},
      {"<graph typeintra=\"FAR\"/>", "g.xml:2:1: \"FAR\" is not a path type"},
      {"<new/>", "g.xml:2:1: <new> is unknown; ignored"},
      {"<graph><channel><gpu dev=\"12\"/></channel></graph>",
       "g.xml:2:17: dev=\"12\" has no 0x; taken as decimal, which NCCL 2.30 would read as "
       "hexadecimal"},
  }));
  CHECK(parse_graphs(in_graphs(text)).notes == std::vector<std::string>{note});
}

TEST_CASE("a broken graph file is an error that says where and why", "[topo]") {
  const auto [text, said] = GENERATE(table<std::string, std::string>({
      {"<system/>", "g.xml:1:1: there is no <graphs>, but <system>"},
      {"<graphs version=\"2\"/>", "g.xml:1:1: <graphs version=\"2\">: only 1 is known"},
      {in_graphs("<graph id=\"x\"/>"), "g.xml:2:1: <graph id=\"x\">: must be a number"},
      {in_graphs("<graph><channel><gpu/></channel></graph>"), "g.xml:2:17: <gpu> has no dev"},
  }));
  const std::string message = complaint(ErrorKind::kCorrupt, [&, &t = text] { parse_graphs(t); });
  CHECK(message.find("read topology " + said) == 0);
}

}  // namespace gxp
