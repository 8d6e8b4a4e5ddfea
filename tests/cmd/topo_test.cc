// gxp topo's questions as they are asked: what is printed, written, and exited with.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.h"
#include "tests/cmd/run_gxp.h"

namespace gxp {
namespace {

const std::string kTopoData = std::string(GXP_TEST_DATA) + "/topo/";
const std::string kOci = kTopoData + "oci-H100-topology.xml";

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The file with `from` replaced by `to` everywhere.
std::string edited(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read(path);
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  const auto file =
      std::filesystem::temp_directory_path() / ("gxp_topo_" + std::to_string(::getpid()) + ".xml");
  std::ofstream(file) << text;
  return file.string();
}

}  // namespace

TEST_CASE("gxp topo -m prints what nvidia-smi topo -m prints", "[cmd]") {
  const std::string expected = read(kTopoData + "matrix/oci-H100-topology.smi.txt");
  CHECK(run_gxp({"topo", "-m", "--from", kOci}).out == expected);
  CHECK(run_gxp({"topo", "matrix", "--from", kOci}).out == expected);
  const Outcome nccl = run_gxp({"topo", "matrix", "--from", kOci, "--like", "nccl"});
  CHECK_THAT(nccl.out, Catch::Contains("PIX, nvidia-smi PXB: NCCL takes the two levels of a "
                                       "Broadcom switch as one"));
}

TEST_CASE("gxp topo path tells programs type, bandwidth, limit and verdicts", "[cmd]") {
  const auto ask = [](const std::vector<std::string>& more) {
    const Arguments arguments =
        Arguments{"topo", "path", "GPU0", "mlx5_13", "--from", kOci, "--format", "json"} + more;
    return nlohmann::json::parse(run_gxp(arguments).out);
  };
  const nlohmann::json path = ask({});
  CHECK(path["type"] == "SYS");
  CHECK(path["bandwidth_gb_s"] == 6);
  CHECK(path["limiting_hop"] == "PCIe switch 0000:08:00.0 -> NUMA0");
  CHECK(path["used"]["type"] == "PXN");
  CHECK(path["gpu_direct_send"]["answer"] == "yes");
  CHECK(path["hops"].size() == 6);
  CHECK_FALSE(ask({"--nccl", "NCCL_PXN_DISABLE=1"}).contains("used"));
}

TEST_CASE("gxp topo path refuses what is no end of a path, and unknown variables", "[cmd]") {
  const auto [arguments, complaint] = GENERATE(table<std::vector<std::string>, std::string>(
      {{{"GPU8", "GPU0"}, "no such device"},
       {{"GPU0", "GPU1", "--nccl", "NCCL_DEBUG=1"}, "only these NCCL variables affect paths"},
       {{"GPU0", "GPU1", "--nccl", "NCCL_P2P_LEVEL"}, "must be NAME=VALUE"}}));
  const Outcome outcome = run_gxp(Arguments{"topo", "path", "--from", kOci} + arguments);
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Catch::Contains(complaint));
}

TEST_CASE("gxp topo diff exits with 1 where hosts differ", "[cmd]") {
  const Outcome same = run_gxp({"topo", "diff", kOci, edited(kOci, "\"0000:", "\"00a1:")});
  CHECK(same.code == 0);
  const Outcome slower =
      run_gxp({"topo", "diff", kOci, edited(kOci, "speed=\"180000\"", "speed=\"90000\""),
               "--format", "json"});
  CHECK(slower.code == 1);
  const auto report = nlohmann::json::parse(slower.out);
  CHECK(report["differences"] == 16);
  CHECK(report["changes"][0]["change"] == "slower");
}

TEST_CASE("gxp topo fix writes a VM's file, or says why it cannot", "[cmd]") {
  const std::string vm = edited(kOci, "\"0000:", "\"00a1:");
  const std::string made = vm + ".made";
  REQUIRE(run_gxp({"topo", "fix", "--for-vm", kOci, "--devices", vm, "-o", made}).code == 0);
  CHECK(run_gxp({"topo", "diff", kOci, made}).code == 0);
  CHECK_THAT(read(made), Catch::Contains("busid=\"00a1:0f:00.0\""));
  const std::string unmade = vm + ".unmade";
  const Outcome refused = run_gxp({"topo", "fix", "--for-vm", kOci, "--devices",
                                   kTopoData + "aws-p4d-24xl-topo.xml", "-o", unmade});
  CHECK_FALSE(std::filesystem::exists(unmade));
  CHECK(refused.code == 1);
  CHECK(refused.out.empty());
  CHECK_FALSE(refused.errors().empty());
}

TEST_CASE("gxp topo --probe measures from each rank to each", "[cmd]") {
  std::vector<std::string> probe = {"topo", "--from",          "ring:2", "--probe",  "--nproc",
                                    "2",    "--probe-seconds", "0.05",   "--format", "json"};
  const auto [transport, used] = GENERATE(table<std::string, std::vector<std::string>>(
      {{"shm", {"shm"}}, {"tcp", {"tcp"}}, {"auto", {"shm", "tcp"}}}));
  probe.insert(probe.end(), {"--set", "comm.transport=" + transport});
  const Outcome outcome = run_gxp(probe);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto report = nlohmann::json::parse(outcome.out);
  REQUIRE(report["measured"].size() == 2 * used.size());
  for (size_t i = 0; i < report["measured"].size(); ++i) {
    const auto& row = report["measured"][i];
    CHECK(row["from"] == i % 2);
    CHECK(row["transport"] == used[i / 2]);
    CHECK(row["bandwidth_gb_s"] > 0);
  }
  CHECK(report["devices"].size() > 2);
  CHECK(run_gxp({"topo", "--probe"}).code == 2);
}

}  // namespace gxp
