#include "lib/data/source_mixer.h"

#include <cmath>
#include <numeric>

#include "lib/data/data_order.h"
#include "tests/catch.h"
#include "tests/data/token_samples.h"

namespace gxp {
namespace {

const std::vector<std::vector<double>>& weight_lists() {
  static const std::vector<std::vector<double>> kLists = {{1},
                                                          {0.7, 0.3},
                                                          {0.3, 0.7},
                                                          {1, 1, 1},
                                                          {0.5, 0.25, 0.125, 0.125},
                                                          {1.0 / 3, 2.0 / 3},
                                                          {std::sqrt(2.0), 3.14159265358979, 0.1},
                                                          {0.9999, 0.0001},
                                                          {67.0, 15.0, 4.5, 4.5, 4.5, 2.5, 2.0},
                                                          {1e-9, 1e9},
                                                          {1e-300, 2e-300}};
  return kLists;
}

SourceMixer mixer_of(const std::vector<double>& weights, uint64_t sample_count,
                     RowOrder order = RowOrder::kShuffled) {
  std::vector<MixedSource> sources;
  for (const double weight : weights) sources.push_back({weight, sample_count + sources.size()});
  return {sources, order, 7};
}

}  // namespace

TEST_CASE("every beginning of a mixture has its proportions", "[data]") {
  const auto weights = GENERATE(from_range(weight_lists()));
  CAPTURE(weights);
  const SourceMixer mixer = mixer_of(weights, 100);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double depth = std::ceil(std::log2(double(weights.size())));
  std::vector<uint64_t> counts(weights.size());
  for (uint64_t position = 0; position < 10'000; ++position) {
    for (size_t i = 0; i < weights.size(); ++i) {
      REQUIRE(mixer.samples_before(position, i) == counts[i]);
      // Shares are rounded to 2^-31.
      REQUIRE(std::abs(double(counts[i]) - double(position) * weights[i] / sum) < depth + 1e-4);
    }
    ++counts[mixer.at(position).source];
  }
}

TEST_CASE("round shares are exact, however far a run has come", "[data]") {
  const SourceMixer mixer = mixer_of({0.7, 0.2, 0.1}, 100);
  const uint64_t position = GENERATE(values<uint64_t>({10, 1'000'000, 1'000'000'000'000'000'000}));
  CHECK(mixer.samples_before(position, 0) == position / 10 * 7);
  CHECK(mixer.samples_before(position, 1) == position / 10 * 2);
  CHECK(mixer.samples_before(position, 2) == position / 10);
}

TEST_CASE("every epoch of a source has each of its samples once, and they are counted", "[data]") {
  const auto order = GENERATE(RowOrder::kSequential, RowOrder::kShuffled);
  const SourceMixer mixer = mixer_of({0.6, 0.3, 0.1}, 17, order);
  std::vector<std::vector<uint64_t>> read(3);
  for (uint64_t position = 0; position < 2000; ++position) {
    const auto [source, sample, epoch] = mixer.at(position);
    const uint64_t count = 17 + source;
    REQUIRE(epoch == read[source].size() / count);
    REQUIRE(epoch == mixer.samples_before(position, source) / count);
    const auto begin = read[source].begin() + std::ptrdiff_t(epoch * count);
    REQUIRE(sample < count);
    REQUIRE(std::find(begin, read[source].end(), sample) == read[source].end());
    read[source].push_back(sample);
  }
}

TEST_CASE("one source alone is read in the order of an unmixed run", "[data]") {
  const SourceMixer mixer = mixer_of({0.3}, 50);
  const SampleOrder order(RowOrder::kShuffled, 7, 50);
  for (uint64_t i = 0; i < 200; ++i)
    CHECK(mixer.at(i) == SourceMixer::Place{0, order.at(i), i / 50});
}

TEST_CASE("sources of one size have orders of their own", "[data]") {
  const SourceMixer mixer({{1, 1000}, {1, 1000}}, RowOrder::kShuffled, 7);
  int same = 0;
  for (uint64_t i = 0; i < 2000; i += 2) same += mixer.at(i).sample == mixer.at(i + 1).sample;
  CHECK(same < 20);
}

TEST_CASE("a mixture is frozen, so that old runs resume", "[data]") {
  const SourceMixer mixer = mixer_of({0.5, 0.3, 0.2}, 100);
  std::vector<size_t> sources;
  std::vector<uint64_t> samples;
  for (uint64_t i = 0; i < 10; ++i) {
    sources.push_back(mixer.at(i).source);
    samples.push_back(mixer.at(i).sample);
  }
  CHECK(sources == std::vector<size_t>{2, 0, 1, 0, 2, 0, 1, 0, 1, 0});
  CHECK(samples == std::vector<uint64_t>{12, 33, 17, 66, 35, 98, 87, 82, 18, 54});
}

TEST_CASE("epochs are of all data, or of each entry that weights mix", "[data]") {
  const TokenDirectory dir;
  const std::vector<std::string> files = {dir.write("a.i32", counting_tokens(6)),
                                          dir.write("b.i32", counting_tokens(18))};
  RunConfig run;
  run.data.train = files;
  run.data.sequence = 2;
  run.model.vocab_size = 20;
  RunEncoder encoder(run);
  const Dataset data(files, encoder);  // of two samples and six
  CHECK(DataOrder(run.data, 1, data).epochs(12) == std::vector<double>{1.5});
  run.data.weights = {1, 1};
  CHECK(DataOrder(run.data, 1, data).epochs(12) == std::vector<double>{3, 1});
}

}  // namespace gxp
