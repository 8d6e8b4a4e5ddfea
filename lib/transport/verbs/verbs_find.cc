#include "lib/transport/verbs/verbs_find.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "lib/base/bytes.h"
#include "lib/transport/verbs/verbs_budget.h"
#include "lib/transport/verbs/verbs_library.h"

namespace gxp {

namespace {

// More than most systems let a process lock unless told otherwise (8 MiB, systemd's default).
constexpr size_t kProbeBytes = size_t{16} << 20;

// What has been found so far, and why not more.
struct Search {
  const VerbsFunctions& verbs;
  const VerbsOptions& options;
  std::vector<VerbsPort> ports{};
  std::string obstacle{"has no RDMA device"};
};

void set_gid(VerbsPort& port, GidKind kind, const ibv_gid_entry& entry) {
  VerbsGid& gid = port.gids[size_t(kind)];
  if (gid.index >= 0) return;  // the first of a kind
  std::memcpy(gid.bytes.data(), entry.gid.raw, gid.bytes.size());
  gid.index = int(entry.gid_index);
}

// RoCE v2 is routed by addresses of its own; InfiniBand takes the port's first, unless told.
bool choose_gids(const Search& search, ibv_context* context, VerbsPort& port) {
  std::vector<ibv_gid_entry> table(1024);
  const ssize_t count =
      search.verbs.query_gid_table(context, table.data(), table.size(), 0, sizeof(ibv_gid_entry));
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = table[size_t(i)];
    const int wanted = search.options.gid_index;
    if (entry.port_num != port.port || (wanted >= 0 && int(entry.gid_index) != wanted)) continue;
    std::array<uint8_t, 16> gid{};
    std::memcpy(gid.data(), entry.gid.raw, gid.size());
    const auto kind = kind_of_gid(gid);
    if (!port.ethernet) {
      set_gid(port, GidKind::kIpv6, entry);
    } else if (kind && (entry.gid_type == IBV_GID_TYPE_ROCE_V2 || wanted >= 0)) {
      set_gid(port, *kind, entry);
    }
  }
  return std::ranges::any_of(port.gids, [](const VerbsGid& gid) { return gid.index >= 0; });
}

// The OS refuses a file that is none with EBADF, once it has found that the device takes some.
bool takes_dma_buf(const VerbsFunctions& verbs, ibv_context* context) {
  if (verbs.reg_dmabuf_mr == nullptr) return false;
  const VerbsHandle<ibv_pd> domain(verbs.alloc_pd(context), verbs.dealloc_pd);
  if (!domain) return false;
  constexpr int kNoFile = -1;
  errno = 0;
  verbs.reg_dmabuf_mr(domain.get(), 0, 4096, 0, kNoFile, IBV_ACCESS_LOCAL_WRITE);
  return errno == EBADF;
}

std::string cannot_ask(std::string_view what, int error) {
  return fmt::format("cannot query {}: {}", what, system_text(error));
}

void look_at_port(Search& search, ibv_context* context, const char* device, uint32_t number) {
  ibv_port_attr attributes{};
  auto* const compatible = reinterpret_cast<_compat_ibv_port_attr*>(&attributes);
  VerbsPort port;
  std::string_view(device).copy(port.device.data(), port.device.size() - 1);
  port.port = number;
  if (const int error = search.verbs.query_port(context, uint8_t(number), compatible)) {
    search.obstacle = cannot_ask(to_string(port), error);
    return;
  }
  if (attributes.state != IBV_PORT_ACTIVE) {
    search.obstacle = fmt::format("has no active RDMA port: {} is down", to_string(port));
    return;
  }
  port.ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  port.mtu = uint8_t(attributes.active_mtu);
  port.lid = attributes.lid;
  port.queue_pairs = uint32_t(search.options.queue_pairs);
  port.takes_dma_buf = takes_dma_buf(search.verbs, context);
  if (choose_gids(search, context, port)) {
    search.ports.push_back(port);
  } else {
    search.obstacle = fmt::format("has no RoCE v2 address (GID) on {}", to_string(port));
  }
}

void look_at_device(Search& search, ibv_device* device) {
  const VerbsHandle<ibv_context> context(search.verbs.open_device(device),
                                         search.verbs.close_device);
  if (!context) {
    search.obstacle = fmt::format("cannot open {} (/dev/infiniband/{}): {}", device->name,
                                  device->dev_name, system_text(errno));
    return;
  }
  ibv_device_attr limits{};
  if (const int error = search.verbs.query_device(context.get(), &limits)) {
    search.obstacle = cannot_ask(device->name, error);
    return;
  }
  if (limits.max_qp_wr < kQueueEntries) {
    search.obstacle = fmt::format("has queues of {} entries on {}, where {} are needed",
                                  limits.max_qp_wr, device->name, kQueueEntries);
    return;
  }
  for (uint32_t port = 1; port <= limits.phys_port_cnt; ++port)
    look_at_port(search, context.get(), device->name, port);
}

std::string locked_memory_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return format_bytes(limit.rlim_cur);
}

// Registers more memory than a careless limit allows; the reason if that fails.
std::string try_registering(const VerbsFunctions& verbs, ibv_device* device) {
  const VerbsHandle<ibv_context> context(verbs.open_device(device), verbs.close_device);
  if (!context) return "";
  const VerbsHandle<ibv_pd> domain(verbs.alloc_pd(context.get()), verbs.dealloc_pd);
  if (!domain) return "";
  void* const memory =
      ::mmap(nullptr, kProbeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return "";
  std::string obstacle;
  ibv_mr* const region = verbs.reg_mr(domain.get(), memory, kProbeBytes, IBV_ACCESS_LOCAL_WRITE);
  if (region == nullptr)
    obstacle = fmt::format(
        "cannot register {} of memory with {}: {}; locked memory is limited to {}: raise it "
        "(ulimit "
        "-l, LimitMEMLOCK)",
        format_bytes(kProbeBytes), device->name, system_text(errno), locked_memory_limit());
  if (region != nullptr) verbs.dereg_mr(region);
  ::munmap(memory, kProbeBytes);
  return obstacle;
}

// In the order of the setting, or by name.
std::vector<VerbsPort> named_ports(std::vector<VerbsPort> all, const std::string& setting) {
  const auto by_name = [](const VerbsPort& port) {
    return std::pair(std::string_view(port.device.data()), port.port);
  };
  std::ranges::sort(all, {}, by_name);
  if (setting.empty()) return all;
  std::vector<VerbsPort> named;
  std::istringstream names(setting);
  for (std::string name; std::getline(names, name, ',');) {
    std::ranges::copy_if(all, std::back_inserter(named),
                         [&](const VerbsPort& port) { return is_named(port, name); });
  }
  return named;
}

VerbsOffer search_devices(const VerbsFunctions& verbs, const VerbsOptions& options) {
  int count = 0;
  const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> devices(verbs.get_device_list(&count),
                                                                     verbs.free_device_list);
  Search search{.verbs = verbs, .options = options};
  for (int i = 0; devices && i < count; ++i) look_at_device(search, devices.get()[i]);
  if (search.ports.empty()) return {.obstacle = search.obstacle};
  VerbsOffer offer{.ports = named_ports(search.ports, options.devices)};
  if (offer.ports.empty())
    return {.obstacle = fmt::format("has no active RDMA port that is in comm.verbs_devices = "
                                    "\"{}\"; there is {}",
                                    options.devices, to_string(search.ports[0]))};
  const auto first = std::find_if(devices.get(), devices.get() + count, [&](const ibv_device* it) {
    return std::string_view(it->name) == offer.ports[0].device.data();
  });
  offer.obstacle = try_registering(verbs, *first);
  if (!offer.obstacle.empty()) offer.ports.clear();
  return offer;
}

}  // namespace

VerbsOffer find_verbs_ports(const VerbsOptions& options) {
  try {
    return search_devices(load_verbs(), options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnavailable) throw;
    return {.obstacle = fmt::format("cannot {}", error.what())};
  }
}

}  // namespace gxp
