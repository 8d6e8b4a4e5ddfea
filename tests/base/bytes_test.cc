#include "lib/base/bytes.h"

#include <utility>

#include "tests/catch.h"

namespace gxp {

TEST_CASE("byte counts are written with binary units and four digits", "[base]") {
  const auto [bytes, text] =
      GENERATE(table<uint64_t, std::string>({{0, "0 B"},
                                             {512, "512 B"},
                                             {1536, "1.5 KiB"},
                                             {64u << 20, "64 MiB"},
                                             {13ull << 28, "3.25 GiB"},
                                             {1ull << 60, "1.049e+06 TiB"}}));
  CHECK(format_bytes(bytes) == text);
}

TEST_CASE("byte counts are read with binary and decimal units", "[base]") {
  const auto [text, bytes] =
      GENERATE(table<std::string, uint64_t>({{"0", 0},
                                             {"64", 64},
                                             {"7b", 7},
                                             {"64K", 65536},
                                             {"64kib", 65536},
                                             {"64KB", 64000},
                                             {"1M", 1u << 20},
                                             {"2GB", 2000000000},
                                             {"3TiB", 3ull << 40},
                                             {"6.9G", 7408818585},
                                             {"6.9GiB", 7408818585},
                                             {"1.5M", 3u << 19},
                                             {".5G", 1u << 29},
                                             {"0.5k", 512},
                                             {"1.25MB", 1250000},
                                             {"2.0", 2},
                                             {"0.33333333333333333333T", 366503875925}}));
  CAPTURE(text);
  CHECK(parse_bytes(text) == bytes);
}

TEST_CASE("what is no byte count gives nothing", "[base]") {
  const std::string text =
      GENERATE("", "K", ".", ".K", "5.", "5.K", "1.5", "1.5B", "1.2.3K", "-1", "-.5K", "1X",
               "1KiBB", "1 K", "18446744073709551616", "16777216T");
  CAPTURE(text);
  CHECK_FALSE(parse_bytes(text).has_value());
}

TEST_CASE("rounding up gives the next multiple", "[base]") {
  CHECK(round_up(0, 8) == 0);
  CHECK(round_up(1, 8) == 8);
  CHECK(round_up(8, 8) == 8);
  CHECK(round_up(9, 1) == 9);
}

}  // namespace gxp
