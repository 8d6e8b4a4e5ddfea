#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/job/failure/explain_failure.h"
#include "lib/job/failure/source_lines.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

// A thread that is `at_work` in its own way until it is told to stop.
struct Worker {
  std::atomic<bool> runs{false}, stops{false};

  [[gnu::noinline]] void compute() {
    runs = true;
    while (!stops) continue;
  }
  [[gnu::noinline]] void read(int pipe) {
    runs = true;
    char byte = 0;
    (void)!::read(pipe, &byte, 1);
    runs = false;  // so that this is no tail call
  }
};

const ThreadStack* stack_of(const std::vector<ThreadStack>& stacks, std::string_view name) {
  const auto found = std::ranges::find(stacks, name, &ThreadStack::name);
  return found == stacks.end() ? nullptr : &*found;
}

// Whether the stack has a function of this name.
bool is_in(const ThreadStack& stack, const std::string& function, const SourceLines& lines) {
  return std::ranges::any_of(stack.frames, [&](const StackFrame& frame) {
    return frame.module.empty() && lines.find(frame.offset).function == function;
  });
}

RankFailure some_failure(int rank) {
  RankFailure failure{.rank = rank, .world_size = 3, .host = "a", .process = 12};
  failure.error = "rank 1: it hangs";
  failure.verdict = FailureVerdict{1, "it hangs"};
  failure.step = 7;
  failure.activity = "compute";
  failure.metrics = R"({"step":6,"loss":2.5})";
  failure.environment = {{"RANK", "1"}};
  failure.threads = {{5, "main", "S", {{"", 4096, "f"}, {"libc.so.6", 77, "pread"}}}};
  return failure;
}

}  // namespace

TEST_CASE("threads that compute or wait tell where they are", "[job]") {
  Worker computing, reading;
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  std::vector<ThreadStack> stacks;
  {
    std::jthread computer([&] {
      pthread_setname_np(pthread_self(), "computer");
      computing.compute();
    });
    std::jthread reader([&] {
      pthread_setname_np(pthread_self(), "reader");
      reading.read(pipe[0]);
    });
    while (!computing.runs || !reading.runs) std::this_thread::yield();
    stacks = capture_stacks();
    computing.stops = true;
    ::close(pipe[1]);
  }
  ::close(pipe[0]);
  const SourceLines lines;
  const ThreadStack *computer = stack_of(stacks, "computer"), *reader = stack_of(stacks, "reader");
  REQUIRE((computer != nullptr && reader != nullptr));
  CHECK(stacks[0].thread == ::getpid());
  CHECK(is_in(*computer, "gxp::Worker::compute", lines));
  CHECK(is_in(*reader, "gxp::Worker::read", lines));
  // Tests have no debug information; the library has.
  const auto is_capture = [&](const StackFrame& frame) {
    const SourceLine line = frame.module.empty() ? lines.find(frame.offset) : SourceLine{};
    return line.is_own && line.line > 0 && line.file == "lib/job/failure/thread_stacks.cc";
  };
  CHECK(std::ranges::any_of(stacks[0].frames, is_capture));
  CHECK(lines.find(UINT64_MAX).file.empty());
  CHECK(build_id().size() >= 16);
}

TEST_CASE("what a rank writes of a failure is what is read", "[job]") {
  const TemporaryDirectory top;
  const std::string directory = top / "failure";
  for (const int rank : {2, 0, 2}) write_failure(directory, some_failure(rank));
  std::ofstream(directory + "/notes.json") << "the user's own";
  const std::vector<RankFailure> failures = read_failures(directory);
  REQUIRE(failures.size() == 2);
  CHECK((failures[0].rank == 0 && failures[1].rank == 2));
  CHECK((failures[1].verdict->reason == "it hangs" && failures[1].environment.at("RANK") == "1"));
  CHECK(failures[0].threads[0].frames[1].offset == 77);
  CHECK_FALSE(flight_of(failures[0]).has_value());
  const std::string text = to_text(explain_failure(failures, true));
  CHECK(contains(text, "to blame: rank: 1"));
  CHECK(contains(text, "last loss: 2.5"));
  for (int i = 0; i < 2; ++i) put_failure_aside(directory);
  CHECK(read_failures(directory + ".old").size() == 2);
  CHECK(std::filesystem::exists(directory + "/notes.json"));
}

TEST_CASE("only variables that may be told are shown", "[job]") {
  const Environment environment = {
      {"RANK", "1"},          {"GXP_RANK", "1"},      {"GXP_JOB_SECRET", "x"},
      {"HOME", "x"},          {"NCCL_DEBUG", "INFO"}, {"GXP_JOB_SECRET_FILE", "x"},
      {"WANDB_API_KEY", "x"}, {"NCCL_TOKEN", "x"},    {"GXP_passphrase", "x"},
      {"SLURM_JOB_ID", "1"},  {"SLURM_JWT", "x"},     {"CUDA_AUTH", "x"}};
  std::string names;
  for (const auto& [name, _] : shown_environment(environment)) names += name + " ";
  CHECK(names == "GXP_RANK NCCL_DEBUG RANK SLURM_JOB_ID ");
}

TEST_CASE("no change of bytes makes a report that cannot be explained", "[job]") {
  const TemporaryDirectory top;
  const std::string directory = top / "failure", path = directory + "/rank-1.json";
  write_failure(directory, some_failure(1));
  std::string good(std::filesystem::file_size(path), ' ');
  std::ifstream(path).read(good.data(), std::streamsize(good.size()));
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string bytes = good;
    for (int change = 0; change < 3; ++change) bytes[random() % bytes.size()] = char(random());
    if (i % 10 == 0) bytes.resize(random() % bytes.size());
    std::ofstream(path, std::ios::binary) << bytes;
    const Caught caught =
        error_of([&] { (void)to_json(explain_failure(read_failures(directory), true)); });
    CHECK((caught.message.empty() || caught.kind == ErrorKind::kCorrupt));
  }
}

}  // namespace gxp
