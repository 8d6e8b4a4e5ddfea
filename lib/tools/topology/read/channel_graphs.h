// NCCL's graph XML (NCCL_GRAPH_DUMP_FILE, NCCL_GRAPH_FILE; <graphs version="1">): the rings, trees
// and other orders of GPUs that its search found, each as channels.
//   Limits  those of xml_text.h.
//   Errors  kCorrupt, as xml_text.h.
// Source: src/graph/search.cc of NCCL 2.30.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/topo/model/source_text.h"

namespace gxp {

struct ChannelDevice {
  enum class Kind : uint8_t { kGpu, kNet };
  Kind kind = Kind::kGpu;
  int64_t dev = 0;  // the driver's number, or the net's; a number of the host above 2^32
  std::optional<int> rank{};
  Attributes other{};
};

// Devices in the order in which data pass them.
struct Channel {
  std::vector<ChannelDevice> devices{};
  Attributes other{};
};

struct ChannelGraph {
  std::optional<int> id{};       // 0: ring, 1: tree, 2: collnet chain, 3: NVLS, 4: collnet direct
  std::optional<int> pattern{};  // 1: balanced tree, 2: split tree, 3: tree, 4: ring, 5, 6
  std::optional<int> cross_nic{};
  std::optional<int> channel_count{};                  // as the file has it
  std::optional<double> speed_intra{}, speed_inter{};  // GB/s of a channel
  std::optional<double> latency_inter{};
  std::string type_intra{}, type_inter{};  // the farthest paths: "NVL", "PIX"
  std::optional<bool> same_channels{};
  std::vector<Channel> channels{};
  Attributes other{};
  SourceLocation place{};
};

struct ChannelGraphs {
  std::string name{};  // the file's
  std::vector<ChannelGraph> graphs{};
  std::vector<std::string> notes{};
};

std::string_view name_of_pattern(int pattern);  // "ring", "tree"; "": it is not known

// `dev` is hexadecimal with 0x. Without that prefix the number is read as decimal, as NCCL once
// wrote it; a note says so where today's NCCL would read another number.
ChannelGraphs read_channel_graphs(std::string_view text, const std::string& name);
std::string write_channel_graphs(const ChannelGraphs& graphs);

}  // namespace gxp
