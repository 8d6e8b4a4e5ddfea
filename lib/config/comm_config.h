// What a user can set about what joins the ranks: the section [comm] of run_config.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/schema.h"

namespace gxp {

// What comm.transport, comm.engine and comm.codec may be: "auto" or "none", then the rows of
// transports.inc, engines.inc and codecs.inc, of which lib/transport and lib/collective make their
// tables.
std::vector<std::string_view> transport_names();
std::vector<std::string_view> engine_names();
std::vector<std::string_view> codec_names();

struct CommConfig {
  std::string transport = "auto";
  std::string engine = "auto";
  std::string algorithm = "auto";
  int channels = 0;
  uint64_t segment_bytes = 0;
  std::string profile;
  std::string topology;
  std::string codec = "none";
  int nccl_min_ctas = 0;
  int nccl_max_ctas = 0;
  int streams = 0;
  uint64_t socket_buffer_bytes = 0;
  std::string interface;
  std::string port_range;
  std::string protect = "authenticate";
  bool kernel_copies = true;
  std::string verbs_devices;
  int verbs_queue_pairs = 1;
  int verbs_gid_index = -1;
  int verbs_pkey_index = 0;
  int verbs_traffic_class = 0;
  std::string flight_recorder;
  double silence_s = 0;   // of a host, over TCP; 0: timeout_s
  double timeout_s = 60;  // a collective that waits longer fails and names who is late

  using S = CommConfig;
  static void schema(auto& field) {
    field.section("comm", "Bytes between ranks.");
    declare_collectives(field);
    declare_nccl(field);
    declare_links(field);
    declare_verbs(field);
    declare_failures(field);
  }

  static void declare_collectives(auto& field) {
    field("transport", &S::transport, "How ranks reach each other; auto: the fastest, per peer.",
          one_of(transport_names()));
    field("engine", &S::engine,
          "Who runs the collectives: gxp itself (native); MPI among ranks that mpirun has started, "
          "in builds with it; NCCL among ranks with a GPU each, in builds with CUDA. auto: native; "
          "in train, where all ranks have GPUs and train.deterministic is off, what a model "
          "predicts to be faster. The log has the choice and its reason.",
          one_of(engine_names()));
    field("algorithm", &S::algorithm,
          "Algorithm of those operations that have one of this name; auto: the one predicted to "
          "be fastest. direct, between ranks that share memory, goes by the fastest of three "
          "ways: copied, kernel, tiles; these names ask for one of them.");
    field("channels", &S::channels,
          "Parallel rings of the algorithms that have them, ring and hierarchical; 0: as many as "
          "are predicted to be fastest.",
          between(0, 64));
    field("segment_bytes", &S::segment_bytes,
          "Bytes of one step of the pipeline; 0: chosen by the cost model.", between(0, 1u << 30));
    field("profile", &S::profile,
          "TOML file with the measured constants of the cost model, on rank 0's host; \"\": the "
          "one that allreduce-test --calibrate writes, if it has; builtin: those built in.");
    field("topology", &S::topology,
          "File of a plan, on rank 0's host, that sets the rings along which ranks send and the "
          "groups in which the hierarchical algorithms see them; gxp topo plan --format rank-plan "
          "writes it. The k-th rank of a host has the GPU of local rank k; \"\": rings by rank, "
          "groups by host.");
    field("codec", &S::codec,
          "How sums and averages of floats travel between hosts in allreduce-test: as they are, "
          "or with fewer bits, at the price of precision. Within a host nothing is encoded; train "
          "has no codecs.",
          one_of(codec_names()));
  }

  static void declare_nccl(auto& field) {
    field("nccl_min_ctas", &S::nccl_min_ctas,
          "nccl: thread blocks that it uses for a call at least; 0: as it likes.", between(0, 64));
    field("nccl_max_ctas", &S::nccl_max_ctas,
          "nccl: thread blocks that it uses for a call at most, since those compute nothing else; "
          "0: as it likes.",
          between(0, 64));
  }

  static void declare_links(auto& field) {
    field("streams", &S::streams, "tcp: connections to each peer; 0: a short probe decides.",
          between(0, 64));
    field("socket_buffer_bytes", &S::socket_buffer_bytes,
          "tcp: send and receive buffer of each connection; 0: a short probe decides.",
          between(0, 1u << 30));
    field("interface", &S::interface,
          "tcp: where this host is reached, as NCCL_SOCKET_IFNAME names interfaces: prefixes, or "
          "=eth0 for one; may differ between hosts; \"\": the one that leads to rank 0.");
    field(
        "port_range", &S::port_range,
        "tcp: range of ports, such as \"30000-30100\", on which ranks accept connections from each "
        "other while they join, for firewalls that open only some. A host needs a port for each of "
        "its ranks; rank 0's host also the port of --master or MASTER_PORT. \"\": any free port.");
    field("protect", &S::protect,
          "tcp: what keeps others from changing (authenticate) or reading (encrypt) what ranks "
          "send each other, at the price of CPU time; none: a network that is trusted, which verbs "
          "asks for, since RDMA cannot be protected.",
          one_of("none", "authenticate", "encrypt"));
    field("kernel_copies", &S::kernel_copies,
          "shm: let the kernel copy between the ranks' ordinary buffers, where it can and is "
          "measured to be faster. Where ptrace is restricted, each rank permits the processes "
          "that its parent started to reach its memory.");
  }

  static void declare_verbs(auto& field) {
    field("verbs_devices", &S::verbs_devices,
          "verbs: the RDMA ports of this host, as in \"mlx5_0:1,mlx5_1\"; may differ between "
          "hosts; \"\": all that are active. Of these a rank takes what gxp topo places nearest to "
          "its GPU, or at the NUMA node of its CPUs; where the wiring tells nothing, the ranks of "
          "a host share them evenly. Ports of equal names are connected.");
    field("verbs_queue_pairs", &S::verbs_queue_pairs,
          "verbs: connections to each peer over each port; long messages are cut over them.",
          between(1, 16));
    field("verbs_gid_index", &S::verbs_gid_index,
          "verbs: entry of each port's table of addresses; may differ between hosts; -1: RoCE v2, "
          "by IPv4 before IPv6 before link-local addresses, or InfiniBand's first.",
          between(-1, 1023));
    field("verbs_pkey_index", &S::verbs_pkey_index,
          "verbs: entry of each port's table of partitions (P_Keys).", between(0, 65535));
    field("verbs_traffic_class", &S::verbs_traffic_class,
          "verbs: traffic class of RoCE's packets, four times their DSCP, which switches know a "
          "lossless class by.",
          between(0, 255));
  }

  static void declare_failures(auto& field) {
    field("flight_recorder", &S::flight_recorder,
          "Directory of the files rank-N.flight, in which each rank's last operations can be read "
          "also after it was killed; best in memory, as in /dev/shm; \"\": they are kept in the "
          "processes only. May differ between hosts.");
    field(
        "silence_s", &S::silence_s,
        "tcp: seconds in which a host answers nothing, not even repeated packets, after which its "
        "connections count as lost. 0: comm.timeout_s, so that a link that is down for less ends "
        "nothing.",
        between(0, 1e6));
    field("timeout_s", &S::timeout_s,
          "Seconds after which a collective fails and names the rank that is late. Time in which a "
          "process was stopped or its machine paused does not count for it.",
          between(0.001, 1e6));
  }
};

}  // namespace gxp
