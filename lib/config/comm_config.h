// The user's settings of communication: the section [comm] of run_config.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/choice.h"
#include "lib/base/schema.h"
#include "lib/net/socket/protection.h"

namespace gxp {

// The values of comm.transport, comm.engine and the codecs: "auto" or "none", then the rows of
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
  std::string gather_codec = "none";
  int nccl_min_ctas = 0;
  int nccl_max_ctas = 0;
  int streams = 0;
  uint64_t socket_buffer_bytes = 0;
  std::string interface;
  std::string port_range;
  Choice<Protection> protect = Protection::kAuthenticate;
  bool cma = true;
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
    field.section("comm", "Communication between ranks.");
    declare_collectives(field);
    declare_codecs(field);
    declare_nccl(field);
    declare_links(field);
    declare_verbs(field);
    declare_failures(field);
  }

  static void declare_collectives(auto& field) {
    field("transport", &S::transport,
          "How ranks reach each other. auto: the fastest available, per pair of ranks.",
          one_of(transport_names()), {"--transport", ""});
    field("engine", &S::engine,
          "Library that runs the collectives. native: gxp's own. mpi: MPI, for ranks started by "
          "mpirun, in builds with MPI. nccl: NCCL, for ranks with a GPU each, in builds with "
          "CUDA. auto: native, except in train with a GPU per rank and train.deterministic = "
          "\"off\", where a model picks the faster of native and nccl. The log names the choice "
          "and the reason.",
          one_of(engine_names()), {"--engine", ""});
    field("algorithm", &S::algorithm,
          "Collective algorithm, for operations that have it. auto: the fastest by prediction. For "
          "ranks that share memory, direct picks the fastest of three protocols: copied, cma, "
          "tiles; each can also be set by name.",
          anything, {"--algorithm", "NAME"});
    field("channels", &S::channels,
          "Number of parallel rings, for the algorithms ring and hierarchical. 0: the fastest by "
          "prediction.",
          between(0, 64), {"--channels", ""});
    field("segment_bytes", &S::segment_bytes, "Pipeline segment size. 0: chosen by the cost model.",
          between(0, 1u << 30), {"--segment-bytes", ""});
    field("profile", &S::profile,
          "TOML file with measured constants of the cost model, read on rank 0's host. \"\": the "
          "file that allreduce-test --calibrate wrote, if there is one. builtin: the built-in "
          "constants.",
          anything, {"--profile", "FILE"});
    field("topology", &S::topology,
          "Plan that sets the ring order and the groups of hierarchical algorithms: a file of gxp "
          "topo plan --format rank-plan, read on rank 0's host. Local rank k uses the host's k-th "
          "GPU. \"\": rings in rank order, one group per host.",
          anything, {"--topology", "FILE"});
  }

  static void declare_codecs(auto& field) {
    field("codec", &S::codec,
          "Compression of sums between hosts; loses precision. train: gradients, with error "
          "feedback, which adds what a step could not send to the next one. allreduce-test: "
          "floating-point sums and averages. Nothing is compressed within a host. With a codec, "
          "a run's bits depend on parallel.bucket_bytes, too, and gradients on GPUs are copied to "
          "their hosts, which compress and sum them; not by engine nccl.",
          one_of(codec_names()), {"--codec", ""});
    field("gather_codec", &S::gather_codec,
          "train: compression between hosts of the parameters that a step gathers, for strategies "
          "that shard parameters; loses precision. ZeRO++ uses int8. All ranks compute with the "
          "same rounded parameters; the optimizer, checkpoints, exports, validation and "
          "generation use unrounded ones. Nothing is compressed within a host. May change when a "
          "run resumes.",
          one_of(codec_names()));
  }

  static void declare_nccl(auto& field) {
    field("nccl_min_ctas", &S::nccl_min_ctas,
          "Minimum number of CTAs per NCCL call; 0: NCCL decides.", between(0, 64));
    field("nccl_max_ctas", &S::nccl_max_ctas,
          "Maximum number of CTAs per NCCL call, which leaves SMs free for compute kernels; 0: "
          "NCCL decides.",
          between(0, 64));
  }

  static void declare_links(auto& field) {
    field("streams", &S::streams, "tcp: connections per peer. 0: decided by a short probe.",
          between(0, 64));
    field("socket_buffer_bytes", &S::socket_buffer_bytes,
          "tcp: send and receive buffer size of each connection. 0: decided by a short probe.",
          between(0, 1u << 30));
    field("interface", &S::interface,
          "tcp: network interface of this host, in the syntax of NCCL_SOCKET_IFNAME: name "
          "prefixes, or =eth0 for exactly one. May differ between hosts. \"\": the interface "
          "that routes to rank 0.");
    field("port_range", &S::port_range,
          "tcp: ports on which ranks accept connections from each other while joining, such as "
          "\"30000-30100\", for firewalls. A host needs one port per rank, rank 0's host one more "
          "with --max-restarts. It also needs the port of --master or MASTER_PORT. \"\": any free "
          "port.");
    field("protect", &S::protect,
          "tcp: protection of the traffic between hosts, at the cost of CPU time. authenticate: "
          "nobody can change it. encrypt: nobody can read it either. none: for trusted networks "
          "only; required by verbs, since RDMA cannot be protected.",
          OptionForm{"--protect", ""});
    field("cma", &S::cma,
          "shm: use cross-memory attach (process_vm_readv) to copy between ranks' ordinary "
          "buffers, where it works and is measured to be faster. Where ptrace is restricted, "
          "each rank grants access to the processes that its parent started.");
  }

  static void declare_verbs(auto& field) {
    field("verbs_devices", &S::verbs_devices,
          "verbs: this host's RDMA ports, such as \"mlx5_0:1,mlx5_1\". May differ between hosts. "
          "\"\": all active ports. Each rank uses the ports nearest to its GPU (see gxp topo) or, "
          "without a GPU, on the NUMA node of its CPUs; if the topology is unknown, the ranks of "
          "a host share the ports evenly. Ports of the same name are connected to each other.");
    field("verbs_queue_pairs", &S::verbs_queue_pairs,
          "verbs: queue pairs per peer and port. Long messages are split over them.",
          between(1, 16));
    field("verbs_gid_index", &S::verbs_gid_index,
          "verbs: GID table index of each port. May differ between hosts. -1: RoCE v2, "
          "preferring IPv4, then IPv6, then link-local addresses; on InfiniBand the first entry.",
          between(-1, 1023));
    field("verbs_pkey_index", &S::verbs_pkey_index,
          "verbs: index of the partition key (P_Key) of each port.", between(0, 65535));
    field("verbs_traffic_class", &S::verbs_traffic_class,
          "verbs: traffic class of RoCE packets: 4 x DSCP. Switches map it to a lossless "
          "priority.",
          between(0, 255));
  }

  static void declare_failures(auto& field) {
    field("flight_recorder", &S::flight_recorder,
          "Directory of the files rank-N.flight, which record each rank's latest operations and "
          "survive a kill. Best in memory, such as /dev/shm. May differ between hosts. \"\": "
          "records stay in the processes.",
          anything, {"--flight-recorder", "DIR"});
    field("silence_s", &S::silence_s,
          "tcp: seconds without any answer from a host, including to retransmissions, after "
          "which its connections count as lost. 0: comm.timeout_s, so that shorter outages are "
          "survived.",
          between(0, 1e6));
    field("timeout_s", &S::timeout_s,
          "Seconds after which a collective fails and names the late rank. Time in which a "
          "process or machine was stopped does not count.",
          between(0.001, 1e6), {"-T,--timeout", "SECONDS"});
  }
};

}  // namespace gxp
