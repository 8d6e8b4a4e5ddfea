#include "lib/tools/topology/read/sources.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <type_traits>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/near_match.h"
#include "lib/base/text/utf8.h"
#include "lib/base/text_file.h"
#include "lib/tools/topology/model/synthetic.h"
#include "lib/tools/topology/read/channel_graphs.h"
#include "lib/tools/topology/read/cluster_file.h"
#include "lib/tools/topology/read/hwloc_xml.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/slurm_topology.h"
#include "lib/tools/topology/read/smi_matrix.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"
#include "lib/topo/read/live_host.h"
#include "lib/topo/read/pci_tree.h"
#include "lib/topo/read/sysfs_host.h"

namespace gxp {
namespace {

// The name of the outermost element; "": it is no XML.
std::string_view root_element(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with('<')) return "";
    const std::string_view end = text.starts_with("<!--") ? "-->" : ">";
    if (!text.starts_with("<!") && !text.starts_with("<?")) break;
    const size_t at = text.find(end);
    if (at == std::string_view::npos) return "";
    text.remove_prefix(at + end.size());
  }
  text.remove_prefix(1);
  return text.substr(0, text.find_first_of(" \t\r\n/>"));
}

bool is_xml_of(const SourceInput& input, std::string_view element) {
  return input.form == SourceForm::kFile && root_element(input.text) == element;
}

// Loads text by a reader that makes a host or a topology.
template <auto kRead>
Topology load(const SourceInput& input) {
  auto read = kRead(input.text, input.name);
  if constexpr (std::is_same_v<decltype(read), HostTree>)
    return topology_of(std::move(read));
  else
    return read;
}

bool is_channel_graphs(const SourceInput& input) { return is_xml_of(input, "graphs"); }
Topology load_channel_graphs(const SourceInput& input) {
  ChannelGraphs read = read_channel_graphs(input.text, input.name);
  return {.name = input.name,
          .source = "NCCL graph XML, version 1",
          .channel_graphs = std::move(read.graphs),
          .notes = std::move(read.notes)};
}

// Substrings, any of which identifies the format; a leading '\n' anchors it to the start of a line.
using Marks = std::array<std::string_view, 5>;
constexpr Marks kRocmSmi = {"ROCm System Management Interface",
                            "between two GPUs =", "\nLINK TYPE TABLE:"};

bool has_one_of(const SourceInput& input, const Marks& marks) {
  constexpr size_t kMaxLooked = 64u << 10;
  const std::string text = "\n" + input.text.substr(0, kMaxLooked);
  return std::ranges::any_of(
      marks, [&](auto mark) { return !mark.empty() && text.find(mark) != std::string::npos; });
}

bool is_matrix(const SourceInput& input) {
  return input.form == SourceForm::kFile && looks_like_matrix(input.text) &&
         !has_one_of(input, kRocmSmi);
}
HostTree read_smi_host(std::string_view text, const std::string& name) {
  return host_of_matrix(read_pasted_matrix(text, name), name);
}

bool is_slurm(const SourceInput& input) {
  return input.form == SourceForm::kFile && looks_like_slurm_topology(input.text);
}
bool is_name(const SourceInput& input) {
  return input.form == SourceForm::kName && is_synthetic(input.name);
}
Topology load_name(const SourceInput& input) { return topology_of(make_synthetic(input.name)); }

bool is_live(const SourceInput& input) {
  return input.form == SourceForm::kName && input.name == "live";
}
Topology load_live(const SourceInput&) { return topology_of(probe_host()); }

bool is_recorded(const SourceInput& input) { return input.form == SourceForm::kDirectory; }
Topology load_recorded(const SourceInput& input) {
  return topology_of(read_recorded_root(*open_recorded_directory(input.name), input.name));
}

bool is_hwloc(const SourceInput& input) { return is_xml_of(input, "topology"); }
constexpr std::array kSources = {
    TopologySource{"nccl-xml", "NCCL's topology XML (NCCL_TOPO_DUMP_FILE) or RCCL's",
                   "<system version=\"1\">", is_nccl_xml, load<read_nccl_xml>},
    TopologySource{"nccl-graph", "NCCL's graph XML (NCCL_GRAPH_DUMP_FILE): rings and trees alone",
                   "<graphs version=\"1\">", is_channel_graphs, load_channel_graphs},
    TopologySource{"nvidia-smi", "what nvidia-smi topo -m or -p2p printed, pasted",
                   "its columns, GPU0 GPU1", is_matrix, load<read_smi_host>},
    TopologySource{"slurm", "Slurm's topology.conf, or what scontrol show topology printed",
                   "SwitchName=NAME", is_slurm, load<read_slurm_topology>},
    TopologySource{"cluster", "gxp's cluster TOML, as allreduce-test --simulate takes it",
                   "[hosts]", is_cluster_toml, load<parse_cluster_topology>},
    TopologySource{"name", "a machine or shape by name: dgx-h100, ring:8", "its name", is_name,
                   load_name},
    TopologySource{"live", "this host: /proc, /sys and NVML", "the name live", is_live, load_live},
    TopologySource{"root", "a host's /proc and /sys, recorded by hwloc-gather-topology",
                   "a directory with sys in it", is_recorded, load_recorded},
    TopologySource{"hwloc-xml", "hwloc's XML (lstopo --of xml), version 1, 2 or 3",
                   "<topology version=\"2.0\">", is_hwloc, load<read_hwloc_xml>},
};

// "3b:00.0 3D controller: ...", "0000:3b:00.0 ...", "-+-[0000:00]-".
bool is_lspci(const SourceInput& input) {
  const std::string_view line(input.text.data(),
                              std::min(input.text.find('\n'), input.text.size()));
  if (line.starts_with("-[0000:") || line.starts_with("-+-[")) return true;
  const std::string_view bus_id = line.substr(0, line.find(' '));
  return bus_id.size() < line.size() &&
         (is_bus_id(bus_id) || is_bus_id(fmt::format("0000:{}", bus_id)));
}

bool is_empty(const SourceInput& input) {
  return input.text.find_first_not_of(" \t\r\n") == std::string::npos;
}

// A tar, or what gzip, bzip2, xz or zstd compressed.
bool is_packed(const SourceInput& input) {
  using namespace std::string_view_literals;
  constexpr std::array kMagics = {"\x1f\x8b"sv, "BZh"sv, "\xfd\x37zXZ\0"sv, "\x28\xb5\x2f\xfd"sv};
  constexpr size_t kTarMagicAt = 257;
  return std::ranges::any_of(kMagics, [&](auto magic) { return input.text.starts_with(magic); }) ||
         (input.text.size() > kTarMagicAt && input.text.substr(kTarMagicAt).starts_with("ustar"));
}

// Inputs that are commonly mistaken for a topology.
struct MistakenInput {
  std::string_view what;
  Marks marks{};
  bool (*recognises)(const SourceInput& input) = nullptr;
};
constexpr std::array kMistakenInputs = {
    MistakenInput{"it is empty", {}, is_empty},
    MistakenInput{"it is packed; unpack it, and give the folder or file", {}, is_packed},
    MistakenInput{"output of rocm-smi or amd-smi is not supported; let RCCL write a topology file "
                  "(NCCL_TOPO_DUMP_FILE)",
                  kRocmSmi},
    MistakenInput{
        "use the output of nvidia-smi topo -m, which shows how GPUs are connected",
        {"| NVIDIA-SMI ", "==NVSMI LOG==", "\n\t Link 0: ", "(UUID: GPU-", "<nvidia_smi_log"}},
    MistakenInput{"it is NCCL's log; let NCCL write the topology to a file (NCCL_TOPO_DUMP_FILE)",
                  {"NCCL INFO ", "=== System : maxBw"}},
    MistakenInput{
        "Slurm's topology.yaml is not supported; use the output of scontrol show topology",
        {"\n- topology:"}},
    MistakenInput{"it is lstopo's text; use lstopo --of xml",
                  {"L#0 (P#", "Package L#0", "\nMachine ("}},
    MistakenInput{"it is a picture; use lstopo --of xml or gxp topo --format nccl-xml",
                  {"\n<svg", "\n\x89PNG", "\n%PDF"}},
    MistakenInput{"it has XML inside other text; extract the XML",
                  {"<system version=", "<topology version="}},
    MistakenInput{"it is lspci's text; use lstopo --of xml or hwloc-gather-topology", {}, is_lspci},
    MistakenInput{"it is gxp's JSON, which gxp does not read; use --format nccl-xml",
                  {"\"schema\": \"gxp.topo/"}},
};

[[noreturn]] void refuse(const SourceInput& input) {
  for (const MistakenInput& mistaken : kMistakenInputs) {
    if (has_one_of(input, mistaken.marks) ||
        (mistaken.recognises != nullptr && mistaken.recognises(input)))
      fail(ErrorKind::kCorrupt, "read topology {}: {}", input.name, mistaken.what);
  }
  std::vector<std::string> known;
  for (const TopologySource& row : kSources)
    known.push_back(fmt::format("{} ({})", row.summary, row.mark));
  fail(ErrorKind::kCorrupt, "read topology {}: unrecognised format: {}", input.name,
       joined(known, "; "));
}

}  // namespace

HostTree read_recorded_root(const SystemRoot& root, const std::string& path) {
  HostTree host = read_system(root);
  // hwloc-gather-topology writes "HostName: cfarm107" here.
  const std::string info = root.read("/proc/hwloc-nofile-info").value_or("");
  if (host.name.empty()) host.name = value_behind(info, "HostName: ");
  if (host.name.empty()) host.name = std::filesystem::path(path).filename();
  host.source = "recorded /proc and /sys, " + path;
  if (!host.all_of(PartKind::kGpu).empty()) {
    host.absent.push_back(
        "no driver in a recorded root: GPUs have no number, memory size or NVLinks");
  }
  return host;
}

std::span<const TopologySource> topology_sources() { return kSources; }

bool is_nccl_xml(const SourceInput& input) { return is_xml_of(input, "system"); }

// Recognised by a key that it must have, or by the start of its hosts.
bool is_cluster_toml(const SourceInput& input) {
  if (input.form != SourceForm::kFile) return false;
  return has_one_of(input, {"\n[hosts]", "\n[[hosts]]", "\nmessage_overhead_us"});
}

SourceInput look_at_source(const std::string& what, const std::string& folder) {
  SourceInput input{.name = what};
  if (what == "-" && folder.empty()) {
    input.name = "standard input";
    input.form = SourceForm::kFile;
    input.text = to_utf8(read_standard_input(kMaxSourceBytes));
    return input;
  }
  if (std::ranges::any_of(kSources, [&](const auto& row) { return row.recognises(input); }))
    return input;
  const std::string path = std::filesystem::path(folder) / what;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) check_sys(-1, fmt::format("read {}", path));
    std::vector<std::string> names;
    for (const SyntheticName& known : synthetic_names()) names.emplace_back(known.name);
    const bool is_file = what.find_first_of("./") != std::string::npos;
    fail(is_file ? ErrorKind::kIo : ErrorKind::kUsage,
         "topology '{}': no such file or name{}; known names: {}", path, did_you_mean(what, names),
         joined(names, ", "));
  }
  input.form = S_ISDIR(status.st_mode) ? SourceForm::kDirectory : SourceForm::kFile;
  input.name = path;
  if (input.form == SourceForm::kFile) input.text = to_utf8(read_text_file(path, kMaxSourceBytes));
  return input;
}

Topology load_topology(const std::string& what) { return load_topology(look_at_source(what)); }

Topology load_topology(const SourceInput& input) {
  const auto row = std::ranges::find_if(
      kSources, [&](const TopologySource& source) { return source.recognises(input); });
  if (row == kSources.end()) refuse(input);
  return row->load(input);
}

HostTree load_host(const std::string& what) { return load_host(look_at_source(what)); }

HostTree load_host(const SourceInput& input) {
  Topology topology = load_topology(input);
  if (topology.trees.empty()) {
    fail(ErrorKind::kCorrupt, "read topology {}: {} does not describe the inside of a host",
         topology.name, topology.source);
  }
  HostTree host = std::move(*topology.trees.front());
  if (topology.trees.size() > 1) {
    host.notes.push_back(fmt::format("{}: there are {} different hosts; this is the first",
                                     topology.name, topology.trees.size()));
  }
  return host;
}

Topology topology_of(HostTree host) {
  Topology topology{.name = host.name, .source = host.source};
  topology.hosts.push_back({.name = host.name, .tree = 0});
  topology.trees.push_back(std::make_shared<HostTree>(std::move(host)));
  return topology;
}

}  // namespace gxp
