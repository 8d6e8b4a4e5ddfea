#include "lib/transport/table.h"

#include <array>
#include <string>
#include <vector>

#include "lib/base/log.h"
#include "lib/base/near_match.h"
#include "lib/transport/shm/shm.h"
#include "lib/transport/shm_and_tcp.h"
#include "lib/transport/tcp/tcp.h"

namespace gxp {

namespace {

constexpr std::array kTransports{
    TransportRow{"shm", "shared memory, ranks of one host", supports_shm, make_shm_transport},
    TransportRow{"shm+tcp", "shared memory inside a host, TCP between hosts", supports_shm_and_tcp,
                 make_shm_and_tcp_transport},
    TransportRow{"tcp", "TCP between all ranks", supports_tcp, make_tcp_transport},
};

struct Choice {
  const TransportRow* row = nullptr;
  std::string reason;
};

// The first row that may be taken and can serve.
Choice choose(std::string_view name, const TransportContext& context, const Hosts& hosts) {
  std::string reasons;
  for (const TransportRow& row : kTransports) {
    if (name != "auto" && name != row.name) continue;
    const Support support = row.probe(context, hosts);
    if (support) return {&row, reasons + support.reason};
    reasons += fmt::format("no {}: {}; ", row.name, support.reason);
  }
  fail(ErrorKind::kUnavailable, "join the ranks with transport '{}': {}choose another", name,
       reasons);
}

void check_name(std::string_view name) {
  std::vector<std::string> names{"auto"};
  for (const TransportRow& row : kTransports) names.emplace_back(row.name);
  for (const std::string& known : names) {
    if (known == name) return;
  }
  fail(ErrorKind::kUsage, "choose a transport: there is no '{}', only {}{}", name,
       fmt::join(names, ", "), did_you_mean(name, names));
}

}  // namespace

std::span<const TransportRow> transport_rows() { return kTransports; }

std::unique_ptr<Transport> make_transport(std::string_view name, const TransportContext& context) {
  check_name(name);
  const Hosts hosts = context.store->gather("hosts", context.host, context.deadline);
  const auto cpus = context.store->gather("cpus", cpus_of_this_rank(), context.deadline);
  TransportContext here = context;
  here.host_cpus = count_cpus(cpus, hosts, context.host);
  const Choice choice = choose(name, here, hosts);
  auto transport = choice.row->make(here, hosts);
  if (context.rank == 0) log_info("transport: {}: {}", choice.row->name, choice.reason);
  return transport;
}

}  // namespace gxp
