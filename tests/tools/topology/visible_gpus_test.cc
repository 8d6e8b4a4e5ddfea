#include "lib/tools/topology/view/visible_gpus.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/tools/topology/model/synthetic.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"

namespace gxp {
namespace {

// The GPUs by rank, as "GPU4 GPU6".
std::string shown(HostTree& host, const Environment& environment) {
  rank_visible_gpus(host, environment);
  const std::vector<std::string> names = names_of_parts(host);
  std::string text;
  for (int rank = 0;; ++rank) {
    const size_t before = text.size();
    for (PartId part = 0; part < host.parts().size(); ++part) {
      const auto* gpu = std::get_if<GpuInfo>(&host[part].info);
      if (gpu != nullptr && gpu->rank == rank) text += (text.empty() ? "" : " ") + names[part];
    }
    if (text.size() == before) return text;
  }
}

// GPU g is GPU-g932f937; GPU 2 is cut into MIG-65afc88a and MIG-65bbbbbb.
HostTree host_with_uuids() {
  HostTree host = make_synthetic("dgx-h100");
  int number = 0;
  for (const PartId gpu : host.all_of(PartKind::kGpu))
    std::get<GpuInfo>(host[gpu].info).uuid = fmt::format("GPU-{}932f937", number++);
  std::get<GpuInfo>(host[host.all_of(PartKind::kGpu)[2]].info).slices = {"MIG-65afc88a",
                                                                         "MIG-65bbbbbb"};
  return host;
}

}  // namespace

TEST_CASE("ranks get the GPUs that the CUDA driver shows, in the order of the list",
          "[inspect][rank]") {
  const auto [list, gpus] = GENERATE(table<std::string, std::string>({
      {"6,4", "GPU6 GPU4"},
      {" 0, 7 ", "GPU0 GPU7"},
      {"1,2,8,3", "GPU1 GPU2"},  // no GPU has the third number: the list ends there
      {"5,-1,6", "GPU5"},
      {"3,x", "GPU3"},
  }));
  HostTree host = make_synthetic("dgx-h100");
  CHECK(shown(host, {{"CUDA_VISIBLE_DEVICES", list}}) == gpus);
}

TEST_CASE("ranks get the GPUs that a list names by UUID, whole or cut short", "[inspect][rank]") {
  const auto [list, gpus] = GENERATE(table<std::string, std::string>({
      {"GPU-6932f937,GPU-4", "GPU6 GPU4"},
      {"GPU-1932,0", "GPU1 GPU0"},
      {"MIG-65afc88a", "GPU2"},
      {"GPU-3932f937,MIG-65b,GPU-4", "GPU2"},  // a process sees one MIG device alone
      {"MIG-GPU-2932f937/1/0", "GPU2"},
  }));
  HostTree host = host_with_uuids();
  CHECK(shown(host, {{"CUDA_VISIBLE_DEVICES", list}}) == gpus);
  CHECK(rank_visible_gpus(host, {{"CUDA_VISIBLE_DEVICES", list}}).size() == 1);  // no order assumed
}

TEST_CASE("a list that gives ranks no GPU, or one that is not known, is an error",
          "[inspect][rank]") {
  const auto [list, said] =
      GENERATE(table<std::string, std::string>({{"", "it hides all 8 GPUs"},
                                                {"-1", "it hides all 8 GPUs"},
                                                {"99999999999999999999", "it hides all 8 GPUs"},
                                                {"2,2", "2 is a GPU that it names twice"},
                                                {"2,GPU-2", "GPU-2 is a GPU that it names twice"},
                                                {"GPU-", "several GPUs have UUIDs GPU-..."},
                                                {"0,GPU-8932f937",
                                                 "none of the 8 GPUs here has the UUID "
                                                 "GPU-8932f937; nvidia-smi -L"}}));
  HostTree host = host_with_uuids();
  CHECK_THROWS_WITH(
      rank_visible_gpus(host, {{"CUDA_VISIBLE_DEVICES", list}}),
      Catch::Contains("CUDA_VISIBLE_DEVICES=" + list + ": ") && Catch::Contains(said));
}

TEST_CASE("what is assumed of the driver's order is said", "[inspect][rank]") {
  HostTree host = make_synthetic("dgx-h100");
  CHECK(shown(host, {}) == "GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7");
  CHECK(rank_visible_gpus(host, {{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}).empty());
  const auto assumed = rank_visible_gpus(host, {{"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}});
  REQUIRE(assumed.size() == 1);
  CHECK_THAT(assumed[0], Catch::Contains("since all GPUs are the same model"));
  std::get<GpuInfo>(host[host.all_of(PartKind::kGpu)[3]].info).model_name = "another";
  CHECK_THAT(rank_visible_gpus(host, {}).at(0), Catch::Contains("GPUs differ"));
}

}  // namespace gxp
