#include "lib/net/launch/held_parts.h"

#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/net/store_job.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

using Files = std::vector<std::pair<int, std::string>>;

HeldPart part(int rank, uint64_t step, int parts = 4) {
  return {"job", step, rank, false, parts, {fmt::format("{}/{}", step, rank)}};
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a host that waits gives what nobody else has of the newest whole replica", "[net]") {
  struct Row {
    const char* what;
    std::vector<HostHoldings> hosts;
    int64_t saved;
    Files files;
  };
  // Each host holds its own part and its neighbour's; host 3 is lost.
  const auto hosts = [](std::vector<bool> take_part, std::vector<HeldPart> more = {}) {
    std::vector<HostHoldings> all;
    for (int host = 0; host < 3; ++host)
      all.push_back({host, take_part[size_t(host)], {part(host, 20), part((host + 3) % 4, 20)}});
    all[2].parts.insert(all[2].parts.end(), more.begin(), more.end());
    return all;
  };
  const Row row = GENERATE_COPY(
      Row{"all take part", hosts({true, true, true}), 0, {}},
      Row{"the last waits", hosts({true, true, false}), 0, {{2, "20/2"}}},
      Row{"the others have its parts, too", hosts({true, false, true}), 0, {}},
      Row{"two wait", hosts({true, false, false}), 0, {{1, "20/1"}, {2, "20/2"}}},
      Row{"a checkpoint is as new", hosts({true, true, false}), 20, {}},
      Row{"a newer replica is not whole",
          hosts({true, true, false}, {part(2, 30)}),
          0,
          {{2, "20/2"}}},
      Row{"a part is lost", {{0, true, {part(0, 20)}}, {2, false, {part(2, 20)}}}, 0, {}},
      Row{"nobody has replicas", {{0}, {1}}, 0, {}});
  CAPTURE(row.what);
  Files files;
  for (const FilesToGive& given : files_to_give(row.hosts, row.saved))
    for (const std::string& file : given.files) files.emplace_back(given.host, file);
  CHECK(files == row.files);
}

TEST_CASE("files travel from a host's memory into another's, whole or not at all", "[net]") {
  const auto [names, error] = GENERATE(table<std::vector<std::string>, std::string>(
      {{{"step/long", "step/empty", "step/short"}, ""},
       {{"step/long", "../away"}, "it is named ../away"},
       {{"step/long", "/away/there"}, "it is named /away/there"}}));
  const Job job(2);
  const TemporaryDirectory from, to;
  std::filesystem::create_directory(from.path() + "/step");
  write_file(from.path() + "/step/long", std::string((size_t{8} << 20) * 3 + 1, 'x') + "end");
  write_file(from.path() + "/step/empty", "");
  write_file(from.path() + "/step/short", "short");
  auto giving = std::async(std::launch::async, [&] {
    const auto store = job.join(1);
    const Caught caught = error_of([&] { give_files(*store, 1, names, from.path()); });
    store->close();
    return caught;
  });
  const auto store = job.join(0);
  std::string told;
  const Caught caught = error_of([&] { told = take_files(*store, 1, names, to.path()); });
  CHECK(caught.says(error));
  if (!error.empty()) return store->abort(0, "it has failed");
  CHECK_FALSE((caught.kind || giving.get().kind));
  CHECK(told.empty());
  for (const std::string& name : names)
    CHECK(read_file(to.path() + "/" + name) == read_file(from.path() + "/" + name));
}

TEST_CASE("a host without room takes no file, and says why", "[net]") {
  const Job job(2);
  const TemporaryDirectory from, to;
  std::filesystem::create_directory(from.path() + "/step");
  write_file(from.path() + "/step/a", "a");
  write_file(from.path() + "/step/b", "b");
  std::filesystem::create_directories(to.path() + "/step/b");  // in the way
  const std::vector<std::string> names = {"step/a", "step/b"};
  auto giving = std::async(std::launch::async, [&] {
    const auto store = job.join(1);
    give_files(*store, 1, names, from.path());
    store->close();
  });
  const auto store = job.join(0);
  CHECK(take_files(*store, 1, names, to.path()) ==
        fmt::format("write {}/step/b: Is a directory", to.path()));
  giving.get();
  CHECK_FALSE(std::filesystem::exists(to.path() + "/step/a"));
}

}  // namespace gxp
