// What the library and the devices refuse, from the search for ports to the last request.
#include <infiniband/verbs.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "lib/transport/peers/peer_transport.h"
#include "lib/transport/verbs/verbs.h"
#include "lib/transport/verbs/verbs_context.h"
#include "lib/transport/verbs/verbs_find.h"
#include "tests/transport/mishaps.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

struct Refusal {
  std::string function;
  int after;  // calls that succeed
  std::string words;
  bool connected = false;  // refused once the ranks are connected, not before
};

const std::vector<Refusal> kRefusals = {
    {"ibv_open_device", 0, "open on fake0: Cannot allocate memory"},
    {"ibv_alloc_pd", 0, "make a protection domain on fake0 port 1: Cannot allocate memory"},
    {"ibv_create_comp_channel", 0, "make a completion channel on fake0 port 1: Cannot allocate"},
    {"ibv_create_cq", 0, "make a completion queue of 178 entries on fake0 port 1: Cannot allocate"},
    {"ibv_create_qp", 0, "make a queue pair on fake0 port 1: Cannot allocate memory"},
    {"ibv_create_qp", 1, "make a queue pair on fake0 port 1: Cannot allocate memory"},
    {"ibv_reg_mr", 0, "register 584 KiB with fake0 port 1: Cannot allocate memory; is the limit"},
    {"ibv_modify_qp", 0, "set up a queue pair to rank 1 on fake0 port 1 (10.99.0.1 to 10.99.0.2"},
    {"ibv_modify_qp", 1, "set the route of a queue pair to rank 1 on fake0 port 1 (10.99.0.1 to"},
    {"ibv_modify_qp", 2, "open a queue pair to rank 1 on fake0 port 1 (10.99.0.1 to 10.99.0.2"},
    {"post_recv", 0, "post a receive on fake0 port 1 (10.99.0.1 to 10.99.0.2, queue pairs "},
    {"post_recv", 0, "post a receive on fake0 port 1 (10.99.0.1 to 10.99.0.2, queue pairs ", true},
    {"post_send", 0, "post a message on fake0 port 1 (10.99.0.1 to 10.99.0.2, queue pairs ", true},
    {"post_write", 0, "post a write on fake0 port 1 (10.99.0.1 to 10.99.0.2, queue pairs ", true},
    {"ibv_reg_mr", 0, "register 293 KiB with fake0 port 1: Cannot allocate memory", true},
    {"poll_cq", 0, "read completions on fake0 port 1: Input/output error", true},
    {"req_notify_cq", 0,
     "request a completion notification on fake0 port 1: Cannot allocate memory", true},
};

std::string device_error_of(const std::function<void()>& act, Store& store) {
  try {
    act();
  } catch (const Error& error) {
    store.abort(store.rank(), error.what());
    return fmt::format("{}: {}", to_string(error.kind()), error.what());
  }
  return "";
}

// Two ranks, each with a device and two connections, that look for ports, connect and talk; the
// error of each. `mishap` comes between the search and the rest, or else once they are connected.
std::vector<std::string> run_refused(const std::function<void()>& mishap, bool connected) {
  World world("verbs", 2);
  std::vector<std::string> errors(2);
  run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    TransportContext context = world.context(*store);
    change_verbs(context).options.queue_pairs = 2;
    context.hosts = store->gather("hosts", context.host, soon());
    survey_verbs(context);
    const auto strike = [&](bool now) {
      store->barrier("before", soon());
      if (rank == 0 && now) mishap();
      store->barrier("after", soon());
    };
    const auto act = [&] {
      strike(!connected);
      PeerTransportParts parts{.name = "verbs",
                               .rank = rank,
                               .world_size = 2,
                               .groups = {},
                               .hosts = {},
                               .store = store.get()};
      parts.groups.push_back(connect_verbs(context, [](int a, int b) { return a != b; }));
      PeerTransport transport(std::move(parts));
      strike(connected);
      exchange(transport, kLong, 3);
      std::vector<std::byte> none(8);
      transport.wait(transport.recv(1 - rank, 9, memory_of(none)), Deadline::after(1s));
    };
    errors[size_t(rank)] = device_error_of(act, *store);
  });
  return errors;
}

}  // namespace

TEST_CASE("each call that is refused is one error with its act, device and reason", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const Refusal refusal = GENERATE(from_range(kRefusals));
  CAPTURE(refusal.function, refusal.after, refusal.connected);
  const auto start = Deadline::Clock::now();
  const auto errors = run_refused(
      [&] { fake->fail_calls(refusal.function, 0, ENOMEM, refusal.after); }, refusal.connected);
  CAPTURE(errors[0], errors[1]);
  CHECK(errors[0].starts_with("device: " + refusal.words));
  CHECK(errors[1].starts_with("peer: "));
  CHECK(contains(errors[1], "rank 0"));
  CHECK(Deadline::Clock::now() - start < kSoon);
}

TEST_CASE("a device that is gone when ranks connect is named", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const auto errors = run_refused([&] { fake->set_devices(0); }, false);
  CHECK((errors[0] == "device: open fake0: it is gone" ||
         errors[1] == "device: open fake1: it is gone"));
}

TEST_CASE("a rank that ends between its search and its connections is named", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const auto errors = run_refused([] { fail(ErrorKind::kIo, "the disk is full"); }, false);
  CHECK(errors[0] == "io: the disk is full");
  CHECK(contains(errors[1], "rank 0"));
  CHECK(contains(errors[1], "the disk is full"));
}

TEST_CASE("a rank that does not tell its addresses is named", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  World world("verbs", 2);
  const auto errors = run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    TransportContext context = world.context(*store);
    context.hosts = store->gather("hosts", context.host, soon());
    survey_verbs(context);
    if (rank == 0) connect_verbs(context, [](int a, int b) { return a != b; });
    store->gather("verbs lanes", "half", soon());
  });
  CHECK(contains(errors[0], "connect to rank 1 by RDMA: it has not sent its addresses"));
}

TEST_CASE("a rank without ports keeps its host from RDMA, and ports of two kinds do", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  World world("verbs", 2);
  std::vector<std::string> reasons(4);
  const auto errors = run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    TransportContext context = world.context(*store);
    context.hosts = store->gather("hosts", context.host, soon());
    if (rank == 1) change_verbs(context).options.devices = "mlx5_0";
    survey_verbs(context);
    reasons[size_t(rank)] = verbs_reaches(context, 0, 1).reason;
    change_verbs(context).offers.assign(2, find_verbs_ports({}));
    for (VerbsPort& port : change_verbs(context).offers[0].ports) port.ethernet = false;
    reasons[2 + size_t(rank)] = verbs_reaches(context, 0, 1).reason;
    store->close();
  });
  CHECK(errors == none(2));
  CHECK(reasons[0] == reasons[1]);
  CHECK(contains(reasons[0], "rank 0 shares its host with rank 1, which has no active RDMA port"));
  CHECK(contains(reasons[2], "have no compatible RDMA ports"));
}

TEST_CASE("a port that stays down ends the wait and is named", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const auto start = Deadline::Clock::now();
  World world("verbs", 2);
  const auto errors = run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    TransportContext context = world.context(*store);
    change_verbs(context).options.timeout_s = 0.4;
    const auto transport = make_transport("verbs", context);
    if (rank == 0) fake->set_port(0, false);
    std::vector<std::byte> data(8);
    transport->wait(transport->recv(1 - rank, 1, memory_of(data)), soon());
  });
  CHECK(contains(errors[0], "not kPeer: fake0 port 1 has been down for 0.2 s; check its cable"));
  CHECK(contains(errors[1], "rank 0"));
  CHECK(Deadline::Clock::now() - start < kSoon);
}

TEST_CASE("a port that comes back in time is forgiven", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  World world("verbs", 2);
  const auto errors = run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    TransportContext context = world.context(*store);
    change_verbs(context).options.timeout_s = 0.2;
    const auto transport = make_transport("verbs", context);
    std::vector<std::byte> data(8);
    const Ticket ticket = rank == 0 ? transport->recv(1, 1, memory_of(data)) : Ticket{};
    if (rank == 1) {
      fake->set_port(0, false);
      std::this_thread::sleep_for(20ms);
      fake->set_port(0, true);
      std::this_thread::sleep_for(200ms);  // longer than the port's patience
      transport->wait(transport->send(0, 1, memory_of(std::as_const(data))), soon());
    } else {
      transport->wait(ticket, soon());
    }
    store->barrier("end", soon());
    store->close();
  });
  CHECK(errors == none(2));
}

TEST_CASE("a device that fails ends the wait and is named", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const int event = GENERATE(int(IBV_EVENT_DEVICE_FATAL), int(IBV_EVENT_CQ_ERR));
  const auto errors = run_over("verbs rails", 2, [&](Transport& transport) {
    if (transport.rank() == 1) return;
    fake->tell_event(1, event);
    std::vector<std::byte> data(8);
    transport.wait(transport.recv(1, 1, memory_of(data)), soon());
  });
  CHECK(contains(errors[0], "not kPeer: fake1 port 1 has failed: some event"));
}

TEST_CASE("events that are not of this port, or need no answer, change nothing", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const auto [event, port] = GENERATE(table<ibv_event_type, int>({{IBV_EVENT_PORT_ERR, 2},
                                                                  {IBV_EVENT_PORT_ACTIVE, 2},
                                                                  {IBV_EVENT_PORT_ACTIVE, 1},
                                                                  {IBV_EVENT_COMM_EST, 1}}));
  const auto errors = run_over("verbs", 2, [&, type = event, of = port](Transport& transport) {
    fake->tell_event(transport.rank(), type, of);
    if (transport.rank() == 0) {
      std::vector<std::byte> data(8);
      try {
        transport.wait(transport.recv(1, 1, memory_of(data)), Deadline::after(20ms));
      } catch (const Error& error) {
        if (!contains(error.what(), "not complete after 0.02 s")) throw;
      }
    }
  });
  CHECK(errors == none(2));
}

TEST_CASE("what keeps a rank from RDMA is one line", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const auto obstacle = [](const VerbsOptions& options = {}) {
    return find_verbs_ports(options).obstacle;
  };
  CHECK(obstacle().empty());
  CHECK(contains(obstacle({.devices = "mlx5_0"}),
                 "no active RDMA port that is in comm.verbs_devices = \"mlx5_0\"; there is fake0"));
  CHECK(contains(obstacle({.gid_index = 9}), "has no RoCE v2 address (GID) on fake"));
  fake->set_lockable_bytes(8 << 20);
  CHECK(contains(obstacle(),
                 "cannot register 16 MiB of memory with fake0: Cannot allocate memory; "
                 "locked memory is limited to "));
  fake->set_max_queue_entries(16);
  CHECK(contains(obstacle(), "has queues of 16 entries on fake"));
  fake->set_open_error(EACCES);
  CHECK(contains(obstacle(), "(/dev/infiniband/uverbs1): Permission denied"));
  fake->set_devices(0);
  CHECK(obstacle() == "has no RDMA device");
}

TEST_CASE("a device that does not answer is one line", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  fake->set_devices(1);
  const auto [function, words] = GENERATE(table<std::string, std::string>(
      {{"ibv_query_device", "cannot query fake0: Cannot allocate memory"},
       {"ibv_query_port", "cannot query fake0 port 1: Cannot allocate memory"},
       {"ibv_reg_mr", "cannot register 16 MiB of memory with fake0: Cannot allocate memory"}}));
  fake->fail_calls(function, 0, ENOMEM);
  CHECK(contains(find_verbs_ports({}).obstacle, words));
}

TEST_CASE("ports that are down are passed over", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  fake->set_port(0, false);
  CHECK(to_string(find_verbs_ports({}).ports.at(0)) == "fake1 port 1");
  fake->set_port(1, false);
  CHECK(contains(find_verbs_ports({}).obstacle, "no active RDMA port: fake1 port 1 is down"));
}

TEST_CASE("what a rank lacks is told on both, and tcp serves", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const auto [mishap, words] = GENERATE(table<void (*)(FakeVerbs*), std::string>(
      {{[](FakeVerbs* it) { it->set_devices(0); }, "rank 0 has no RDMA device"},
       {[](FakeVerbs* it) { it->set_open_error(EACCES); }, "rank 0 cannot open fake1 (/dev/inf"},
       {[](FakeVerbs* it) { it->set_lockable_bytes(1); }, "rank 0 cannot register 16 MiB of"}}));
  mishap(fake_verbs());
  const auto names = [](const std::string& transport) {
    World world("verbs rails", 2);  // each on a host of its own
    std::vector<std::string> got(2);
    const auto errors = run_all(2, [&](int rank) {
      const auto store = world.join_store(rank);
      TransportContext context = world.context(*store);
      context.master_addr = "0.0.0.0";  // leads to this host, and is not a loopback address
      got[size_t(rank)] = make_transport(transport, context)->name();
      store->close();
    });
    return std::pair(got, errors);
  };
  CHECK(names("auto").first == std::vector<std::string>{"tcp", "tcp"});
  for (const std::string& error : names("verbs").second) CHECK(contains(error, words));
}
