#include "lib/net/store/facts.h"

#include "tests/catch.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

struct SampleFacts {
  std::string text;
  size_t bytes = 0;
  double rate = 0;
  bool paced = true;
  std::vector<std::string> names;
  auto fields() { return std::tie(text, bytes, rate, paced, names); }
  bool operator==(const SampleFacts&) const = default;
};

const SampleFacts kSampleFacts{
    std::string(100000, 'x') + '\0' + "end", SIZE_MAX, 0.1, false, {"a", "", "c\n"}};

}  // namespace

TEST_CASE("facts of any length are exchanged whole", "[net]") {
  const auto to_two_ranks = [](const std::string& text) {
    return std::vector<std::string>{text, text};
  };
  CHECK(exchange_facts(kSampleFacts, to_two_ranks) == std::vector<SampleFacts>(2, kSampleFacts));
  const std::string reason(1000, 'r');
  CHECK(exchange_facts(Support{false, reason}, to_two_ranks).at(1).reason == reason);
}

TEST_CASE("facts with other fields are refused", "[net]") {
  using Fields = std::vector<std::string>;
  const auto fields = GENERATE(values<Fields>({{},
                                               {"a", "1", "0.5", "1"},
                                               {"a", "1", "0.5", "1", "", ""},
                                               {"a", "-1", "0.5", "1", ""},
                                               {"a", "1x", "0.5", "1", ""},
                                               {"a", "1", "", "1", ""},
                                               {"a", "1", "0.5", "2", ""},
                                               {"a", "1", "0.5", "1", "b"}}));
  const std::string packed = pack_strings(fields);
  CHECK(error_of([&] { unpack_fact<SampleFacts>(packed); }).kind == ErrorKind::kPeer);
  CHECK(error_of([&] { unpack_fact<SampleFacts>(packed + "x"); }).kind == ErrorKind::kPeer);
}

}  // namespace gxp
