#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cmd/run_gxp.h"

namespace gxp {
namespace {

const std::string kData = std::string(GXP_TEST_DATA) + "/topo/";

}  // namespace

TEST_CASE("gxp topo shows what --from names, as text, JSON and NCCL's XML", "[cmd]") {
  const Outcome text = run_gxp({"topo", "--from", "dgx-h100"});
  CHECK(text.code == 0);
  CHECK(text.out.find("\nNVLinks of GPU0-GPU7, each: 18 to NVSwitches\n") != std::string::npos);
  CHECK(run_gxp({"topo", "show", "--from", "dgx-h100"}).out == text.out);
  const Outcome json = run_gxp({"topo", "--from", "2xnuma:2", "--format", "json"});
  CHECK(nlohmann::json::parse(json.out)["devices"].size() == 10);
  const Outcome xml = run_gxp({"topo", "--from", "pcie:2", "--format", "nccl-xml"});
  CHECK(xml.out.find("<system version=\"1\">\n  <cpu numaid=\"0\"") == 0);
}

TEST_CASE("gxp topo --rank tells programs what a rank of a job has", "[cmd]") {
  const Outcome outcome =
      run_gxp({"topo", "--rank", "13", "--from", "dgx-h100", "--hosts", "4", "--format", "json"});
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json["schema"] == "gxp.topo-rank/1");
  CHECK(json["ranks"] == 32);
  CHECK(json["host_index"] == 1);
  CHECK(json["gpu"] == "GPU5");
  CHECK(json["nics_of_nccl"] == "mlx5_5");
  CHECK(json["gpus"].size() == 7);
  CHECK(json["other_hosts"].size() == 8);
  CHECK(run_gxp({"topo", "show", "--rank", "0"}).out.starts_with("rank: 0\n"));  // this host
}

TEST_CASE("a topology that cannot be shown is one error and its exit code", "[cmd]") {
  const auto [arguments, code, said] =
      GENERATE_COPY(table<std::vector<std::string>, int, std::string>(
          {{{"--from", "ring:1"}, 2, "topology 'ring:1': there must be from 2 to 256 GPUs"},
           {{"--from", "3xnuma:1355253049"}, 2, "there must be from 1 to 256 GPUs"},
           {{"--from", "dgx-h10"}, 2, "did you mean 'dgx-h100'?"},
           {{"--from", kData + "README.md"}, 4, "unrecognised format"},
           {{"--from", "x", "show"}, 2, "--from: was given before the action"},
           {{"--from", "dgx-h100", "--rank", "8"}, 2, "it has 8 ranks"},
           {{"--from", "dgx-h100", "--rank", "-1"}, 2, "--rank"},
           {{"--from", "dgx-h100", "--rank", "1", "--format", "svg"},
            2,
            "--rank: format svg cannot show a rank's view; use text or json"},
           {{"--from", "dgx-h100", "--rank", "1", "-m"}, 2, "--rank"},
           {{"--from", "dgx-h100", "--rank", "1", "--probe"}, 2, "--rank"},
           {{"--from", "dgx-h100", "--hosts", "2"}, 2, "--rank"},
           {{"--probe", "--nproc", "2", "--format", "nccl-xml"},
            2,
            "--probe: nccl-xml cannot hold measurements"},
           {{"sohw"}, 2, "unexpected argument 'sohw'; did you mean 'show'?"},
           {{"--from", kData + "smi/dgx1-v100-4mlx.txt", "--format", "nccl-xml"},
            2,
            "has no bus id, which NCCL needs"}}));
  const Outcome outcome = run_gxp(Arguments{"topo"} + arguments);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find("gxp: error: ") == 0);
  CHECK(outcome.err.find(said) != std::string::npos);
}

}  // namespace gxp
