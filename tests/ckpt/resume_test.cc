// Conversions that go on where an earlier attempt was interrupted.
#include <array>
#include <filesystem>

#include "lib/ckpt/finished_files.h"
#include "lib/ckpt/format.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSourceTensors = 4;

// Tensors "t0" to "t3", of a page each; reading one counts, and fails from the `broken`th on.
struct CountedSource {
  std::array<int, kSourceTensors> reads = {};
  size_t broken = kSourceTensors;

  NamedTensors tensors() {
    NamedTensors result;
    for (size_t i = 0; i < kSourceTensors; ++i) {
      NamedTensor tensor = counting_tensor(fmt::format("t{}", i), {1024}, float(i));
      tensor.read = [this, i, read = tensor.read](uint64_t begin, Memory out) {
        if (i >= broken) fail(ErrorKind::kIo, "the source breaks off");
        ++reads[i];
        read(begin, out);
      };
      result.tensors.push_back(std::move(tensor));
    }
    return result;
  }
};

// A conversion to DIR/out, one tensor a file, that breaks off at the third.
struct Interrupted {
  explicit Interrupted(std::string to) : format(std::move(to)) {
    source.broken = 2;
    CHECK(attempt("one").kind == ErrorKind::kIo);
    source = {};
  }

  Caught attempt(const std::string& conversion, bool resume = true) {
    return error_of([&] {
      write_checkpoint(source.tensors(), find_format(format), dir / "out",
                       {.shards = kSourceTensors, .resume = resume, .conversion = conversion});
    });
  }
  [[nodiscard]] std::string finished_file() const {
    const bool native = format == "gxp";
    return dir / (native ? ".partial-out/.step-00000000.partial/shard-00000-of-00004.bin"
                         : ".partial-out/model-00001-of-00004.safetensors");
  }
  void check_complete() {
    CHECK(digests(read_checkpoint(dir / "out")) == digests(CountedSource().tensors()));
    CHECK(list(dir.path()) == std::vector<std::string>{"out"});
    for (const std::string& name : list(dir / "out")) CHECK(name != kFinishedFiles);
  }

  std::string format;
  TemporaryDirectory dir;
  CountedSource source;
};

}  // namespace

TEST_CASE("a conversion goes on with the files that are missing", "[ckpt]") {
  Interrupted conversion(GENERATE("safetensors", "gxp"));
  REQUIRE(fs::exists(conversion.finished_file()));
  CHECK_FALSE(conversion.attempt("one").kind);
  conversion.check_complete();
  CHECK(conversion.source.reads == std::array<int, kSourceTensors>{0, 0, 1, 1});
}

TEST_CASE("another conversion, or one that is not to go on, begins again", "[ckpt]") {
  Interrupted conversion("safetensors");
  const auto [name, resume] = GENERATE(table<std::string, bool>({{"two", true}, {"one", false}}));
  CHECK_FALSE(conversion.attempt(name, resume).kind);
  conversion.check_complete();
  CHECK(conversion.source.reads == std::array<int, kSourceTensors>{1, 1, 1, 1});
}

TEST_CASE("a file that has changed since it was whole is written again", "[ckpt]") {
  Interrupted conversion("safetensors");
  std::string bytes = read_bytes(conversion.finished_file());
  bytes.back() ^= 1;
  write_bytes(conversion.finished_file(), bytes);
  CHECK_FALSE(conversion.attempt("one").kind);
  conversion.check_complete();
  CHECK(conversion.source.reads == std::array<int, kSourceTensors>{1, 0, 1, 1});
}

TEST_CASE("a torn record and a strange one only cost time", "[ckpt]") {
  Interrupted conversion("safetensors");
  const std::string record = conversion.dir / ".partial-out/.finished";
  const std::string whole = read_bytes(record);
  const std::string changed = GENERATE_COPY(whole.substr(0, whole.size() - 3),
                                            "one\nx y z\n\n1 2\n", "one\n", std::string());
  write_bytes(record, changed);
  CHECK_FALSE(conversion.attempt("one").kind);
  conversion.check_complete();
}

}  // namespace gxp
