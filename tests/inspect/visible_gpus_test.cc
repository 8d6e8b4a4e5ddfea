#include "lib/inspect/view/visible_gpus.h"

#include "lib/base/error.h"
#include "lib/topo/model/synthetic.h"
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

TEST_CASE("a list that gives ranks no GPU, or one that is not known, is an error",
          "[inspect][rank]") {
  const auto [list, said] = GENERATE(
      table<std::string, std::string>({{"", "it hides all 8 GPUs"},
                                       {"-1", "it hides all 8 GPUs"},
                                       {"99999999999999999999", "it hides all 8 GPUs"},
                                       {"2,2", "it names GPU 2 twice"},
                                       {"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "is a UUID"}}));
  HostTree host = make_synthetic("dgx-h100");
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
  CHECK_THAT(assumed[0], Catch::Contains("as all GPUs are alike"));
  std::get<GpuInfo>(host[host.all_of(PartKind::kGpu)[3]].info).model_name = "another";
  CHECK_THAT(rank_visible_gpus(host, {}).at(0), Catch::Contains("GPUs differ"));
}

}  // namespace gxp
