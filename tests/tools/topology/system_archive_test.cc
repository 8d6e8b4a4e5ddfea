#include "lib/tools/topology/read/system_archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

struct TarEntry {
  std::string path;
  unsigned type = AE_IFREG;
  std::string text{};  // content, or what a link leads to
  bool is_hard_link = false;
};

// A tar, compressed by bzip2 or what `add_filter` adds.
std::string make_tar(const std::vector<TarEntry>& entries,
                     int (*add_filter)(archive*) = archive_write_add_filter_bzip2) {
  std::string bytes(1 << 20, '\0');
  size_t used = 0;
  archive* const tar = archive_write_new();
  archive_write_set_format_pax_restricted(tar);  // for names of any length
  add_filter(tar);
  archive_write_open_memory(tar, bytes.data(), bytes.size(), &used);
  for (const TarEntry& each : entries) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, each.path.c_str());
    archive_entry_set_filetype(entry, each.type);
    if (each.type == AE_IFLNK) archive_entry_set_symlink(entry, each.text.c_str());
    const bool has_content = each.type == AE_IFREG && !each.is_hard_link;
    if (has_content) archive_entry_set_size(entry, int64_t(each.text.size()));
    if (each.is_hard_link) archive_entry_set_hardlink(entry, each.text.c_str());
    archive_write_header(tar, entry);
    if (has_content) archive_write_data(tar, each.text.data(), each.text.size());
    archive_entry_free(entry);
  }
  archive_write_free(tar);
  bytes.resize(used);
  return bytes;
}

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::string complaint_of(const std::string& bytes) {
  return complaint(ErrorKind::kCorrupt, [&] { parse_system_archive(bytes, "a.tar"); });
}

TEST_CASE("an archive's files and links make a root", "[topo]") {
  const std::string bytes = make_tar({{"host7/sys/devices/x/class", AE_IFREG, "0x020000\n"},
                                      {"host7/sys/bus/x", AE_IFLNK, "../devices/x"},
                                      {"host7/sys/pipe", AE_IFIFO}});
  CHECK(looks_like_archive(bytes));
  const auto root = parse_system_archive(bytes, "a.tar");
  CHECK(root->read("/sys/bus/x/class") == "0x020000");
  CHECK_FALSE(root->exists("/sys/pipe"));
}

TEST_CASE("an archive that is broken, hostile or something else is refused", "[topo]") {
  const std::string good = make_tar({{"sys/a", AE_IFREG, std::string(100000, 'x')}});
  CHECK(complaint_of(make_tar({{"sys/../../etc/passwd"}})) ==
        "read archive a.tar: \"sys/../../etc/passwd\" leads out of it");
  CHECK(complaint_of(make_tar({{"etc/passwd"}})).find("there is no sys in it") !=
        std::string::npos);
  CHECK(complaint_of(good.substr(0, good.size() / 2)).starts_with("read archive a.tar: "));
  CHECK(complaint_of("<topology/>").starts_with("read archive a.tar: "));
  CHECK_FALSE(looks_like_archive("<topology/>"));
}

TEST_CASE("an archive that unpacks to more than its limit is refused", "[topo]") {
  std::vector<TarEntry> entries;
  const std::string zeros(32u << 20, '\0');
  for (int i = 0; i < 9; ++i) entries.push_back({fmt::format("sys/{}", i), AE_IFREG, zeros});
  CHECK(complaint_of(make_tar(entries, archive_write_add_filter_zstd)) ==
        "read archive a.tar: it unpacks to more than 256 MiB");
}

TEST_CASE("hard links of an archive count as much as what they repeat", "[topo]") {
  std::vector<TarEntry> entries = {{"sys/0", AE_IFREG, std::string(3u << 20, 'x')}};
  CHECK(parse_system_archive(make_tar(entries, archive_write_add_filter_zstd), "a.tar")
            ->read("/sys/0")
            ->size() == 3u << 20);
  for (int i = 1; i < 100; ++i)
    entries.push_back({fmt::format("sys/{}", i), AE_IFREG, "sys/0", true});
  CHECK(complaint_of(make_tar(entries, archive_write_add_filter_zstd)) ==
        "read archive a.tar: it unpacks to more than 256 MiB");
}

TEST_CASE("directories above an archive's names count as entries", "[topo]") {
  std::vector<TarEntry> entries;
  for (int i = 0; i < 3000; ++i)
    entries.push_back({fmt::format("sys/{}", i) + repeated("/d", 100)});
  CHECK(complaint_of(make_tar(entries, archive_write_add_filter_zstd)) ==
        "read archive a.tar: it has more than 262144 names");
}

TEST_CASE("names and links that no system has are refused", "[topo]") {
  const std::string deep = "sys" + repeated("/d", 200);
  CHECK(complaint_of(make_tar({{deep}})) ==
        "read archive a.tar: a name in it has more than 128 directories");
  CHECK(complaint_of(make_tar({{"sys/a"}, {"sys/b", AE_IFREG, deep, true}})) ==
        "read archive a.tar: a name in it has more than 128 directories");
  CHECK(complaint_of(make_tar({{"sys/a", AE_IFLNK, repeated("../", 2000)}})) ==
        "read archive a.tar: a symbolic link in it cannot be read");
}

}  // namespace
}  // namespace gxp
