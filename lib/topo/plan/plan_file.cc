#include "lib/topo/plan/plan_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "lib/base/error.h"
#include "lib/base/numbering.h"

namespace gxp {
namespace {

using PlanJson = nlohmann::ordered_json;

constexpr std::string_view kSchema = "gxp.rank-plan/1";
constexpr int kMaxPlanRanks = 1 << 20;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  fail(ErrorKind::kCorrupt,
       "read the plan {}: {}; write one with: gxp topo plan --from TOPOLOGY --hosts N --format "
       "rank-plan > FILE",
       name, why);
}

// The list of integers in [0, below) that is called so.
std::vector<int> numbers_in(const PlanJson& list, const std::string& name, std::string_view called,
                            int below) {
  if (!list.is_array()) refuse(name, fmt::format("{} is not a list", called));
  std::vector<int> numbers;
  for (const PlanJson& number : list) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() >= uint64_t(below))
      refuse(name, fmt::format("{} has {}; its numbers are from 0 to {}", called, number.dump(),
                               below - 1));
    numbers.push_back(number.get<int>());
  }
  return numbers;
}

// All numbers from 0 to `count` - 1 in some order.
std::vector<int> order_in(const PlanJson& list, const std::string& name, std::string_view called,
                          int count) {
  std::vector<int> order = numbers_in(list, name, called, count);
  if (int(order.size()) != count || int(std::set(order.begin(), order.end()).size()) != count)
    refuse(name, fmt::format("{} is not a permutation of 0 to {}", called, count - 1));
  return order;
}

void read_ranks(const PlanJson& json, const std::string& name, PlanFile& file) {
  file.ranks_of_hosts = numbers_in(json["ranks_of_hosts"], name, "ranks_of_hosts", kMaxPlanRanks);
  const int64_t ranks =
      std::accumulate(file.ranks_of_hosts.begin(), file.ranks_of_hosts.end(), int64_t{0});
  if (ranks == 0 || ranks > kMaxPlanRanks)
    refuse(name,
           fmt::format("ranks_of_hosts has {} ranks; 1 to {} can be read", ranks, kMaxPlanRanks));
  file.plan.ranks = int(ranks);
  if (!json["rings"].is_array() || json["rings"].empty())
    refuse(name, "rings is not a list of rings");
  for (const PlanJson& ring : json["rings"]) {
    const std::vector<int> order = order_in(ring, name, "a ring", file.plan.ranks);
    file.plan.rings.insert(file.plan.rings.end(), order.begin(), order.end());
  }
  file.plan.groups = numbers_in(json["groups"], name, "groups", file.plan.ranks);
  if (!file.plan.groups.empty() && int(file.plan.groups.size()) != file.plan.ranks)
    refuse(name, fmt::format("groups has {} entries for {} ranks", file.plan.groups.size(), ranks));
}

void check_keys(const PlanJson& json, const std::string& name,
                const std::set<std::string>& needed) {
  for (const auto& [key, value] : json.items()) {
    if (!needed.contains(key)) refuse(name, fmt::format("it has an unknown key, {}", key));
  }
  for (const std::string& key : needed) {
    if (!json.contains(key)) refuse(name, fmt::format("it has no {}", key));
  }
}

// A ring in which the ranks of a host follow each other; the hosts are the groups.
RankPlan plan_of_hosts(const PlanFile& file, int ranks, std::span<const int> hosts) {
  std::vector<int> of_rank(hosts.begin(), hosts.end());
  of_rank.resize(size_t(ranks));
  RankPlan plan{.ranks = ranks, .groups = number_if_different<int>(of_rank)};
  for (const int host : file.host_order) {
    for (int rank = 0; rank < ranks; ++rank) {
      if (of_rank[size_t(rank)] == host) plan.rings.push_back(rank);
    }
  }
  return plan;
}

bool are_equally_large(const std::vector<int>& groups) {
  std::vector<int> sizes(groups.size());
  for (const int group : groups) ++sizes[size_t(group)];
  std::erase(sizes, 0);
  return std::ranges::adjacent_find(sizes, std::not_equal_to<>()) == sizes.end();
}

}  // namespace

std::string write_plan_file(const PlanFile& file) {
  PlanJson json = {{"schema", kSchema}, {"topology", file.topology}};
  if (file.ranks_of_hosts.empty()) {
    json["host_order"] = file.host_order;
    return json.dump() + "\n";
  }
  json["ranks_of_hosts"] = file.ranks_of_hosts;
  json["rings"] = PlanJson::array();
  const auto ranks = size_t(file.plan.ranks);
  for (auto at = file.plan.rings.begin(); at != file.plan.rings.end(); at += long(ranks))
    json["rings"].push_back(std::vector<int>(at, at + long(ranks)));
  json["groups"] = file.plan.groups;
  return json.dump() + "\n";
}

PlanFile read_plan_file(std::string_view text, const std::string& name) {
  const PlanJson json = PlanJson::parse(text, nullptr, false);
  const bool is_plan = json.is_object() && json.contains("schema") && json["schema"] == kSchema;
  if (!is_plan) refuse(name, fmt::format("it is not a JSON object with schema {}", kSchema));
  const bool of_hosts = json.contains("host_order");
  check_keys(
      json, name,
      of_hosts ? std::set<std::string>{"schema", "topology", "host_order"}
               : std::set<std::string>{"schema", "topology", "ranks_of_hosts", "rings", "groups"});
  if (!json["topology"].is_string()) refuse(name, "topology is not a string");
  PlanFile file{.topology = json["topology"].get<std::string>()};
  if (!of_hosts) {
    read_ranks(json, name, file);
    return file;
  }
  const size_t hosts = json["host_order"].size();
  if (hosts == 0 || hosts > size_t(kMaxPlanRanks)) refuse(name, "host_order has no hosts");
  file.host_order = order_in(json["host_order"], name, "host_order", int(hosts));
  return file;
}

RankPlan plan_for_ranks(const PlanFile& file, int ranks, std::span<const int> hosts) {
  const size_t count = hosts.empty() ? 1 : size_t(std::ranges::max(hosts)) + 1;
  if (file.hosts() != count) {
    fail(ErrorKind::kConfig,
         "plan by comm.topology: the plan of {} has {} hosts and the job {}; write one for as many "
         "with gxp topo plan --hosts {} --format rank-plan",
         file.topology, file.hosts(), count, count);
  }
  if (file.ranks_of_hosts.empty()) return plan_of_hosts(file, ranks, hosts);
  std::vector<int> next(count, 0);  // of each host: the place of its next rank
  std::exclusive_scan(file.ranks_of_hosts.begin(), file.ranks_of_hosts.end(), next.begin(), 0);
  std::vector<int> taken(count, 0);
  std::vector<int> members;
  for (int rank = 0; rank < ranks; ++rank) {
    const size_t host = hosts.empty() ? 0 : size_t(hosts[size_t(rank)]);
    if (++taken[host] > file.ranks_of_hosts[host]) {
      fail(ErrorKind::kConfig,
           "plan by comm.topology: in the plan of {} host {} has {} GPUs and the job more ranks "
           "there; start fewer, or plan another topology",
           file.topology, host, file.ranks_of_hosts[host]);
    }
    members.push_back(next[host]++);
  }
  RankPlan plan = plan_of_members(file.plan, members);
  if (count == 1 && !are_equally_large(plan.groups)) plan.groups.clear();
  return plan;
}

}  // namespace gxp
