#include "lib/topo/model/cpu_set.h"

#include "tests/catch.h"

namespace gxp {
namespace {

TEST_CASE("a map of CPUs and a list of them are the same set", "[topo]") {
  struct Row {
    const char *map, *list, *normal;
  };
  const auto row =
      GENERATE(Row{"ff,00000001", "0,32-39", "000000ff,00000001"},
               Row{"0x00000303,,0x0000000f", "0-3,64-65,72-73", "00000303,00000000,0000000f"},
               Row{"0", "", "00000000"}, Row{"80000000", "31", "80000000"});
  CAPTURE(row.map);
  const auto set = CpuSet::parse_map(row.map);
  REQUIRE(set);
  CHECK(set->to_list() == row.list);
  CHECK(set->to_map() == row.normal);
  CHECK(CpuSet::parse_list(row.list)->cpus() == set->cpus());
  CHECK(set->within(*set));
}

TEST_CASE("what is no set of CPUs has no value", "[topo]") {
  for (const char* const text : {"", "x", "1,fffffffff"}) CHECK_FALSE(CpuSet::parse_map(text));
  for (const char* const text : {"3-1", "a", "1,", "99999999", "-1"})
    CHECK_FALSE(CpuSet::parse_list(text));
}

}  // namespace
}  // namespace gxp
