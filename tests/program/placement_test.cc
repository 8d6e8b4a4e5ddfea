#include "lib/program/placement.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "lib/base/bytes.h"
#include "tests/catch.h"

namespace gxp {
namespace {

BufferSpec buffer(size_t bytes, OpId first, OpId last, size_t alignment = 64) {
  BufferSpec spec;
  spec.bytes = bytes;
  spec.first = first;
  spec.last = last;
  spec.alignment = alignment;
  return spec;
}

// The largest first.
std::vector<BufferId> order_of(const std::vector<BufferSpec>& buffers) {
  std::vector<BufferId> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](BufferId id) { return buffers[size_t(id)].bytes; });
  return order;
}

// By looking at all buffers that are placed already.
void place_simply(std::vector<BufferSpec>& buffers, const std::vector<BufferId>& order) {
  std::vector<const BufferSpec*> placed;
  for (const BufferId id : order) {
    BufferSpec& mine = buffers[size_t(id)];
    const auto blocks = [&](const BufferSpec* other) {
      return mine.first <= other->last && other->first <= mine.last &&
             other->offset < mine.offset + mine.bytes && mine.offset < other->offset + other->bytes;
    };
    for (auto at = std::ranges::find_if(placed, blocks); at != placed.end();
         at = std::ranges::find_if(placed, blocks))
      mine.offset = round_up((*at)->offset + (*at)->bytes, mine.alignment);
    placed.push_back(&mine);
  }
}

// What `layers` layers store for the backward pass, and what they need for a moment.
std::vector<BufferSpec> of_layers(int layers) {
  std::vector<BufferSpec> buffers;
  for (int layer = 0; layer < layers; ++layer) {
    const OpId forward = 3 * layer, backward = 6 * layers - 1 - 3 * layer;
    for (const size_t bytes : {5000, 3000, 3000, 1200})
      buffers.push_back(buffer(bytes, forward, backward));
    buffers.push_back(buffer(4000, forward, forward));
    buffers.push_back(buffer(4500, backward - 1, backward));
    buffers.push_back(buffer(2200, backward - 2, backward));
  }
  return buffers;
}

double seconds_for(int layers) {
  std::vector<BufferSpec> buffers = of_layers(layers);
  const std::clock_t begin = std::clock();  // CPU time
  place_in_arena(buffers, order_of(buffers), size_t(6 * layers));
  return double(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("each buffer lies at the lowest offset that is free in its life", "[program]") {
  std::mt19937 random(GENERATE(range(0u, 50u)));
  const auto below = [&](int limit) { return int(random() % unsigned(limit)); };
  std::vector<BufferSpec> buffers = of_layers(2);
  const int ops = 12 + below(20);
  for (int i = below(60); i > 0; --i) {
    const OpId first = below(ops);
    const auto bytes = std::vector<size_t>{0, 1, 63, 64, 65, 200, 4096}[size_t(below(7))];
    buffers.push_back(
        buffer(bytes, first, std::min(ops - 1, first + below(8)), below(5) == 0 ? 4096 : 64));
  }
  std::vector<BufferSpec> expected = buffers;
  place_simply(expected, order_of(expected));
  place_in_arena(buffers, order_of(buffers), size_t(ops));
  for (size_t i = 0; i < buffers.size(); ++i) CHECK(buffers[i].offset == expected[i].offset);
}

TEST_CASE("placing takes time in proportion to the layers", "[program]") {
  (void)seconds_for(500);
  CHECK(seconds_for(8000) < 60 * std::max(seconds_for(500), 0.002));  // quadratic: 256 times
}

}  // namespace gxp
