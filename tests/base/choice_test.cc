#include "lib/base/choice.h"

#include "tests/catch.h"

namespace gxp {
namespace {

enum class Colour { kRed, kGreen };
constexpr std::array<std::string_view, 2> words_of(Colour) { return {"red", "green"}; }

}  // namespace

TEST_CASE("a choice is read and written as its word", "[base]") {
  Choice<Colour> colour = Colour::kRed;
  CHECK(fmt::format("{:>5}", colour) == "  red");
  colour = std::string("green");
  CHECK(colour == Colour::kGreen);
  CHECK(std::string(colour) == "green");
}

}  // namespace gxp
