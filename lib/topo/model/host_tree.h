// One host as a tree of parts: NUMA nodes, PCIe bridges below them, devices below the bridges; and
// cross links, which are no part of the tree (NVLink, xGMI, chip to chip). Every source of
// topologies makes one; every view, check and plan reads one.
//
// The tree holds what the source said, in its order, and nothing that a rule added: unknown facts
// stay unknown (empty, 0 or no value), and text that gxp has no field for is kept as text. A tree
// that was read from NCCL's XML is therefore written back as the same topology.
//   Names    by their kind's number, see names_of_parts(); bus ids are in lower case.
//   Limits   kMaxParts, kMaxCrossLinks, kMaxDepth: add...() throw kConfig beyond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/topo/model/gpu_direct.h"
#include "lib/topo/model/part.h"

namespace gxp {

class HostTree {
 public:
  static constexpr size_t kMaxParts = 1u << 14;
  static constexpr size_t kMaxCrossLinks = 1u << 16;
  static constexpr int kMaxDepth = 40;

  std::string name;                 // of the host, or of the file
  std::string source;               // "NCCL topology XML, version 1"
  std::string dialect;              // the version that its writer named: "1", "2"; "": none
  std::vector<std::string> notes;   // what the source left out or got wrong: one sentence each
  std::vector<std::string> absent;  // of a live host: what it lacks, with the effect
  // Facts from the files of a host; none: the source says for each device whether it supports
  // GPUDirect RDMA (gdr), or says nothing.
  std::optional<GpuDirectFacts> gpu_direct{};
  // For two GPUs, what the driver says of peer-to-peer from first to second, in nvidia-smi's
  // words: "OK", "TNS"; none: the source does not tell.
  std::map<std::pair<PartId, PartId>, std::string> peer_states;
  bool places_known = true;  // false: how the tree joins GPUs is made up
  // false: the source has no speed of anything, or none of a port, whatever it is. A port without
  // a speed has NCCL's default otherwise.
  bool speeds_known = true;
  bool port_speeds_known = true;
  Attributes other;  // of NCCL's <system>, as Part::other
  std::string unknown_elements;

  // Appends the part below part.above.
  PartId add(Part part);
  void add_cross_link(CrossLink link);

  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  [[nodiscard]] const std::vector<CrossLink>& cross_links() const { return cross_links_; }
  [[nodiscard]] const std::vector<PartId>& roots() const { return roots_; }  // NUMA nodes, mostly
  [[nodiscard]] const Part& operator[](PartId id) const { return parts_[id]; }
  [[nodiscard]] Part& operator[](PartId id) { return parts_[id]; }
  [[nodiscard]] std::vector<CrossLink>& cross_links() { return cross_links_; }
  // Depth first, in the order of the tree.
  [[nodiscard]] std::vector<PartId> all_of(PartKind kind) const;
  // The part itself, or the nearest one above it, of `kind`; or kNoPart.
  [[nodiscard]] PartId find_above(PartId id, PartKind kind) const;
  [[nodiscard]] PartId find_bus(std::string_view bus_id) const;  // in any case; or kNoPart

 private:
  std::vector<Part> parts_;
  std::vector<CrossLink> cross_links_;
  std::vector<PartId> roots_;
};

// Whether a NIC or another device is on PCIe and not virtual: it has a bus id, or it is below a
// bridge whose source gives no bus ids.
bool is_on_pcie(const HostTree& host, PartId device);

// NCCL's hash of the host that the part is in: a file of hosts that NVLink joins has several. "":
// the source has none.
std::string_view host_hash_of(const HostTree& host, PartId part);
size_t count_hosts(const HostTree& host);  // by these hashes

// Whether the link leads to an NVSwitch, which need not be a part.
bool leads_to_nvswitch(const HostTree& host, const CrossLink& link);

// The numbers that the source gives to parts of a kind, if each has one of its own; else they are
// counted.
std::vector<int> numbers_of(const HostTree& host, const std::vector<PartId>& parts);
// Sorts them by numbers_of().
void sort_by_number(const HostTree& host, std::vector<PartId>& parts);

// The name that the source gives a part, or its port; "": none.
std::string given_name(const Part& part);
// The names that users know, by part: "GPU0" by the driver's number where all GPUs have one, else
// by the tree's order; "NIC0" by ports likewise; "NUMA0"; "mlx5_0" for a port with a name (a number
// follows a name that is taken); else kind and bus id. All names differ.
std::vector<std::string> names_of_parts(const HostTree& host);
// The part with such a name, interface or bus id, in upper or lower case; or kNoPart.
PartId find_part(const HostTree& host, std::string_view name);

}  // namespace gxp
