#include "lib/report/report.h"

#include <cmath>

#include "lib/base/error.h"
#include "tests/catch.h"

namespace gxp {
namespace {

Report sample() {
  Report report{.schema = "gxp.sample/1"};
  report.facts = {{{"step"}, int64_t(7)},
                  {{"weights_bytes", "weights", Style::kBytes}, int64_t(2048)}};
  Table& table = report.add_table(
      "results", {{"name"}, {"size", "", Style::kBytes}, {"out.time_us", "time (us)"}, {"shape"}});
  table.add_row({"a, \"b\"", int64_t(1536), 12.5, std::vector<int64_t>{2, 3}});
  table.add_row({"\u00e9", int64_t(0), NAN, {}});
  return report;
}

}  // namespace

TEST_CASE("text aligns strings left and numbers right, under short headings", "[report]") {
  CHECK(to_text(sample()) ==
        "step: 7\n"
        "weights: 2 KiB\n"
        "\n"
        "name       size  time (us)   shape\n"
        "a, \"b\"  1.5 KiB       12.5  [2, 3]\n"
        "\u00e9           0 B        nan\n");
}

TEST_CASE("a column in one unit shows that unit's numbers, and programs bytes", "[report]") {
  Report report{.schema = "s"};
  Table& table = report.add_table("t", {{"a", "GB", Style::kGB},
                                        {"b", "GiB", Style::kGiB},
                                        {"c", "MB", Style::kMB},
                                        {"d", "MiB", Style::kMiB}});
  constexpr int64_t kBytes = 3'221'225'472;
  table.add_row({kBytes, kBytes, kBytes, kBytes});
  CHECK(to_text(report) ==
        "  GB   GiB       MB      MiB\n"
        "3.22  3.00  3221.23  3072.00\n");
  CHECK(contains(to_csv(report), "3221225472,3221225472"));
}

TEST_CASE("CSV keeps every digit and quotes what needs it", "[report]") {
  CHECK(to_csv(sample()) ==
        "key,value\n"
        "step,7\n"
        "weights_bytes,2048\n"
        "\n"
        "name,size,out.time_us,shape\n"
        "\"a, \"\"b\"\"\",1536,12.5,\"[2, 3]\"\n"
        "\u00e9,0,nan,\n");
}

TEST_CASE("JSON is one object with the schema, the facts and the rows", "[report]") {
  std::string json = to_json(sample());
  std::erase_if(json, [](char c) { return c == '\n' || c == ' '; });
  CHECK(json ==
        "{\"schema\":\"gxp.sample/1\",\"step\":7,\"weights_bytes\":2048,\"results\":["
        "{\"name\":\"a,\\\"b\\\"\",\"size\":1536,\"out\":{\"time_us\":12.5},\"shape\":[2,3]},"
        "{\"name\":\"\u00e9\",\"size\":0,\"out\":{\"time_us\":null},\"shape\":null}]}");
}

TEST_CASE("a table without rows keeps its place in every format", "[report]") {
  Report report{.schema = "s"};
  report.add_table("results", {{"a"}, {"b"}});
  CHECK(to_text(report) == "a  b\n");
  CHECK(to_csv(report) == "a,b\n");
  CHECK(to_json(report) == "{\n  \"schema\": \"s\",\n  \"results\": []\n}\n");
  report.tables[0].when_empty = "nothing fits";
  CHECK(to_text(report) == "nothing fits\n");
  CHECK(to_csv(report) == "a,b\n");
}

TEST_CASE("text leaves out a fact that says nothing; programs get a null", "[report]") {
  Report report{.schema = "s"};
  report.facts = {{{"loss"}, {}}, {{"step"}, int64_t(7)}};
  CHECK(to_text(report) == "step: 7\n");
  CHECK(contains(to_csv(report), "loss,\n"));
  CHECK(contains(to_json(report), "\"loss\": null"));
}

TEST_CASE("text that is not UTF-8 does not stop JSON", "[report]") {
  Report report{.schema = "s"};
  report.add_table("results", {{"path"}}).add_row({std::string("\xff")});
  CHECK_THAT(to_json(report), Catch::Matchers::Contains("\"path\": \"\uFFFD\""));
}

TEST_CASE("text of files is shown, not obeyed, in every format", "[report]") {
  Report report{.schema = "s"};
  report.facts = {{{"path"}, std::string("a\x1b[31m\n")}};
  report.add_table("results", {{"name"}}).add_row({std::string("\u009b\x7f\xff \u00e9")});
  CHECK(to_text(report) == "path: a\\x1b[31m\\x0a\n\nname\n\\xc2\\x9b\\x7f\\xff \u00e9\n");
  CHECK(contains(to_csv(report), "path,\"a\\x1b[31m\n\"\n"));
  CHECK(contains(to_csv(report), "\\xc2\\x9b\\x7f\\xff \u00e9\n"));
  CHECK(contains(to_json(report), R"("a\u001b[31m\n")"));
  CHECK(contains(to_json(report), "\"\\u009b\\u007f\uFFFD \u00e9\""));
}

TEST_CASE("a text of several lines is printed as such where its fact says so", "[report]") {
  const std::string lines = "one\n\ttwo\x1b[2J";
  const Report report{.schema = "a/1",
                      .facts = {{{"name"}, lines}, {{"said", "said", Style::kLines}, lines}}};
  CHECK(to_text(report) == "name: one\\x0a\\x09two\\x1b[2J\nsaid: one\n\ttwo\\x1b[2J\n");
}

TEST_CASE("a row with a cell too few is our bug", "[report]") {
  Report report{.schema = "s"};
  CHECK_THROWS_AS(report.add_table("results", {{"a"}, {"b"}}).add_row({int64_t(1)}), Error);
}

}  // namespace gxp
