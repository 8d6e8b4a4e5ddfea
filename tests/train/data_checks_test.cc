// Ranks that read other data, and a run that goes on with other data, are told so.
#include "lib/train/data_checks.h"

#include <fstream>

#include "lib/train/training_state.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

using Catch::Matchers::Contains;
using Prints = std::vector<DataFingerprint>;

DataFingerprint print(const std::string& name, uint64_t bytes, const std::string& hash) {
  return {"/a/directory/" + name, "text", bytes, bytes, hash};
}

// What each rank's check says, where rank 2 reads `other`.
std::vector<std::string> messages(const Prints& all, const Prints& other) {
  return run_ranks(4, [&](Communicator& communicator) {
    const Prints& mine = communicator.rank() == 2 ? other : all;
    return error_of([&] { check_same_data(mine, "data.valid", communicator); }).message;
  });
}

// The tokens of gpt2-tiny with one of them changed.
std::string changed_tokens(const TemporaryDirectory& directory) {
  std::string path = directory / "other.i32";
  std::filesystem::copy_file(golden_path("gpt2-tiny", "tokens.i32"), path);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const int first = file.get();
  file.seekp(0).put(char(first == 0 ? 1 : 0));
  return path;
}

}  // namespace

TEST_CASE("ranks whose files differ are named with the file, on every rank", "[train]") {
  const Prints all = {print("a.txt", 900, "aa"), print("b.txt", 800, "bb")};
  const auto [other, words] = GENERATE_COPY(table<Prints, std::string>(
      {{{all[0], print("b.txt", 700, "bb")}, "data.valid[1] is text; 700 bytes; 700 tokens; b.txt"},
       {{print("a.txt", 900, "ab"), all[1]}, "on rank 0, with other content"},
       {{all[1], all[0]}, "data.valid[0] is text; 800 bytes"},
       {{all[0]}, "data.valid has 1 files on rank 2, and 2 on rank 0"}}));
  for (const std::string& message : messages(all, other))
    CHECK_THAT(message, Contains(words) && Contains("on rank 2") && Contains("rank 0"));
}

TEST_CASE("the same files under other names are the same data", "[train]") {
  const Prints all = {print("a.txt", 900, "aa")};
  for (const std::string& message : messages(all, {print("c.txt", 900, "aa")}))
    CHECK(message == "");
}

TEST_CASE("a run goes on with other data only if told to", "[train]") {
  const TemporaryDirectory directory;
  const Settings saves = {"checkpoint.dir=" + directory.path() + "/checkpoints"};
  const auto go_on = [&](const Settings& sets, int until) {
    const RunConfig config = golden_config("gpt2-tiny", 1, saves + sets);
    return error_of([&] {
      run_ranks(1, [&](Communicator& communicator) {
        return train_part(config, communicator, until).steps.size();
      });
    });
  };
  REQUIRE(go_on({}, 1).message == "");
  const Settings other = {"data.train=" + changed_tokens(directory)};
  const Caught refused = go_on(other, 2);
  CHECK(refused.kind == ErrorKind::kConfig);
  CHECK_THAT(refused.message, Contains("data.train[0]") && Contains("other.i32") &&
                                  Contains("data.changed = \"accept\""));
  CHECK(go_on({}, 2).message == "");
  CHECK(go_on(other + Settings{"data.changed=accept"}, 3).message == "");
}

TEST_CASE("a checkpoint tells the name, the sizes and the hash of its run's data", "[train]") {
  const KeyValues state = data_state({print("a.txt", 900, "aa"), print("b; c.txt", 800, "bb")});
  CHECK(state == KeyValues{{"data.train[0]", "text; 900 bytes; 900 tokens; xxh3 aa; a.txt"},
                           {"data.train[1]", "text; 800 bytes; 800 tokens; xxh3 bb; b; c.txt"}});
}

}  // namespace gxp
