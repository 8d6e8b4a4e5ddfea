#include <fmt/format.h>

#include "cmd/manual.h"
#include "lib/config/print.h"
#include "lib/tools/topology/model/synthetic.h"
#include "lib/tools/topology/read/sources.h"

namespace gxp {

std::string topology_sources_manual() {
  std::string text;
  for (const TopologySource& source : topology_sources()) {
    text += fmt::format(".TP\n.B {}\n{}; known by {}.\n", to_roff(source.name),
                        to_roff(source.summary), to_roff(source.mark));
  }
  text += ".PP\nNames:\n";
  for (const SyntheticName& known : synthetic_names())
    text += fmt::format(".TP\n.B {}\n{}.\n", to_roff(known.name), to_roff(known.summary));
  return text;
}

}  // namespace gxp
