// rank_report().
#include <algorithm>
#include <utility>

#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/view/part_words.h"
#include "lib/tools/topology/view/path_report.h"
#include "lib/tools/topology/view/rank_view.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

// A port, or a NIC of which no port is known.
bool is_end_of_network(const Part& part) {
  return part.kind == PartKind::kPort || (part.kind == PartKind::kNic && part.below.empty());
}

class Writer {
 public:
  Writer(const Topology& topology, const RankView& view)
      : topology_(topology),
        view_(view),
        host_(*topology.trees[topology.hosts[view.seat.host].tree]),
        names_(names_of_parts(host_)) {}

  Report write() && {
    add_seat();
    if (view_.gpu == kNoPart) {
      add_numa_nodes();
    } else {
      add_gpu();
      add_peers();
      add_nics();
      add_rails();
      add_rings();
      add_trees();
    }
    add_notes();
    return std::move(report_);
  }

 private:
  void add_fact(Column column, Cell value) {
    report_.facts.push_back({std::move(column), std::move(value)});
  }
  void add_text(Column column, const std::string& text) {
    if (!text.empty()) add_fact(std::move(column), text);
  }
  [[nodiscard]] std::string names_of(const std::vector<PartId>& parts) const {
    std::vector<std::string> words;
    for (const PartId part : parts) words.push_back(names_[part]);
    return join_words(words);
  }
  [[nodiscard]] Cell name_or_null(PartId part) const {
    return part == kNoPart ? Cell() : Cell(names_[part]);
  }
  [[nodiscard]] std::string type_of(const NcclRoute& route) const {
    return std::string(host_.places_known ? to_string(route.type) : "unknown");
  }
  static Cell rate_of(bool is_told, double gb_per_s) {
    return is_told ? Cell(rounded(gb_per_s)) : Cell();
  }
  // Whatever speaks against it.
  static Cell reason(const RouteVerdict& verdict) {
    return verdict.answer == RouteAnswer::kYes ? Cell() : Cell(verdict.rule);
  }
  static std::string word_of(const RouteVerdict& verdict) {
    return std::string(to_string(verdict.answer));
  }

  void add_seat() {
    const size_t hosts = topology_.hosts.size();
    add_fact({"rank"}, int64_t{view_.rank});
    if (view_.ranks > 0) add_fact({"ranks"}, int64_t{view_.ranks});
    add_fact({"host"}, topology_.hosts[view_.seat.host].name);
    if (hosts > 1) add_fact({"host_index", "  its index"}, int64_t(view_.seat.host));
    add_fact({"hosts_count", "hosts"}, int64_t(hosts));
    add_fact({"local_rank", "local rank"}, int64_t{view_.seat.local_rank});
  }

  void add_gpu() {
    Part gpu = host_[view_.gpu];
    if (auto* info = std::get_if<GpuInfo>(&gpu.info)) info->rank.reset();  // of another job, maybe
    const PartId node = host_.find_above(view_.gpu, PartKind::kNumaNode);
    add_fact({"gpu", "GPU"}, names_[view_.gpu]);
    add_text({"bus_id", "  bus id"}, gpu.bus_id);
    add_text({"model", "  model"}, words_of_device(gpu));
    if (node != kNoPart) {
      add_fact({"numa_node", "NUMA node"}, names_[node]);
      add_text({"cpus", "  CPUs"}, cpus_of(host_[node]).to_list());
    }
    if (host_.places_known) add_own_nics();
  }

  void add_own_nics() {
    std::vector<PartId> own;
    for (const RankNic& nic : view_.nics) {
      if (nic.is_own) own.push_back(nic.port);
    }
    add_fact({"nics_of_nccl", "NIC that NCCL gives it"}, own.empty() ? "none" : names_of(own));
    const auto first = std::ranges::find_if(view_.nics, &RankNic::is_own);
    if (first == view_.nics.end()) return;
    const bool receives = first->receive.answer == RouteAnswer::kYes;
    const RouteVerdict& verdict = receives ? first->send : first->receive;
    add_fact({"gpu_direct.answer", "  GPUDirect RDMA"}, word_of(verdict));
    add_text({"gpu_direct.rule", "    because"}, verdict.rule);
  }

  void add_peers() {
    if (view_.peers.empty()) return;
    Table& table = report_.add_table("gpus", {{"rank"},
                                              {"gpu", "GPU"},
                                              {"type", "path"},
                                              {"bandwidth_gb_s", "GB/s"},
                                              {"via"},
                                              {"peer_to_peer", "peer-to-peer"},
                                              {"because"}});
    for (const RankPeer& peer : view_.peers) {
      table.add_row(peer.rank, names_[peer.gpu], type_of(peer.route),
                    rate_of(peer.tells_speed, peer.route.gb_per_s),
                    name_or_null(host_.places_known ? peer.route.via : kNoPart),
                    word_of(peer.peer_to_peer), reason(peer.peer_to_peer));
    }
  }

  void add_nics() {
    if (view_.nics.empty()) return;
    Table& table = report_.add_table("nics", {{"nic", "NIC"},
                                              {"is_own", "its own"},
                                              {"type", "path"},
                                              {"bandwidth_gb_s", "GB/s"},
                                              {"via"},
                                              {"gpu_direct_send", "GPUDirect sends"},
                                              {"gpu_direct_receive", "receives"}});
    for (const RankNic& nic : view_.nics) {
      table.add_row(names_[nic.port], nic.is_own, to_string(nic.route.type),
                    rate_of(nic.tells_speed, nic.route.gb_per_s), name_or_null(nic.route.via),
                    word_of(nic.send), word_of(nic.receive));
    }
  }

  void add_rails() {
    if (view_.rails.empty()) return;
    Table& table = report_.add_table("other_hosts", {{"local_ranks", "local ranks of other hosts"},
                                                     {"nics", "by NIC"},
                                                     {"type", "path"},
                                                     {"via"}});
    for (const RankRail& rail : view_.rails) {
      const auto nic = std::ranges::find_if(view_.nics, [&](const RankNic& one) {
        return !rail.ports.empty() && one.port == rail.ports[0];
      });
      if (nic == view_.nics.end())
        table.add_row(rail.local_ranks, Cell(), Cell(), Cell());
      else
        table.add_row(rail.local_ranks, names_of(rail.ports), to_string(nic->route.type),
                      name_or_null(nic->route.via));
    }
  }

  void add_rings() {
    if (view_.neighbours.rings.empty()) return;
    Table& table = report_.add_table("rings", {{"channels", "channels of rings"},
                                               {"previous", "previous rank"},
                                               {"previous_by", "by"},
                                               {"next", "next rank"},
                                               {"next_by", "by"},
                                               {"gb_per_s", "GB/s"}});
    for (const RingNeighbours& ring : view_.neighbours.rings) {
      table.add_row(ring.channels, ring.previous, ring.previous_by, ring.next, ring.next_by,
                    rate_of(host_.speeds_known, ring.gb_per_s));
    }
  }

  void add_trees() {
    if (view_.neighbours.trees.empty()) return;
    Table& table = report_.add_table("trees", {{"channels", "channels of trees"},
                                               {"trees"},
                                               {"parent", "parent rank"},
                                               {"children", "child ranks"}});
    for (const TreeNeighbours& tree : view_.neighbours.trees) {
      table.add_row(tree.channels, tree.trees, tree.parent, tree.children);
    }
  }

  void add_numa_nodes() {
    Table& table = report_.add_table("numa_nodes", {{"numa_node", "NUMA node"},
                                                    {"cpus", "CPUs"},
                                                    {"memory_bytes", "memory", Style::kBytes},
                                                    {"nics", "NICs"}});
    for (const PartId node : host_.all_of(PartKind::kNumaNode)) {
      const uint64_t bytes = info_of<NumaNodeInfo>(host_[node]).memory_bytes;
      std::vector<PartId> nics;
      for (PartId part = 0; part < host_.parts().size(); ++part) {
        if (is_end_of_network(host_[part]) && host_.find_above(part, PartKind::kNumaNode) == node)
          nics.push_back(part);
      }
      table.add_row(names_[node], cpus_of(host_[node]).to_list(),
                    bytes > 0 ? Cell(int64_t(bytes)) : Cell(), names_of(nics));
    }
  }

  void add_notes() {
    std::vector<std::string> notes = view_.notes;
    notes.insert(notes.end(), view_.neighbours.notes.begin(), view_.neighbours.notes.end());
    if (notes.empty()) return;
    Table& table = report_.add_table("notes", {{"text", "notes"}});
    for (const std::string& note : notes) table.add_row(note);
  }

  const Topology& topology_;
  const RankView& view_;
  const HostTree& host_;
  std::vector<std::string> names_;
  Report report_{.schema = "gxp.topo-rank/1"};
};

}  // namespace

Report rank_report(const Topology& topology, const RankView& view) {
  return Writer(topology, view).write();
}

}  // namespace gxp
