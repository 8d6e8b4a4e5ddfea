#include "lib/topo/sources.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

const std::string kData = std::string(GXP_TEST_DATA) + "/topo/";

// A file of that content, removed at the end.
class PlantedFile {
 public:
  explicit PlantedFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / fmt::format("gxp-source-{}", ::getpid())) {
    std::ofstream(path_) << text;
  }
  ~PlantedFile() { std::filesystem::remove(path_); }
  PlantedFile(const PlantedFile&) = delete;
  PlantedFile& operator=(const PlantedFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("content decides what a file is", "[topo]") {
  const Topology topology = load_topology(kData + "oci-H100-topology.xml");
  CHECK(topology.source == "NCCL topology XML, version 1");
  CHECK(topology.trees.at(0).all_of(PartKind::kGpu).size() == 8);
  CHECK(topology.hosts.size() == 1);
}

TEST_CASE("a file of rings and trees has no host", "[topo]") {
  const std::string file = kData + "azure-ncv4-graph.xml";
  CHECK(load_topology(file).channel_graphs.size() == 3);
  CHECK(complaint(ErrorKind::kCorrupt, [&] { load_host(file); }).find("NCCL graph XML") !=
        std::string::npos);
}

TEST_CASE("what is no topology is refused, with what it is", "[topo]") {
  const auto [text, said] = GENERATE(table<std::string, std::string>({
      {"", "it is empty"},
      {" \n", "it is empty"},
      {"hello", "it is nothing that gxp knows: NCCL's topology XML"},
      {"<?xml version=\"1.0\"?><!-- a > b --><html/>", "it is nothing that gxp knows"},
      {"<!-- no end", "it is nothing that gxp knows"},
      {"<graphs version=\"7\"/>", ":1:1: <graphs version=\"7\">"},
      {"<!-- x --><system version=\"7\"/>", ":1:11: <system version=\"7\">"},
  }));
  const PlantedFile file(text);
  const std::string message = complaint(ErrorKind::kCorrupt, [&] { load_topology(file.path()); });
  CHECK(message.find("read topology " + file.path()) == 0);
  CHECK(message.find(said) != std::string::npos);
}

TEST_CASE("a name that is neither a file nor known is a wrong command line", "[topo]") {
  CHECK(complaint(ErrorKind::kUsage, [] { load_topology("/nowhere/x"); }).find("no such file") !=
        std::string::npos);
}

}  // namespace gxp
