// gxp topo's pictures, from a process.
#include "tests/catch.h"
#include "tests/cmd/run_gxp.h"

namespace gxp {
namespace {

TEST_CASE("topo show draws", "[cmd][topo]") {
  const std::string file = "azure-ndv4";
  const Outcome svg = run_gxp({"topo", "show", "--from", file, "--format", "svg"});
  CHECK(svg.code == 0);
  CHECK(svg.out.starts_with("<svg "));
  CHECK(svg.out.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace gxp
