#include <algorithm>

#include "lib/arch/config_json/config_json.h"
#include "lib/arch/family.h"
#include "tests/arch/config_samples.h"
#include "tests/catch.h"

namespace gxp {
namespace {

// The fields of transformers' classes, with their defaults: huggingface_classes.py.
const Json& classes() {
  static const Json kClasses = json_in(GXP_TEST_DATA "/huggingface_classes.json");
  return kClasses;
}

// What a class makes of other fields, or of another spelling, before it can be seen.
bool is_derived(const std::string& family, const std::string& key) {
  return key == "rope_parameters" || key == "num_key_value_heads" ||
         (key == "head_dim" && class_default(family, key).is_null()) ||
         (key == "sliding_window" && family.starts_with("qwen"));
}

}  // namespace

TEST_CASE("each field of a family's class is read, or known to change nothing", "[arch]") {
  REQUIRE(classes().size() == families().size());
  for (const Family& family : families()) {
    for (const auto& [key, value] : classes().at(std::string(family.name)).items()) {
      CAPTURE(family.name, key);
      const KeyUse use = use_of_key(family.name, key);
      CHECK(use != KeyUse::kUnknown);
      if (use != KeyUse::kComputed || is_derived(std::string(family.name), key)) continue;
      CHECK(class_default(family.name, key) == value);
    }
  }
}

TEST_CASE("GPT-2's class takes the names of other classes", "[arch]") {
  CHECK(use_of_key("gpt2", "hidden_size") == KeyUse::kComputed);
  CHECK(use_of_key("gpt2", "intermediate_size") == KeyUse::kUnknown);
}

TEST_CASE("a class's own values are read as its defaults", "[arch]") {
  const Family& family = GENERATE(from_range(families()));
  CAPTURE(family.name);
  Json told = classes().at(std::string(family.name));
  const ModelReading silent = read_model({{"model_type", family.name}});
  const ModelReading full = read_model(told);
  CHECK(silent.obstacle == "");
  CHECK(full.obstacle == "");
  CHECK(full.model == silent.model);
}

TEST_CASE("each field of a class that is computed changes the model or is refused", "[arch]") {
  const Family& family = GENERATE(from_range(families()));
  const std::string name(family.name);
  const Json& told = classes().at(name);
  const ModelConfig before = read_model(told).model;
  for (const auto& [key, value] : told.items()) {
    CAPTURE(name, key);
    // With a value of another type, which no reader can take for one that it knows.
    Json changed = told;
    changed[key] = value.is_object() ? Json(3) : Json({{"odd", 1}});
    const ModelReading read = read_model(changed);
    if (use_of_key(name, key) == KeyUse::kWithoutEffect && key != "architectures" &&
        key != "model_type")
      CHECK((read.obstacle == "" && read.model == before));
    else
      CHECK_THAT(read.obstacle, Catch::Matchers::Contains(key) || Catch::Matchers::Contains("odd"));
  }
}

}  // namespace gxp
