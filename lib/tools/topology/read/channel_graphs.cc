#include "lib/tools/topology/read/channel_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/tools/topology/read/xml_fields.h"
#include "lib/topo/model/path_type.h"

namespace gxp {
namespace {

constexpr size_t kGraphNameShown = 40;  // of a name, in notes

constexpr std::array<XmlField<ChannelGraph>, 10> kGraphFields = {{
    {"id", &ChannelGraph::id},
    {"pattern", &ChannelGraph::pattern},
    {"crossnic", &ChannelGraph::cross_nic, {0, 2}},
    {"nchannels", &ChannelGraph::channel_count, {0, 1 << 16}},
    {"speedintra", &ChannelGraph::speed_intra, {0, 1e9}},
    {"speedinter", &ChannelGraph::speed_inter, {0, 1e9}},
    {"latencyinter", &ChannelGraph::latency_inter, {0, 1e9}},
    {"typeintra", &ChannelGraph::type_intra},
    {"typeinter", &ChannelGraph::type_inter},
    {"samechannels", &ChannelGraph::same_channels, {0, 1}},
}};

class GraphsReader {
 public:
  GraphsReader(std::string_view text, const std::string& name) : xml_(text, name) {
    result_.name = name;
  }

  ChannelGraphs read() {
    const pugi::xml_node root = xml_.root("graphs");
    const std::string_view version = root.attribute("version").value();
    if (version != "1")
      xml_.fail_at(root, fmt::format("<graphs version=\"{}\">: only 1 is known",
                                     version.substr(0, kGraphNameShown)));
    for (const pugi::xml_node child : root.children()) {
      if (is(child, "graph")) result_.graphs.push_back(read_graph(child));
    }
    return std::move(result_);
  }

 private:
  void note(const pugi::xml_node& node, std::string_view what) {
    result_.notes.push_back(fmt::format("{}: {}", xml_.at(node), what));
  }

  // Whether it is that element; another is noted.
  bool is(const pugi::xml_node& node, std::string_view name) {
    if (node.name() == name) return true;
    if (node.type() == pugi::node_element)
      note(node, fmt::format("<{}> is unknown; ignored",
                             std::string_view(node.name()).substr(0, kGraphNameShown)));
    return false;
  }

  ChannelGraph read_graph(const pugi::xml_node& node) {
    ChannelGraph graph{.place = xml_.place_of(node)};
    for (const pugi::xml_attribute attribute : xml_.attributes(node)) {
      const auto field = std::ranges::find(kGraphFields, std::string_view(attribute.name()),
                                           &XmlField<ChannelGraph>::attribute);
      if (field == kGraphFields.end() || !set_field(xml_, node, attribute, *field, graph))
        graph.other.emplace_back(attribute.name(), attribute.value());
    }
    for (const pugi::xml_node child : node.children()) {
      if (is(child, "channel")) graph.channels.push_back(read_channel(child));
    }
    for (const std::string& type : {graph.type_intra, graph.type_inter}) {
      if (!type.empty() && !parse_path_type(type))
        note(node, fmt::format("\"{}\" is not a path type", type.substr(0, kGraphNameShown)));
    }
    if (graph.channel_count && size_t(*graph.channel_count) != graph.channels.size())
      note(node, fmt::format("nchannels is {}, but there are {} channels", *graph.channel_count,
                             graph.channels.size()));
    return graph;
  }

  Channel read_channel(const pugi::xml_node& node) {
    Channel channel;
    for (const pugi::xml_attribute attribute : xml_.attributes(node))
      channel.other.emplace_back(attribute.name(), attribute.value());
    for (const pugi::xml_node child : node.children()) {
      const std::string_view name = child.name();
      if (name == "gpu" || name == "net") {
        channel.devices.push_back(read_device(child));
      } else {
        is(child, "gpu");
      }
    }
    return channel;
  }

  ChannelDevice read_device(const pugi::xml_node& node) {
    ChannelDevice device;
    if (std::string_view(node.name()) == "net") device.kind = ChannelDevice::Kind::kNet;
    if (!node.attribute("dev")) xml_.fail_at(node, fmt::format("<{}> has no dev", node.name()));
    for (const pugi::xml_attribute attribute : xml_.attributes(node)) {
      const std::string_view name = attribute.name();
      if (name == "dev") {
        device.dev = int64_t(xml_.number(node, attribute, {0, double(int64_t{1} << 52)}));
        const std::string_view text = attribute.value();
        if (!text.starts_with("0x") && device.dev > 9)
          note(node,
               fmt::format("dev=\"{}\" has no 0x; taken as decimal, which NCCL 2.30 would read "
                           "as hexadecimal",
                           text));
      } else if (name == "rank" && *attribute.value() != 0) {
        device.rank = int(xml_.number(node, attribute, {0, 1 << 30}));
      } else {
        device.other.emplace_back(name, attribute.value());
      }
    }
    return device;
  }

  XmlText xml_;
  ChannelGraphs result_;
};

void write_attributes(XmlWriter& xml, const Attributes& attributes) {
  for (const auto& [name, value] : attributes) xml.attribute(name, value);
}

void write_channel(XmlWriter& xml, const Channel& channel) {
  xml.open("channel");
  write_attributes(xml, channel.other);
  for (const ChannelDevice& device : channel.devices) {
    xml.open(device.kind == ChannelDevice::Kind::kGpu ? "gpu" : "net");
    xml.attribute("dev", device.dev == 0 ? "0" : fmt::format("{:#x}", device.dev));
    if (device.rank) xml.attribute("rank", std::to_string(*device.rank));
    write_attributes(xml, device.other);
    xml.close();
  }
  xml.close();
}

}  // namespace

std::string_view name_of_pattern(int pattern) {
  constexpr std::array<std::string_view, 7> kNames = {
      "", "balanced tree", "split tree", "tree", "ring", "NVLS", "collnet direct"};
  return pattern > 0 && size_t(pattern) < kNames.size() ? kNames[size_t(pattern)] : "";
}

ChannelGraphs read_channel_graphs(std::string_view text, const std::string& name) {
  return GraphsReader(text, name).read();
}

std::string write_channel_graphs(const ChannelGraphs& graphs) {
  XmlWriter xml;
  xml.open("graphs");
  xml.attribute("version", "1");
  for (const ChannelGraph& graph : graphs.graphs) {
    xml.open("graph");
    write_fields(xml, kGraphFields, graph);
    write_attributes(xml, graph.other);
    for (const Channel& channel : graph.channels) write_channel(xml, channel);
    xml.close();
  }
  xml.close();
  return xml.text();
}

}  // namespace gxp
