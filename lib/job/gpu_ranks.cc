#include "lib/job/gpu_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "lib/collective/gather_texts.h"
#include "lib/device/device_sharing.h"
#include "lib/device/gpu_share.h"

namespace gxp {
namespace {

// Its own GPU and those that it sees, a line each; "" without a GPU.
std::string to_text(const DeviceSharing* sharing) {
  if (sharing == nullptr) return "";
  return fmt::format("{}\n{}\n", sharing->identity(), fmt::join(sharing->visible(), "\n"));
}

RankGpu parse(const std::string& text) {
  RankGpu rank;
  std::istringstream lines(text);
  std::getline(lines, rank.own);
  for (std::string gpu; std::getline(lines, gpu);) rank.seen.push_back(gpu);
  return rank;
}

}  // namespace

int count_ranks_on(Device& gpu, Communicator& communicator) {
  std::vector<RankGpu> ranks;
  for (const std::string& text : gather_texts(communicator, to_text(gpu.sharing())))
    ranks.push_back(parse(text));
  return ranks_on_gpu(ranks, size_t(communicator.rank()));
}

}  // namespace gxp
