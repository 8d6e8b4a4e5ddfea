// gxp topo lint as a process: what it writes where, and how it ends.
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cmd/run_gxp.h"

namespace gxp {
namespace {

std::string data(const std::string& file) { return std::string(GXP_TEST_DATA) + "/topo/" + file; }

TEST_CASE("topo lint fails for errors, and if strict for warnings", "[cmd][topo]") {
  struct Case {
    std::string file;
    int code;
    int strict_code;
  };
  const Case one = GENERATE(Case{"rccl-topo_8p_940.xml", 0, 0}, Case{"oci-H100-topology.xml", 0, 1},
                            Case{"azure-ncv4-topo.xml", 1, 1}, Case{"azure-ndv4-topo.xml", 0, 0});
  CAPTURE(one.file);
  CHECK(run_gxp({"topo", "lint", data(one.file)}).code == one.code);
  CHECK(run_gxp({"topo", "lint", data(one.file), "--strict"}).code == one.strict_code);
}

TEST_CASE("topo lint names the place of each finding, in text and in JSON", "[cmd][topo]") {
  const std::string file = data("azure-ncv4-topo.xml");
  const Outcome text = run_gxp({"topo", "lint", file});
  CHECK(text.out.find(file + ":5:9: error: 12 NVLinks from GPU0 (0001:00:00.0) to itself "
                             "[nvlink-to-itself]") != std::string::npos);
  const auto json = nlohmann::json::parse(run_gxp({"topo", "lint", file, "--format", "json"}).out);
  CHECK(json["schema"] == "gxp.topo.lint/1");
  CHECK(json["errors"] == 4);
  CHECK(json["findings"][0]["line"] == 3);
  CHECK(json["findings"].size() == json["errors"].get<size_t>() + json["warnings"].get<size_t>());
}

TEST_CASE("topo lint says what it needs and what it knows", "[cmd][topo]") {
  CHECK(run_gxp({"topo", "lint"}).code == 2);
  CHECK(run_gxp({"topo", "lint", "nothing.xml"}).code == 4);
  const Outcome rules = run_gxp({"topo", "lint", "--rules", "--format", "json"});
  CHECK(rules.code == 0);
  CHECK(nlohmann::json::parse(rules.out)["rules"].size() >= 25);
}

}  // namespace
}  // namespace gxp
