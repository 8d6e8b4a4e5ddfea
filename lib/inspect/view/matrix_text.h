// A device matrix as `nvidia-smi topo -m` prints it, so that what reads that reads this: tabs
// between columns, affinities behind the GPUs' rows, a legend, the NICs' names.
#pragma once

#include <string>
#include <string_view>

#include "lib/inspect/view/device_matrix.h"

namespace gxp {

std::string matrix_text(const HostTree& host, const DeviceMatrix& matrix, std::string_view legend);
// What the words of smi_matrix() and of nccl_matrix() mean.
std::string_view smi_legend();
std::string_view nccl_legend();
// "GPU0-NIC0, GPU0-NIC1 and 12 more"
std::string cells_text(const DeviceMatrix& matrix, const MatrixDifference& difference);

}  // namespace gxp
