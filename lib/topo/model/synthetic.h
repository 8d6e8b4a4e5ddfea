// Hosts by name: machines that many have, and shapes to try things on.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/topo/model/host_tree.h"

namespace gxp {

struct SyntheticName {
  std::string_view name;     // "dgx-h100", "ring:N"
  std::string_view summary;  // what it is
};

// In the order in which lists have them.
std::span<const SyntheticName> synthetic_names();
// Whether it is the name of a machine, or of a shape with whatever numbers.
bool is_synthetic(std::string_view name);
// Bus ids and names of NICs are made up; the notes say so. Precondition: is_synthetic(name).
// kUsage: a number is out of its range.
HostTree make_synthetic(const std::string& name);

}  // namespace gxp
