#include "lib/base/text/word_aliases.h"

#include <vector>

#include "tests/catch.h"

namespace gxp {
namespace {

using Word = std::optional<std::string_view>;

}  // namespace

TEST_CASE("a word that others spell in another way is found", "[base]") {
  const std::vector<std::string_view> types = {"fp32", "bf16", "fp16"};
  const std::vector<std::string_view> strategies = {"ddp", "zero1", "zero3", "full_shard",
                                                    "hybrid_shard"};
  const auto [given, type, strategy] =
      GENERATE(table<std::string_view, Word, Word>({{"bf16", "bf16", {}},
                                                    {"bfloat16", "bf16", {}},
                                                    {"Float32", "fp32", {}},
                                                    {"half", "fp16", {}},
                                                    {"f16", "fp16", {}},
                                                    {"zero3", {}, "zero3"},
                                                    {"ZeRO-3", {}, "zero3"},
                                                    {"FULL_SHARD", {}, "full_shard"},
                                                    {"fsdp", {}, "full_shard"},
                                                    {"torch.bfloat16", "bf16", {}},
                                                    {"torch.", {}, {}},
                                                    {"stage3", {}, "zero3"},
                                                    {"hybrid", {}, "hybrid_shard"},
                                                    {"zero", {}, {}},
                                                    {"deepspeed", {}, {}},
                                                    {"int8", {}, {}},
                                                    {"", {}, {}},
                                                    {"-", {}, {}}}));
  CAPTURE(given);
  CHECK(find_word(types, given) == type);
  CHECK(find_word(strategies, given) == strategy);
}

TEST_CASE("a word that could be two is none", "[base]") {
  const std::vector<std::string_view> words = {"a-b", "a_b"};
  CHECK(find_word(words, "ab") == std::nullopt);
  CHECK(find_word(words, "a_b") == "a_b");
}

}  // namespace gxp
