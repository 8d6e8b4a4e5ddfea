#include "kernels/cuda/choice_cache.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "kernels/cuda/table/cuda_ops.h"
#include "lib/device/cuda_device.h"
#include "tests/catch.h"
#include "tests/cuda/on_device.h"
#include "tests/kernels/backends.h"

namespace gxp {
namespace {

// A folder of this test's own, gone with it.
struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / fmt::format("gxp-{}", ::getpid())) {}
  ~Folder() { std::filesystem::remove_all(path); }
  [[nodiscard]] std::string file() const { return (path / "deep" / "gemm").string(); }
  std::filesystem::path path;
};

CachedChoice algorithm(uint64_t word) { return {word, 0, ~uint64_t{0}, 3, 4, 5, 6, 7}; }

TEST_CASE("what was timed once is read by later runs and other ranks") {
  const Folder folder;
  const auto never = []() -> CachedChoice { throw std::logic_error("timed again"); };
  ChoiceCache first(folder.file());
  ChoiceCache second(folder.file());
  CHECK(first.choose("a: 1", [] { return algorithm(1); }) == algorithm(1));
  CHECK(second.choose("b", [] { return algorithm(2); }) == algorithm(2));
  CHECK(first.choose("b", never) == algorithm(2));
  CHECK(second.choose("a: 1", never) == algorithm(1));
  CHECK(ChoiceCache(folder.file()).choose("a: 1", never) == algorithm(1));
}

TEST_CASE("what a cache knows can be asked without timing") {
  const Folder folder;
  ChoiceCache cache(folder.file());
  CHECK_FALSE(cache.find("a").has_value());
  ChoiceCache(folder.file()).choose("a", [] { return algorithm(1); });
  CHECK(cache.find("a") == algorithm(1));
}

TEST_CASE("of several ranks that need an algorithm one times it") {
  const Folder folder;
  std::atomic<int> timed = 0;
  std::array<CachedChoice, 4> found{};
  {
    std::vector<std::jthread> ranks;
    for (size_t rank = 0; rank < found.size(); ++rank)
      ranks.emplace_back([&, rank] {
        ChoiceCache cache(folder.file());
        const auto time = [&] {
          ++timed;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          return algorithm(rank);
        };
        found[rank] = cache.choose("key", time).value();
      });
  }
  CHECK(timed == 1);
  for (const CachedChoice& one : found) CHECK(one == found[0]);
}

TEST_CASE("products are right when their algorithms are timed, and the same when they are read") {
  const Folder folder;
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("compute");
  const Floats a = random_floats(12, 1), b = random_floats(20, 2);
  const auto multiply = [&](const std::string& cache) {
    auto ops = make_ops_on_device(make_cuda_ops(*stream, *device, {cache}), *stream, *device);
    Floats out = random_floats(15, 3);
    ops->matmul(tensor_of(out, {3, 5}), tensor_of(a, {3, 4}), tensor_of(b, {4, 5}),
                {.accumulate = true});
    return out;
  };
  const Floats untimed = multiply("");
  CHECK_FALSE(std::filesystem::exists(folder.file()));
  const Floats timed = multiply(folder.file());
  CHECK(std::filesystem::exists(folder.file()));
  CHECK(multiply(folder.file()) == timed);
  // Another algorithm may add the four terms in another order.
  for (size_t i = 0; i < timed.size(); ++i)
    CHECK(timed[i] == Approx(untimed[i]).epsilon(0).margin(0x1p-20));
}

TEST_CASE("broken lines of a cache are skipped, and a line that was cut off is ended") {
  const Folder folder;
  ChoiceCache(folder.file()).choose("a", [] { return algorithm(1); });
  std::ofstream file(folder.file(), std::ios::app);
  file << "b: 1 2 3\nno words\n\n" << GENERATE("c", "c: 0123", "c:") << std::flush;
  CHECK(ChoiceCache(folder.file()).choose("b", [] { return algorithm(2); }) == algorithm(2));
  ChoiceCache cache(folder.file());
  CHECK(cache.find("a") == algorithm(1));
  CHECK(cache.find("b") == algorithm(2));
  CHECK_FALSE(cache.find("c").has_value());
}

TEST_CASE("a word that was cut off is not taken for a shorter one") {
  const Folder folder;
  ChoiceCache(folder.file()).choose("a", [] { return algorithm(1); });
  std::filesystem::resize_file(folder.file(), std::filesystem::file_size(folder.file()) - 2);
  CHECK_FALSE(ChoiceCache(folder.file()).find("a").has_value());
}

TEST_CASE("a trial that found nothing is not written") {
  const Folder folder;
  ChoiceCache cache(folder.file());
  CHECK_FALSE(cache.choose("a", []() -> std::optional<CachedChoice> { return {}; }).has_value());
  CHECK_FALSE(ChoiceCache(folder.file()).find("a").has_value());
}

TEST_CASE("a cache's folder that cannot be made is told") {
  const Folder folder;
  const ChoiceCache cache(folder.file());
  std::ofstream(folder.file()) << "a file";
  CHECK_THROWS_WITH(ChoiceCache(folder.file() + "/gemm"), Catch::Contains("train.gemm_cache"));
}

TEST_CASE("a user's caches lie where the environment says") {
  CHECK(user_cache_folder({{"XDG_CACHE_HOME", "/c"}, {"HOME", "/h"}}) == "/c/gxp");
  CHECK(user_cache_folder({{"HOME", "/h"}}) == "/h/.cache/gxp");
  CHECK(user_cache_folder({}).empty());
}

}  // namespace
}  // namespace gxp
