#include "lib/collective/tune/profile.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/collective/error_of.h"
#include "tests/temporary_directory.h"

using namespace gxp;

namespace {

constexpr std::string_view kWhole = R"([machine]
version = 2
cpu = "A \"fast\" one"
cores = 2
linux = "6.1"
[shm-2]
transport = "shm"
ranks = 2
hosts = 1
hop = ["8 1e-06", "1024 2.5e-06"]
exchange = ["8 1e-06"]
start = ["1 1e-06"]
swap = ["1 1e-06"]
fold-later = ["8 1e-09"]
fold = ["8 1e-09"]
copy = ["8 1e-09"]
staged-all-reduce = ["8 1e-06"]
halving-doubling-all-reduce = ["8 1e-06", "32 2e-06"]
)";

std::string with(std::string_view old_text, std::string_view new_text) {
  std::string text(kWhole);
  text.replace(text.find(old_text), old_text.size(), new_text);
  return text;
}

std::string parse_error_of(std::string_view text) {
  return error_of([&] { parse_profile(text, "p.toml"); });
}

LinkClass link_of(std::string transport, int ranks, int hosts) {
  return {.transport = std::move(transport), .ranks = ranks, .hosts = hosts};
}

}  // namespace

TEST_CASE("a curve is a straight line in logarithms between its points", "[collective]") {
  const CostCurve curve{{{10, 1}, {1000, 100}, {2000, 100}}};
  struct Row {
    double bytes, seconds;
  };
  for (const auto& [bytes, seconds] : {Row{0, 1}, Row{10, 1}, Row{100, 10}, Row{1000, 100},
                                       Row{1500, 100}, Row{2000, 100}, Row{4000, 200}}) {
    CAPTURE(bytes);
    CHECK(curve.at(bytes) == Approx(seconds));
  }
}

TEST_CASE("a profile survives its text and its file", "[collective]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "new/dir/profile.toml";
  const Profile mixed =
      parse_profile(with("transport = \"shm\"", "transport = \"shm+tcp\""), "here");
  for (const Profile& profile :
       {parse_profile(kWhole, "here"), mixed, builtin_profile(), Profile{}}) {
    CHECK(to_toml(parse_profile(to_toml(profile), "again")) == to_toml(profile));
    save_profile(profile, path);
    CHECK(hash_of(load_profile(path)) == hash_of(profile));
  }
  CHECK(parse_profile(kWhole, "here").machine.cpu == "A \"fast\" one");
  const Algorithm& algorithm = *find_algorithm("halving-doubling", Collective::kAllReduce);
  const LinkClass link = parse_profile(kWhole, "here").links[0];
  CHECK(link.curve(message_curve_name(algorithm))->at(32) == 2e-6);
  // Nothing else is left behind.
  CHECK(std::distance(std::filesystem::directory_iterator(directory / "new/dir"), {}) == 1);
}

TEST_CASE("the hash of a profile depends on what it says, not on the order", "[collective]") {
  Profile profile = builtin_profile();
  const uint64_t hash = hash_of(profile);
  std::swap(profile.links.front(), profile.links.back());
  CHECK(hash_of(profile) == hash);
  profile.links[0].curves.begin()->second.points[0].seconds *= 1 + 1e-15;
  CHECK(hash_of(profile) != hash);
}

TEST_CASE("a broken profile is refused with the line and the key", "[collective]") {
  struct Row {
    std::string text;
    std::string_view words;
  };
  const Row rows[] = {
      {"", "no machine.version"},
      {with("version = 2\n", ""), "no machine.version"},
      {with("version = 2", "version = 1"), "line 2: machine.version: 1 is not 2; calibrate again"},
      {with("version = 2", "version = "), "line 2"},
      {with("cores = 2", "cores = 0"), "line 4: machine.cores: 0 is not between"},
      {with("cores = 2", "cores = \"2\""), "machine.cores: must be a count"},
      {with("cores", "colour"), "machine.colour: there is no such key"},
      {with("[machine]", "speed = 1\n[machine]"), "line 1"},
      {with("exchange", "exchnge"),
       "line 11: shm-2.exchnge: there is no such key; did you mean 'ex"},
      {with("halving-doubling-all", "halving-doubling-al"),
       "no such key; did you mean 'halving-doubling-all-reduce'"},
      {with("fold = [\"8 1e-09\"]\n", ""), "line 6: [shm-2] has no fold"},
      {with("transport = \"shm\"\n", ""), "[shm-2] has no transport"},
      {with("[\"8 1e-06\", \"1024 2.5e-06\"]", "[]"), "line 10: shm-2.hop: the list is empty"},
      {with("\"8 1e-06\", \"1024", "\"8 1e-06\", \"8"), "the bytes of '8 2.5e-06' do not ascend"},
      {with("2.5e-06", "2.5e-07"), "line 10: shm-2.hop: the seconds of '1024 2.5e-07' fall"},
      {with("2.5e-06", "nan"), "'1024 nan' is not 'BYTES SECONDS'"},
      {with("2.5e-06", "-1"), "is not 'BYTES SECONDS'"},
      {with("2.5e-06", "1e-6 s"), "is not 'BYTES SECONDS'"},
      {with("\"1024 2.5e-06\"", "7"), "shm-2.hop: must be a list"},
      {with("ranks = 2", "ranks = -1"), "line 8: shm-2.ranks: -1 is not between 1 and"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(contains(parse_error_of(row.text), row.words));
    CHECK(contains(parse_error_of(row.text), "read profile p.toml: "));
  }
  CHECK(parse_error_of(kWhole).empty());
}

TEST_CASE("a missing profile names the file and how to make one", "[collective]") {
  const std::string missing = error_of([] { load_profile("/nowhere/p.toml"); });
  CHECK(contains(missing, "read profile /nowhere/p.toml: No such file"));
  CHECK(contains(missing, "--calibrate"));
  const std::string refused = error_of([] { save_profile({}, "/proc/none/p.toml"); });
  CHECK(contains(refused, "write profile /proc/none/p.toml: "));
}

TEST_CASE("a new measurement takes the place of its like only", "[collective]") {
  Profile profile{.links = {link_of("shm", 2, 1), link_of("tcp", 2, 1)}};
  LinkClass better = link_of("tcp", 2, 1);
  better.curves["hop"] = {};
  profile.merge({.machine = {.cpu = "new"}, .links = {better, link_of("tcp", 2, 2)}});
  CHECK(profile.links.size() == 3);
  CHECK(profile.machine.cpu == "new");
  CHECK(find_link(profile, "tcp", 2, 1).curve("hop") != nullptr);
}

TEST_CASE("the nearest link class stands for one that was not measured", "[collective]") {
  const Profile profile{
      .links = {link_of("tcp", 2, 1), link_of("tcp", 8, 1), link_of("tcp", 2, 2)}};
  CHECK(find_link(profile, "tcp", 3, 1).ranks == 2);
  CHECK(find_link(profile, "tcp", 5, 1).ranks == 8);
  CHECK(find_link(profile, "tcp", 64, 1).ranks == 8);
  CHECK(find_link(profile, "tcp", 1, 16).hosts == 2);
  CHECK(find_link(profile, "inproc", 2, 1).transport == "shm");  // built in
  CHECK(find_link(profile, "verbs", 1, 2).transport == "tcp");
}

TEST_CASE("the profile's default place follows the environment", "[collective]") {
  CHECK(default_profile_path({}).empty());
  CHECK(default_profile_path({{"HOME", "/h"}}) == "/h/.cache/gxp/profile.toml");
  CHECK(default_profile_path({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/c"}}) == "/c/gxp/profile.toml");
  CHECK(default_profile_path({{"HOME", "/h"}, {"GXP_PROFILE", "/p"}}) == "/p");
}
