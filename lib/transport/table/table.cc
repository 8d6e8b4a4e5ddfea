#include "lib/transport/table/table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/find_row.h"
#include "lib/base/log.h"
#include "lib/transport/peers/peer_transport.h"
#include "lib/transport/shm/shm.h"
#include "lib/transport/tcp/tcp.h"
#include "lib/transport/verbs/verbs.h"
#include "lib/transport/verbs/verbs_context.h"

namespace gxp {

namespace {

constexpr std::array kTransports{
#define GXP_TRANSPORT(name, ...) TransportRow{#name, __VA_ARGS__},
#include "lib/config/transports.inc"
#undef GXP_TRANSPORT
};

using Rows = std::vector<const TransportRow*>;

// The rows that may be chosen.
Rows rows_called(std::string_view name) {
  Rows rows;
  std::vector<std::string> names{"auto"};
  for (const TransportRow& row : kTransports) {
    names.emplace_back(row.name);
    if (name == "auto" || name == row.name) rows.push_back(&row);
  }
  if (!rows.empty()) return rows;
  fail_unknown(ErrorKind::kUsage, "comm.transport", name, names);
}

// The first row that joins two ranks; null if none does.
const TransportRow* row_for(const Rows& rows, const TransportContext& context, int a, int b) {
  for (const TransportRow* row : rows) {
    if (row->reaches(context, a, b).joins) return row;
  }
  return nullptr;
}

// What the rows before `chosen`, or all, have against it, and what it has for itself.
std::string reason_of(const TransportRow* chosen, const Rows& rows, const TransportContext& context,
                      std::pair<int, int> pair) {
  std::string reason;
  for (const TransportRow* row : rows) {
    const Reach reach = row->reaches(context, pair.first, pair.second);
    if (row == chosen) return reason.append(reach.reason);
    reason += fmt::format("no {}: ranks {} and {} {}; ", row->name, pair.first, pair.second,
                          reach.reason);
  }
  return reason;
}

// One pair for each two hosts, and one inside each host that has two ranks: rows treat
// ranks of a host the same.
std::vector<std::pair<int, int>> pairs_of_hosts(const Hosts& hosts) {
  if (hosts.size() == 1) return {{0, 0}};
  std::vector<int> numbers = number_hosts(hosts);
  numbers.resize(hosts.size());  // empty: all on one
  std::vector<int> firsts;
  std::vector<int> seconds;
  for (int rank = 0; rank < int(hosts.size()); ++rank) {
    const auto host = size_t(numbers[size_t(rank)]);
    if (host == firsts.size()) {
      firsts.push_back(rank);
      seconds.push_back(-1);
    } else if (seconds[host] < 0) {
      seconds[host] = rank;
    }
  }
  std::vector<std::pair<int, int>> pairs;
  for (size_t a = 0; a < firsts.size(); ++a) {
    if (seconds[a] >= 0) pairs.emplace_back(firsts[a], seconds[a]);
    for (size_t b = a + 1; b < firsts.size(); ++b) pairs.emplace_back(firsts[a], firsts[b]);
  }
  return pairs;
}

// For questions about ranks that have not started: nobody waits. What RDMA ports they have is not
// known, so they are taken to have some if `name` asks for verbs.
TransportContext context_on(Hosts hosts, std::string_view name) {
  const int ranks = int(hosts.size());
  TransportContext context{.world_size = ranks,
                           .deadline = Deadline::after({}),
                           .master_addr = "",
                           .hosts = std::move(hosts)};
  change_verbs(context).planned = name == "verbs";
  return context;
}

// Those rows learn what they must know that are asked at all.
void survey_rows(const Rows& rows, TransportContext& context) {
  Rows before;
  for (const TransportRow* row : rows) {
    const auto is_left = [&](const auto& pair) {
      return row_for(before, context, pair.first, pair.second) == nullptr;
    };
    if (row->survey != nullptr && std::ranges::any_of(pairs_of_hosts(context.hosts), is_left))
      row->survey(context);
    before.push_back(row);
  }
}

}  // namespace

std::span<const TransportRow> transport_rows() { return kTransports; }

std::string TransportChoice::name() const {
  std::string text;
  for (const Use& use : uses) text.append(text.empty() ? "" : "+").append(use.row->name);
  return text;
}

bool TransportChoice::shares_memory() const {
  return std::ranges::any_of(uses, [](const Use& use) { return use.row->shares_memory; });
}

TransportChoice choose_transports(std::string_view name, const TransportContext& context) {
  const Rows rows = rows_called(name);
  TransportChoice choice;
  for (const auto& pair : pairs_of_hosts(context.hosts)) {
    const TransportRow* row = row_for(rows, context, pair.first, pair.second);
    if (row == nullptr) {
      choice.refusal = reason_of(nullptr, rows, context, pair);
      return choice;
    }
    const auto is_it = [&](const TransportChoice::Use& use) { return use.row == row; };
    if (std::ranges::none_of(choice.uses, is_it))
      choice.uses.push_back({row, reason_of(row, rows, context, pair)});
  }
  std::ranges::sort(choice.uses, {}, &TransportChoice::Use::row);
  return choice;
}

TransportChoice plan_transports(std::string_view name, int host_count, int ranks_per_host) {
  Hosts hosts;
  for (int rank = 0; rank < host_count * ranks_per_host; ++rank)
    hosts.push_back(fmt::format("{}", rank / ranks_per_host));
  return choose_transports(name, context_on(std::move(hosts), name));
}

std::string_view transport_of_pair(std::string_view name, bool one_host) {
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('+'));
    const TransportContext context = context_on({"a", one_host ? "a" : "b"}, part);
    for (const TransportRow& row : kTransports) {
      if (row.name == part && row.reaches(context, 0, 1).joins) return part;
    }
    name.remove_prefix(std::min(name.size(), part.size() + 1));
  }
  return name;
}

std::vector<std::string> transports_for_all_hosts() {
  const TransportContext context = context_on({"a", "b"}, "auto");
  std::vector<std::string> names{"auto"};
  for (const TransportRow& row : kTransports) {
    if (row.reaches(context, 0, 1).joins) names.emplace_back(row.name);
  }
  return names;
}

std::unique_ptr<Transport> make_transport(std::string_view name, const TransportContext& context) {
  const Rows rows = rows_called(name);
  TransportContext here = context;
  here.hosts = context.store->gather("hosts", context.host, context.deadline);
  const auto cpus = context.store->gather("cpus", cpus_of_this_rank(), context.deadline);
  here.host_cpus = count_cpus(cpus, here.hosts, context.host);
  survey_rows(rows, here);
  const TransportChoice choice = choose_transports(name, here);
  if (!choice.refusal.empty())
    fail(ErrorKind::kUnavailable, "join the ranks with transport '{}': {}choose another", name,
         choice.refusal);
  PeerTransportParts parts{.name = choice.name(),
                           .rank = here.rank,
                           .world_size = here.world_size,
                           .groups = {},
                           .hosts = number_hosts(here.hosts),
                           .store = here.store,
                           .gpu = here.gpu};
  for (const TransportChoice::Use& use : choice.uses) {
    auto group = use.row->connect(
        here, [&](int a, int b) { return a != b && row_for(rows, here, a, b) == use.row; });
    if (group != nullptr) parts.groups.push_back(std::move(group));
  }
  auto transport = std::make_unique<PeerTransport>(std::move(parts));
  for (const TransportChoice::Use& use : choice.uses) {
    if (context.rank == 0) log_info("transport: {}: {}", use.row->name, use.reason);
  }
  return transport;
}

std::unique_ptr<Transport> make_tcp_transport(const TransportContext& context,
                                              const JoinedPairs& joins) {
  TransportContext here = context;
  here.hosts = context.store->gather("hosts", context.host, context.deadline);
  PeerTransportParts parts{.name = "tcp",
                           .rank = here.rank,
                           .world_size = here.world_size,
                           .groups = {},
                           .hosts = number_hosts(here.hosts),
                           .store = here.store};
  parts.groups.push_back(connect_tcp_links(here, joins));
  return std::make_unique<PeerTransport>(std::move(parts));
}

}  // namespace gxp
