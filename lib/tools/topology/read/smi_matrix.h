// The pasted output of `nvidia-smi topo -m` (or -mp, -p2p), and the host that it describes.
//
// The reader takes tabs or spaces of any kind, a prompt or text around the matrix, colours, marks of
// quoting ("> "), of comments ("# ") or of a table ("| "), a label before each line (a rank's, as
// srun -l and mpirun write it, a pod's, a time), rows that go on in the next line, cells that have
// run together ("PIXNODE"), missing rows of NICs, columns by NIC numbers with a legend below or by
// names. It reads the first matrix with places of devices (topo -m), and the first of peer states
// (-p2p); of several ranks' matrices the first one's.
//   Limits  kMaxMatrixDevices, kMaxMatrixBytes.
//   Errors  kCorrupt, "read topology FILE:LINE:COLUMN: ...": no row of columns, a cell that is
//           none, a row of too few or too many, or of a device that has no column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/topo/model/source_text.h"

namespace gxp {

class HostTree;

// A larger file is no matrix.
inline constexpr size_t kMaxMatrixDevices = 512;
inline constexpr size_t kMaxMatrixBytes = 4u << 20;

struct PastedMatrix {
  struct Device {
    std::string column{};  // "GPU0", "NIC3", "mlx5_0"
    int number = 0;        // of the GPU or NIC
    std::string name{};    // of a NIC: "mlx5_0"; "": not given
    bool is_gpu = false;
    bool has_row = false;
    std::string cpu_affinity{};   // "0-31,64-95"
    std::string numa_affinity{};  // "0", "0,2-17"
    std::string memory_node{};    // of a GPU whose memory is a NUMA node: "1"
    SourceLocation place{};       // of its row
  };
  std::vector<Device> devices;
  std::vector<std::vector<std::string>> cells;  // [row][column]; "": unknown
  bool is_p2p = false;                          // cells say whether peers can reach each other
  // The same from -p2p, also beside other cells: "OK", "TNS"; no rows: there is no such matrix.
  std::vector<std::vector<std::string>> peer_states{};
  std::vector<std::string> notes;
};

// Whether there is a row of columns such as "GPU0 GPU1 ...".
bool looks_like_matrix(std::string_view text);
PastedMatrix read_pasted_matrix(std::string_view text, const std::string& name);

// A host with that matrix: devices that are PIX share a switch, those that are PXB have switches
// below a common one; PHB is a common host bridge, NODE a common NUMA node, SYS none. NV# are
// NVLinks from GPU to GPU, or to NVSwitches: where every pair of more than four GPUs has as many,
// or a GPU would have more links than exist. Notes name what the matrix does not say, guesses and
// contradictions, and each cell that differs in the host's own matrix.
HostTree host_of_matrix(const PastedMatrix& matrix, const std::string& name);

}  // namespace gxp
