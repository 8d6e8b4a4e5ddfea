// match_parts().
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "lib/base/text/joined.h"
#include "lib/tools/topology/compare/host_diff.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

// A key that identifies a port wherever it is.
std::string strong_key(const Part& part) {
  const auto* port = std::get_if<PortInfo>(&part.info);
  if (port == nullptr) return "";
  if (port->has_guid()) return fmt::format("guid {} {}", port->guid, port->port.value_or(0));
  return port->name.empty() ? "" : "port " + port->name;
}

std::string own_key(const Part& part) {
  if (const auto* gpu = std::get_if<GpuInfo>(&part.info); gpu != nullptr && gpu->number)
    return fmt::format("GPU {}", *gpu->number);
  if (const auto* node = std::get_if<NumaNodeInfo>(&part.info); node != nullptr && node->number)
    return fmt::format("node {}", *node->number);
  return strong_key(part);
}

class Side {
 public:
  explicit Side(const HostTree& host)
      : host(host), alike(host.parts().size()), keys(host.parts().size()) {
    // Parts come after those above them.
    for (PartId id = PartId(host.parts().size()); id-- > 0;) {
      std::vector<std::string> below;
      for (const PartId child : host[id].below) {
        below.push_back(alike[child]);
        if (host[id].kind != PartKind::kNumaNode)
          keys[id].insert(keys[child].begin(), keys[child].end());
      }
      std::ranges::sort(below);
      alike[id] = fmt::format("{}", std::hash<std::string>()(fmt::format(
                                        "{}({})", likeness(host, id), joined(below, ","))));
      if (const std::string key = own_key(host[id]); !key.empty()) keys[id].insert(key);
    }
  }

  const HostTree& host;
  std::vector<std::string> alike;           // by part: equal for equal subtrees
  std::vector<std::set<std::string>> keys;  // of it and what is below
};

class Matching {
 public:
  Matching(const HostTree& a, const HostTree& b)
      : a_(a), b_(b), found_(a.parts().size(), kNoPart), taken_(b.parts().size()) {
    match(a.roots(), b.roots());
    match_moved();
    match_alike_anywhere();
  }

  std::vector<PartId> take() { return std::move(found_); }

 private:
  void join(PartId a, PartId b) {
    if (found_[a] != kNoPart || taken_[b]) return;
    found_[a] = b;
    taken_[b] = true;
    match(a_.host[a].below, b_.host[b].below);
  }

  // Matches parts in order, each with the first free part that has one of its keys.
  template <class KeysOf>
  void pair(const std::vector<PartId>& a, const std::vector<PartId>& b, const KeysOf& keys_of) {
    std::map<std::pair<PartKind, std::string>, std::deque<PartId>> right;
    for (const PartId id : b) {
      if (taken_[id]) continue;
      for (const std::string& key : keys_of(b_, id)) right[{b_.host[id].kind, key}].push_back(id);
    }
    for (const PartId id : a) {
      if (found_[id] != kNoPart) continue;
      for (const std::string& key : keys_of(a_, id)) {
        const auto place = right.find({a_.host[id].kind, key});
        if (place == right.end()) continue;
        std::deque<PartId>& left_over = place->second;
        while (!left_over.empty() && taken_[left_over.front()]) left_over.pop_front();
        if (left_over.empty()) continue;
        join(id, left_over.front());
        break;
      }
    }
  }

  using Keys = std::vector<std::string>;

  void match(const std::vector<PartId>& a, const std::vector<PartId>& b) {
    pair(a, b, [](const Side& side, PartId id) {
      Keys keys;
      for (const std::string& key : side.keys[id]) keys.push_back(key + " " + side.alike[id]);
      return keys;
    });
    pair(a, b, [](const Side& side, PartId id) {
      return Keys(side.keys[id].begin(), side.keys[id].end());
    });
    pair(a, b, [](const Side& side, PartId id) { return Keys{side.alike[id]}; });
    pair(a, b, [](const Side& side, PartId id) { return Keys{likeness(side.host, id)}; });
    pair(a, b, [](const Side&, PartId) { return Keys{""}; });
  }

  void match_moved() {
    std::map<std::string, PartId> right;
    for (PartId id = 0; id < taken_.size(); ++id) {
      const std::string key = strong_key(b_.host[id]);
      if (!taken_[id] && !key.empty()) right.emplace(key, id);
    }
    for (PartId id = 0; id < found_.size(); ++id) {
      const auto other = right.find(strong_key(a_.host[id]));
      if (found_[id] != kNoPart || other == right.end()) continue;
      // The NIC moves with its port.
      const PartId above = a_.host[id].above;
      const PartId other_above = b_.host[other->second].above;
      const bool both_free = above != kNoPart && other_above != kNoPart &&
                             found_[above] == kNoPart && !taken_[other_above] &&
                             a_.host[above].kind == b_.host[other_above].kind;
      if (both_free) join(above, other_above);
      join(id, other->second);
    }
  }

  void match_alike_anywhere() {
    std::multimap<std::string, PartId> right;
    for (PartId id = 0; id < taken_.size(); ++id) {
      if (!taken_[id]) right.emplace(b_.alike[id], id);
    }
    for (PartId id = 0; id < found_.size(); ++id) {
      if (found_[id] != kNoPart) continue;
      for (auto [other, end] = right.equal_range(a_.alike[id]); other != end; ++other) {
        if (taken_[other->second] || b_.host[other->second].kind != a_.host[id].kind) continue;
        join(id, other->second);
        break;
      }
    }
  }

  const Side a_, b_;
  std::vector<PartId> found_;
  std::vector<bool> taken_;
};

}  // namespace

std::string likeness(const HostTree& host, PartId id) {
  const Part& part = host[id];
  const PciIdentity& identity = part.identity;
  std::string text =
      fmt::format("{} {} {} {} {} {}", to_string(part.kind), identity.class_code, identity.vendor,
                  identity.device, identity.subsystem_vendor, identity.subsystem_device);
  if (const auto* gpu = std::get_if<GpuInfo>(&part.info))
    text += fmt::format(" sm{} {}", gpu->compute_capability.value_or(0), gpu->gcn);
  if (const auto* port = std::get_if<PortInfo>(&part.info))
    text += fmt::format(" {} Mbit/s", port->mbit_per_s);
  return text;
}

std::vector<PartId> match_parts(const HostTree& a, const HostTree& b) {
  return Matching(a, b).take();
}

}  // namespace gxp
