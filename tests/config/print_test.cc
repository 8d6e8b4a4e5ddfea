#include "lib/config/print.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "lib/config/rules.h"
#include "lib/config/settings.h"
#include "tests/catch.h"

namespace gxp {
namespace {

// Another valid value of every type, with what is hard to write.
Value changed(const Setting& setting, const Value& value) {
  if (const auto& words = setting.check.words; !words.empty())
    return std::string(value == Value(std::string(words.back())) ? words.front() : words.back());
  if (std::holds_alternative<bool>(value)) return !std::get<bool>(value);
  if (std::holds_alternative<int64_t>(value)) return std::get<int64_t>(value) + 1;
  if (value == Value(0.0)) return 1e-300;
  if (std::holds_alternative<double>(value)) return std::get<double>(value) * (1 - 0x1p-30);
  if (std::holds_alternative<std::string>(value)) return std::string("a \"b\"\\ \n\x7f # \xc3\xa9");
  if (std::holds_alternative<std::vector<double>>(value)) return std::vector<double>{0.7, 1e-9, 2};
  return std::vector<std::string>{"x, y", "", "[z]"};
}

RunConfig changed_config() {
  RunConfig run;
  for (const Setting& setting : settings()) setting.set(run, changed(setting, setting.get(run)));
  run.model.config = "";  // no file
  run.model.heads = 1;
  run.model.hidden = 258;  // even, as RoPE needs it
  run.model.head_size = 0;
  run.data.sequence = 1;
  run.checkpoint.keep = 3;
  // What the changed name of the optimizer has no use for, and what then has none either.
  const RunConfig defaults;
  for (auto broken = broken_rules(run); !broken.empty(); broken = broken_rules(run)) {
    for (const BrokenRule& rule : broken) {
      const auto setting = std::ranges::find(settings(), rule.setting, &Setting::name);
      setting->set(run, setting->get(defaults));
    }
  }
  return run;
}

LoadedConfig with_origins(const RunConfig& run, const Origin& origin) {
  LoadedConfig loaded{run, {}};
  for (const Setting& setting : settings()) loaded.origins[setting.name()] = origin;
  return loaded;
}

// What stands behind the values of the lines that begin so.
std::vector<std::string> comments_of(const std::string& text, const std::string& begin) {
  std::vector<std::string> comments;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(begin)) comments.push_back(line.substr(line.find('#')));
  return comments;
}

}  // namespace

TEST_CASE("a printed configuration loads again to the same values", "[config]") {
  const RunConfig run = changed_config();
  const Origin origin{Origin::Kind::kFile, "odd\n[name]", 3};
  const std::string text = print_config(with_origins(run, origin));
  CHECK(flatten(parse_config(text, "printed").run) == flatten(run));
}

TEST_CASE("each printed line names the origin of its value", "[config]") {
  const std::vector<std::string> sets = {"data.train=a", "optim.lr=1e-4"};
  const std::string text = print_config(load_config("", sets));
  CHECK(comments_of(text, "family = ") == std::vector<std::string>{"# default"});
  CHECK(comments_of(text, "lr = ") == std::vector<std::string>{"# --set"});
}

TEST_CASE("a flat configuration changes with every setting", "[config]") {
  std::set<std::vector<std::pair<std::string, std::string>>> seen = {flatten(RunConfig())};
  for (const Setting& setting : settings()) {
    RunConfig run;
    const Value value = changed(setting, setting.get(run));
    setting.set(run, value);
    CAPTURE(setting.name());
    CHECK(seen.insert(flatten(run)).second);
  }
}

TEST_CASE("a flat configuration has one row for every setting", "[config]") {
  const auto rows = flatten(RunConfig());
  REQUIRE(rows.size() == settings().size());
  CHECK(rows[0] == std::pair<std::string, std::string>("model.family", "\"gpt2\""));
  CHECK(std::ranges::count(rows, std::pair<std::string, std::string>("optim.lr", "0.0006")) == 1);
}

TEST_CASE("values are written as TOML reads them", "[config]") {
  const auto [value, text] = GENERATE(table<Value, std::string>({
      {Value(true), "true"},
      {Value(int64_t(-3)), "-3"},
      {Value(1.0), "1.0"},
      {Value(1e-5), "1e-05"},
      {Value(0.1), "0.1"},
      {Value(1e300), "1e+300"},
      {Value(std::string("a\"\\\x01")), "\"a\\\"\\\\\\u0001\""},
      {Value(std::string("\u009b\x7f\u00a0")), "\"\\u009B\\u007F\u00a0\""},
      {Value(std::vector<std::string>{}), "[]"},
      {Value(std::vector<std::string>{"a", "b"}), "[\"a\", \"b\"]"},
  }));
  CHECK(to_toml(value) == text);
}

TEST_CASE("every default is a value that the setting's own check accepts", "[config]") {
  for (const Setting& setting : settings()) {
    CAPTURE(setting.name());
    Value value = setting.get(RunConfig());
    CHECK(accept(setting, value).empty());
    CHECK(value == setting.get(RunConfig()));
  }
}

TEST_CASE("the manual explains every setting and lets roff alone", "[config]") {
  const std::string manual = settings_manual();
  for (const Setting& setting : settings()) {
    CAPTURE(setting.name());
    CHECK(manual.find(".B " + to_roff(setting.key) + "\n" + to_roff(setting.doc)) !=
          std::string::npos);
    CHECK(setting.doc.ends_with('.'));
  }
  CHECK(to_roff(".x\n'y \\ a-b.") == "\\&.x\n\\&'y \\e a\\-b.");
}

TEST_CASE("checks say in words what they allow", "[config]") {
  const auto [check, words] = GENERATE(table<Check, std::string>({
      {anything, ""},
      {positive, "positive"},
      {at_least(2), "at least 2"},
      {at_most(0.5), "at most 0.5"},
      {between(0, 1), "from 0 to 1"},
      {at_least_and_below(0, 1), "at least 0 and below 1"},
      {one_of("a", "b"), "one of: a, b"},
  }));
  CHECK(to_string(check) == words);
}

}  // namespace gxp
