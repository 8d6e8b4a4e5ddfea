// A clean topology, and every rule's defect planted into it.
#include "lib/tools/topology/check/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/base/text_file.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"

namespace gxp {
namespace {

constexpr std::string_view kLink = R"( link_speed="32.0 GT/s PCIe" link_width="16")";

std::string nvlinks_of(int gpu) {
  std::string links;
  for (int peer = 0; peer < 4; ++peer) {
    if (peer != gpu)
      links += fmt::format(
          "          <nvlink target=\"0000:{}1:00.0\" count=\"2\" tclass=\"0x030200\"/>\n",
          peer + 1);
  }
  return links;
}

// Two NUMA nodes of two switches with a GPU and a NIC each; all GPUs joined.
std::string clean_file() {
  std::string text = "<system version=\"1\">\n";
  for (int n = 0; n < 4; ++n) {
    if (n % 2 == 0) {
      text += fmt::format(
          "  <cpu numaid=\"{}\" affinity=\"{}\" arch=\"x86_64\" vendor=\"GenuineIntel\" "
          "familyid=\"6\" modelid=\"143\">\n",
          n / 2, n == 0 ? "00000000,ffffffff" : "ffffffff,00000000");
    }
    text += fmt::format(
        "    <pci busid=\"0000:{0}0:00.0\" class=\"0x060400\" vendor=\"0x15b3\" "
        "device=\"0x1979\"{2}>\n"
        "      <pci busid=\"0000:{0}1:00.0\" class=\"0x030200\" vendor=\"0x10de\" "
        "device=\"0x2330\"{2}>\n"
        "        <gpu dev=\"{1}\" sm=\"90\" rank=\"{1}\" gdr=\"1\">\n{3}        </gpu>\n      "
        "</pci>\n"
        "      <pci busid=\"0000:{0}2:00.0\" class=\"0x020700\" vendor=\"0x15b3\" "
        "device=\"0x1021\"{2}>\n"
        "        <nic>\n          <net name=\"mlx5_{1}\" dev=\"{1}\" speed=\"400000\" port=\"1\" "
        "guid=\"0x{0}5\" maxconn=\"131072\" gdr=\"1\"/>\n        </nic>\n      </pci>\n    "
        "</pci>\n",
        n + 1, n, kLink, nvlinks_of(n));
    if (n % 2 == 1) text += "  </cpu>\n";
  }
  return text + "</system>\n";
}

// After `in`, the first `find` becomes `replace`; then the rule speaks at `at`, and of the others
// no more than `also`.
struct Planted {
  std::string rule;
  std::string at;
  std::string in;
  std::string find;
  std::string replace;
  std::set<std::string> also{};
};

const std::string kCpu = "<cpu numaid=\"0\"";
const std::string kSwitch = "<pci busid=\"0000:10:00.0\"";
const std::string kGpu = "<pci busid=\"0000:11:00.0\"";
const std::string kNic = "<pci busid=\"0000:12:00.0\"";
const std::string kNet = "<net name=\"mlx5_0\"";
const std::string kToGpu1 = "<nvlink target=\"0000:21:00.0\"";

std::string many(std::string_view element, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += fmt::format(fmt::runtime(element), 0x4000 + i, kLink);
  return text;
}

const std::vector<Planted>& corpus() {
  const std::string another = R"(<pci busid="{:x}:00:00.0" class="0x010802"{}/>)";
  const std::string second_gpu =
      fmt::format(R"(<pci busid="0000:13:00.0" class="0x030200"{}/>)", kLink);
  const std::string lower =
      R"(<pci busid="0000:0f:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="{}"{}>{}</pci>)";
  const auto broadcom = [&](std::string_view upper_id, std::string_view lower_id) {
    return fmt::format(
        fmt::runtime(lower), upper_id, kLink,
        fmt::format(
            R"(<pci busid="0000:0e:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="{}"{}/>)",
            lower_id, kLink));
  };
  static const std::vector<Planted> kCorpus = {
      {"unreadable", "</system>", "", "</system>", "", {"nothing"}},
      {"unreadable", kGpu, kGpu, "link_width=\"16\"", "link_width=\"many\""},
      {"unreadable", kGpu, kGpu, "busid=\"0000:11:00.0\"", "busid=\"\""},
      {"unreadable", "<system", "", "version=\"1\"", "version=\"7\""},
      {"unreadable", "<c2c", kToGpu1, "<nvlink", "<c2c count=\"1\"/><nvlink"},
      {"unreadable", "<net name=\"mlx5_0\"", kNet, "speed=\"400000\"", "speed=\"fast\""},
      {"not-an-element", "<?xml", "", "<system", "<?xml version=\"1.0\"?>\n<system"},
      {"text-between-elements", "\t<pci", kSwitch, "<pci busid=\"0000:11",
       "\t<pci busid=\"0000:11"},
      {"text-between-elements",
       "hello",
       kSwitch,
       "<pci busid=\"0000:11",
       "hello <pci busid=\"0000:11",
       {"unknown-element"}},
      {"broken-tag", kGpu, kGpu, " class", "\nclass"},
      {"broken-tag", "</pci\n>", kGpu, "</pci>", "</pci\n><!-- </pci\n> -->"},
      {"too-many-elements", "<pci busid=\"40f4:00:00.0\"", kSwitch, "</pci>\n    </pci>",
       "</pci>" + many(another, 250) + "\n    </pci>"},
      {"too-many-children",
       "<pci busid=\"427e:00:00.0\"",
       kSwitch,
       "</pci>\n    </pci>",
       "</pci>" + many(another, 640) + "\n    </pci>",
       {"too-many-elements"}},
      {"too-many-attributes",
       kGpu,
       kGpu,
       " class",
       " a=\"\" b=\"\" c=\"\" d=\"\" e=\"\" f=\"\" g=\"\" h=\"\" i=\"\" j=\"\" k=\"\" class",
       {"unknown-attribute"}},
      {"long-value", kNet, kNet, "name=\"mlx5_0\"",
       "name=\"mlx5_0\" rail=\"" + std::string(254, '1') + "\""},
      {"unknown-attribute", kGpu, kGpu, "class", "colour=\"green\" class"},
      {"unknown-element", kGpu, kGpu, "<gpu", "<fan/><gpu"},
      {"numa-id-missing", "<cpu affinity", kCpu, "<cpu numaid=\"0\" ", "<cpu "},
      {"numa-id-twice", "<cpu numaid=\"0\" affinity=\"ffffffff,0", kCpu, "numaid=\"1\"",
       "numaid=\"0\""},
      {"affinity-empty", kCpu, kCpu, "ffffffff", "00000000"},
      {"affinity-empty", kCpu, kCpu, " affinity=\"00000000,ffffffff\"", ""},
      {"affinity-overlap", "<cpu numaid=\"1\"", "<cpu numaid=\"1\"", "00000000\"", "00000001\""},
      {"cpu-unknown", kCpu, kCpu, " arch=\"x86_64\"", ""},
      {"cpu-unknown", kCpu, kCpu, " modelid=\"143\"", ""},
      {"cpu-unknown", kCpu, kCpu, "GenuineIntel", "GenuineIntle"},
      {"bus-id-malformed", "<pci busid=\"0000:1z:00.0\"", kNic, "0000:12:00.0", "0000:1z:00.0"},
      {"bus-id-malformed", "<pci busid=\"12:00.0\"", kNic, "0000:12:00.0", "12:00.0"},
      {"bus-id-twice", "<pci busid=\"0000:12:00.0\" class=\"0x060400\"", kNic, "0000:20:00.0",
       "0000:12:00.0"},
      {"bus-id-of-none", "<pci busid=\"ffff:ff:01.0\"", kSwitch, "0000:10:00.0", "ffff:ff:01.0"},
      {"class-missing", kNic, kNic, " class=\"0x020700\"", ""},
      {"class-unknown", "<pci busid=\"0000:13:00.0\"", kGpu, "<pci",
       fmt::format("<pci busid=\"0000:13:00.0\" class=\"0xff0000\"{}/><pci", kLink)},
      {"class-contradicts", kGpu, kGpu, "0x030200", "0x020000"},
      {"class-contradicts", kNic, kNic, "0x020700", "0x030000"},
      {"class-hides-devices", kSwitch, kSwitch, "0x060400", "0x020000"},
      {"broadcom-flattened", "<pci busid=\"0000:0e:00.0\"", kCpu, "<pci",
       broadcom("0x0072", "0x1003") + "<pci"},
      {"broadcom-not-flattened", "<pci busid=\"0000:0e:00.0\"", kCpu, "<pci",
       broadcom("0x100b", "0x100b") + "<pci"},
      {"speed-misread", kGpu, kGpu, "32.0 GT/s PCIe", "32.0 GT/s"},
      {"speed-misread", kGpu, kGpu, "32.0 GT/s PCIe", "Unknown"},
      {"speed-missing", kNic, kNic, "32.0 GT/s PCIe", ""},
      {"width-missing", kNic, kNic, " link_width=\"16\"", ""},
      {"width-missing", kNic, kNic, "link_width=\"16\"", "link_width=\"0\""},
      {"width-unknown", kNic, kNic, "link_width=\"16\"", "link_width=\"255\""},
      {"link-below-siblings", kGpu, kGpu, "link_width=\"16\"", "link_width=\"8\""},
      {"link-below-siblings", kNic, kNic, "32.0 GT/s PCIe", "16.0 GT/s PCIe"},
      {"uplink-slower", kSwitch, kSwitch, "32.0 GT/s PCIe\" link_width=\"16",
       "2.5 GT/s PCIe\" link_width=\"1"},
      {"uplink-shared",
       kSwitch,
       kSwitch,
       "<pci busid=\"0000:12",
       second_gpu + "<pci busid=\"0000:12",
       {"nvlink-fewer"}},
      {"gpu-rank-missing", kGpu, kGpu, " rank=\"0\"", ""},
      {"gpu-rank-missing", kGpu, kGpu, "rank=\"0\"", "rank=\"-1\""},
      {"gpu-rank-twice", "<pci busid=\"0000:21:00.0\"", kGpu, "rank=\"1\"", "rank=\"0\""},
      {"gpu-dev-missing", kGpu, kGpu, "<gpu dev=\"0\"", "<gpu"},
      {"gpu-dev-twice", "<pci busid=\"0000:21:00.0\"", kGpu, "<gpu dev=\"1\"", "<gpu dev=\"0\""},
      {"gpu-sm-unknown", kGpu, kGpu, " sm=\"90\"", ""},
      {"gpu-sm-unknown", kGpu, kGpu, "sm=\"90\"", "sm=\"9\""},
      {"gpu-gdr-differs", kGpu, kGpu, "gdr=\"1\"", "gdr=\"0\""},
      {"net-dev-missing", kNet, kNet, " dev=\"0\"", ""},
      {"net-dev-twice", "<net name=\"mlx5_1\"", kNet, "name=\"mlx5_1\" dev=\"1\"",
       "name=\"mlx5_1\" dev=\"0\""},
      {"net-speed-missing", kNet, kNet, "speed=\"400000\"", "speed=\"-1\""},
      {"net-port-twice", "<net name=\"mlx5_9\"", kNet, "<net",
       "<net name=\"mlx5_8\" dev=\"8\" speed=\"400000\" port=\"1\" guid=\"0x77\"/>"
       "<net name=\"mlx5_9\" dev=\"9\" speed=\"400000\" port=\"1\" guid=\"0x77\"/><net"},
      {"nvlink-to-itself",
       "<nvlink target=\"0000:11:00.0\"",
       kToGpu1,
       "0000:21",
       "0000:11",
       {"nvlink-one-way"}},
      {"nvlink-to-nothing",
       "<nvlink target=\"0000:77:00.0\"",
       kToGpu1,
       "0000:21",
       "0000:77",
       {"nvlink-one-way"}},
      {"nvlink-class-missing", kToGpu1, kToGpu1, " tclass=\"0x030200\"", ""},
      {"nvlink-one-way",
       "<nvlink target=\"0000:11:00.0\"",
       kToGpu1,
       "<nvlink target=\"0000:21:00.0\" count=\"2\" tclass=\"0x030200\"/>",
       "",
       {"nvlink-fewer"}},
      {"nvlink-counts-differ", kToGpu1, kToGpu1, "count=\"2\"", "count=\"1\"", {"nvlink-fewer"}},
      {"nvlink-fewer",
       "<pci busid=\"0000:13:00.0\"",
       kGpu,
       "<pci busid=\"0000:12",
       second_gpu + "<pci busid=\"0000:12",
       {"uplink-shared"}},
  };
  return kCorpus;
}

std::string planted(const Planted& defect) {
  std::string text = clean_file();
  const size_t in = text.find(defect.in);
  const size_t at = text.find(defect.find, in);
  REQUIRE(at != std::string::npos);
  return text.replace(at, defect.find.size(), defect.replace);
}

SourceLocation place_of(const std::string& text, const std::string& what) {
  const size_t at = text.find(what);
  if (at == std::string::npos) return {};
  const std::string before = text.substr(0, at);
  const size_t line_end = before.rfind('\n');
  return {.line = int(std::ranges::count(before, '\n')) + 1,
          .column = int(at - (line_end == std::string::npos ? 0 : line_end + 1)) + 1};
}

std::set<std::string> rules_in(const std::vector<LintFinding>& findings) {
  std::set<std::string> rules;
  for (const LintFinding& one : findings) rules.emplace(one.rule->id);
  return rules;
}

TEST_CASE("lint says nothing of a clean file", "[inspect][lint]") {
  CHECK(lint_text(lint_nccl_xml(clean_file(), "a.xml"), "a.xml") ==
        "a.xml: 0 errors, 0 warnings, 0 notes\n");
  const std::string path = GXP_TEST_DATA "/topo/rccl-topo_8p_940.xml";
  CHECK(lint_nccl_xml(read_text_file(path, 1 << 20), path).empty());
}

TEST_CASE("lint finds no error in what NCCL writes of some machines", "[inspect][lint]") {
  const auto [find, replace] = GENERATE(table<std::string, std::string>({
      {"numaid=\"0\"", "numaid=\"-1\""},
      {"numaid=\"1\"", "numaid=\"-1\""},
      {"maxconn=\"131072\"", "maxconn=\"2147483647\""},
  }));
  std::string text = clean_file();
  const size_t at = text.find(find);
  if (at != std::string::npos) text.replace(at, find.size(), replace);
  CAPTURE(find, lint_text(lint_nccl_xml(text, "a.xml"), "a.xml"));
  CHECK(count_of(lint_nccl_xml(text, "a.xml"), Severity::kError) == 0);
}

TEST_CASE("lint takes what is twice in different hosts for two things", "[inspect][lint]") {
  const auto [second_hash, errors] = GENERATE(table<std::string, std::set<std::string>>({
      {"0xbbb", {}},
      {"0xaaa", {"bus-id-twice", "gpu-dev-twice", "net-dev-twice", "numa-id-twice"}},
  }));
  const std::string node =
      "<cpu host_hash=\"{0}\" numaid=\"0\" affinity=\"{1}\" arch=\"arm64\">"
      "<pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"100\" "
      "rank=\"{2}\"/></pci>"
      "<pci busid=\"0000:02:00.0\" class=\"0x020700\"><nic><net dev=\"0\" "
      "speed=\"1\"/></nic></pci></cpu>";
  const std::string text = "<system version=\"1\">" +
                           fmt::format(fmt::runtime(node), "0xaaa", "ff", 0) +
                           fmt::format(fmt::runtime(node), second_hash, "ff00", 1) + "</system>";
  std::set<std::string> found;
  for (const LintFinding& one : lint_nccl_xml(text, "a.xml")) {
    if (one.rule->severity == Severity::kError) found.emplace(one.rule->id);
  }
  CHECK(found == errors);
}

TEST_CASE("lint finds no error in what gxp writes of machines by name", "[inspect][lint]") {
  for (const char* name : {"dgx-a100", "dgx-h100", "dgx-b200", "azure-ndv4", "aws-p5"}) {
    const std::vector<LintFinding> findings = lint_nccl_xml(write_nccl_xml(load_host(name)), name);
    CAPTURE(lint_text(findings, name));
    CHECK(count_of(findings, Severity::kError) == 0);
    CHECK(count_of(findings, Severity::kWarning) == 0);
  }
}

TEST_CASE("lint finds what is planted, where it is, and nothing else", "[inspect][lint]") {
  const size_t i = GENERATE(range(size_t{0}, corpus().size()));
  const Planted& defect = corpus()[i];
  const std::string text = planted(defect);
  const std::vector<LintFinding> findings = lint_nccl_xml(text, "a.xml");
  CAPTURE(defect.rule, defect.replace.substr(0, 200), lint_text(findings, "a.xml"));
  const auto found =
      std::ranges::find(findings, defect.rule, [](const LintFinding& one) { return one.rule->id; });
  REQUIRE(found != findings.end());
  const SourceLocation place = place_of(text, defect.at);
  if (place.line > 0) CHECK(found->place.line == place.line);
  if (place.line > 0) CHECK(found->place.column == place.column);
  std::set<std::string> expected = defect.also;
  expected.erase("nothing");
  expected.insert(defect.rule);
  CHECK(rules_in(findings) == expected);
}

TEST_CASE("every rule has a defect in the corpus or a test of its own", "[inspect][lint]") {
  std::set<std::string> tested = {"link-below-width", "gpu-far-from-nics"};
  for (const Planted& defect : corpus()) tested.insert(defect.rule);
  for (const LintRule& rule : lint_rules()) CHECK(tested.contains(std::string(rule.id)));
  CHECK(tested.size() == lint_rules().size());
}

TEST_CASE("lint compares a live link with what it could be", "[inspect][lint]") {
  HostTree host;
  const PartId node =
      host.add({.kind = PartKind::kNumaNode,
                .info = NumaNodeInfo{.number = 0, .architecture = "arm64", .affinity = "f"}});
  host.add({.kind = PartKind::kNic,
            .above = node,
            .bus_id = "0000:01:00.0",
            .identity = {.class_code = "0x020000"},
            .link = {.now = {16, 8}, .most = {16, 16}}});
  const std::vector<LintFinding> findings = lint_host(host);
  REQUIRE(rules_in(findings) == std::set<std::string>{"link-below-width"});
  CHECK(findings[0].what == "0000:01:00.0 has 8 of 16 lanes");
}

TEST_CASE("lint asks only NCCL's XML for what such a file must say", "[inspect][lint]") {
  const std::string file = GXP_TEST_DATA + GENERATE(std::string("/topo/smi/dgx1-v100-4mlx.txt"),
                                                    "/topo/hwloc/power8gpudistances.xml");
  CAPTURE(lint_text(lint_host(load_host(file)), file));
  CHECK(lint_host(load_host(file)).empty());
}

TEST_CASE("lint misses the NICs of a NUMA node that has none", "[inspect][lint]") {
  std::string text = clean_file();
  for (const char* dead : {"0000:12", "0000:22"}) {
    const size_t start = text.find(fmt::format("      <pci busid=\"{}", dead));
    text.erase(start, text.find("      </pci>\n", start) + 13 - start);
  }
  const std::vector<LintFinding> findings = lint_nccl_xml(text, "a.xml");
  CHECK(rules_in(findings) == std::set<std::string>{"gpu-far-from-nics"});
  CHECK(findings.size() == 2);
}

TEST_CASE("a finding names file, line, column, what, why and remedy", "[inspect][lint]") {
  const Planted misread{"", "", kGpu, "32.0 GT/s PCIe", "32.0 GT/s"};
  const std::vector<LintFinding> findings = lint_nccl_xml(planted(misread), "a.xml");
  CHECK(lint_text(findings, "a.xml") ==
        "a.xml:4:7: error: link_speed \"32.0 GT/s\" counts as 8 GT/s: 12 GB/s for 0000:11:00.0 "
        "where 48 are meant [speed-misread]\n"
        "    why: NCCL compares it with a few texts, and silently takes any other for 8 GT/s\n"
        "    fix: write \"16.0 GT/s PCIe\", as Linux does\n"
        "a.xml: 1 error, 0 warnings, 0 notes\n");
  const std::string json = to_json(lint_report(findings, "a.xml"));
  CHECK(json.find("\"rule\": \"speed-misread\"") != std::string::npos);
  CHECK(json.find("\"line\": 4") != std::string::npos);
}

}  // namespace
}  // namespace gxp
