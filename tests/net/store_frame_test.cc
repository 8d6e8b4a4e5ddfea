#include "lib/net/socket/frame.h"
#include "tests/catch.h"
#include "tests/error_of.h"

using namespace gxp;

TEST_CASE("frames survive the way through bytes, cut anywhere", "[net]") {
  std::string bytes;
  append_frame(bytes, {FrameType::kSet, "key", std::string("v\0lue", 5), 7, -1});
  const size_t first = bytes.size();
  append_frame(bytes, {FrameType::kGoodbye, "", "", 0, 0});
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    size_t offset = 0;
    const auto frame = take_frame(std::string_view(bytes).substr(0, cut), &offset, kMaxValueBytes);
    CHECK(frame.has_value() == (cut >= first));
    CHECK(offset == (frame ? first : 0));
    if (frame) CHECK((frame->value == std::string("v\0lue", 5) && frame->rank == -1));
  }
}

TEST_CASE("a frame beyond the limits is refused from its header alone", "[net]") {
  std::string good;
  append_frame(good, {FrameType::kSet, "k", "v", 0, 0});
  const auto refused = [&](size_t at, char value) {
    std::string bytes = good.substr(0, 15);
    bytes[at] = value;
    size_t offset = 0;
    return error_of([&] { take_frame(bytes, &offset, kMaxValueBytes); }).kind == ErrorKind::kPeer;
  };
  CHECK(refused(0, 0));     // kind
  CHECK(refused(0, 99));    // kind
  CHECK(refused(2, 2));     // key of 513 B
  CHECK(refused(6, '\1'));  // value of 16 MiB and one byte
  CHECK_FALSE(refused(0, char(FrameType::kGet)));
}

TEST_CASE("packed strings come back, and a cut list is refused", "[net]") {
  const std::vector<std::string> strings = {"", "a", std::string(300, 'b')};
  const std::string packed = pack_strings(strings);
  CHECK(unpack_strings(packed) == strings);
  CHECK(unpack_strings("").empty());
  for (const size_t cut : {size_t{1}, size_t{5}, packed.size() - 1})
    CHECK(error_of([&] { unpack_strings(packed.substr(0, cut)); }).kind == ErrorKind::kPeer);
}
