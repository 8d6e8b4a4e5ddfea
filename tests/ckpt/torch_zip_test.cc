#include "lib/ckpt/zip/zip_archive.h"

#include <sys/stat.h>

#include "lib/ckpt/zip/little_endian.h"
#include "lib/ckpt/zip/zip_format.h"
#include "lib/ckpt/zip/zip_writer.h"
#include "tests/catch.h"
#include "tests/ckpt/torch_samples.h"

namespace gxp {
namespace {

const std::vector<std::string> kTorchZips = {"state_dict.pt", "state_dict_proto4.pt",
                                             "new_dtypes.pt", "train_ckpt.pt"};

// A good archive, and where its parts are, for damaging it.
struct ZipSample {
  std::string bytes = read_bytes(kTorchFixtures + "state_dict.pt");
  [[nodiscard]] size_t end() const { return bytes.rfind("PK\5\6"); }
  [[nodiscard]] size_t end64() const { return bytes.rfind("PK\6\6"); }
  [[nodiscard]] size_t locator() const { return bytes.rfind("PK\6\7"); }
  [[nodiscard]] size_t name(const std::string& member) const {  // in the directory
    return bytes.rfind("state_dict/" + member + "PK");
  }
  [[nodiscard]] size_t entry(const std::string& member) const { return name(member) - 46; }
  [[nodiscard]] size_t local(const std::string& member) const {
    return read_little<uint32_t>(bytes, entry(member) + 42);
  }
  template <class T>
  ZipSample& put(size_t at, T value) {
    bytes.replace(at, sizeof(T), reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  ZipSample& put_text(size_t at, const std::string& text) {
    bytes.replace(at, text.size(), text);
    return *this;
  }
};

struct HostileZip {
  std::string bytes;
  std::string words;  // that the message must have
};

std::vector<HostileZip> hostile_zips() {
  const ZipSample good;
  const auto changed = [&](size_t at, auto value) { return ZipSample(good).put(at, value).bytes; };
  const size_t one = good.entry("data/1");
  const uint32_t local = uint32_t(good.local("data/1"));
  return {
      {"", "no end record"},
      {good.bytes.substr(0, good.bytes.size() - 1), "no end record"},
      {good.bytes + "x", "no end record"},
      {"x" + good.bytes, "zip64 end record"},
      {changed(one + 10, uint16_t{8}), "'state_dict/data/1' is compressed"},
      {changed(one + 8, uint16_t{0x809}), "compressed or encrypted"},
      {changed(one + 20, uint32_t{139}), "has 140 bytes, but stores 139"},
      {ZipSample(good).put(one + 20, uint32_t{99999}).put(one + 24, uint32_t{99999}).bytes,
       "of 99999 bytes reaches beyond"},
      {ZipSample(good).put(one + 20, uint32_t{300}).put(one + 24, uint32_t{300}).bytes,
       "does not begin within 24 bytes"},
      {changed(one + 42, uint32_t(good.local("data/2"))), "does not begin within"},
      {changed(one + 42, local + 1), "belongs to another member"},
      {changed(one + 42, uint32_t{0xfffffff0}), "does not begin within"},
      {changed(one + 42, kZip32), "lacks its zip64 sizes"},
      {changed(one, uint32_t{0}), "not an entry of the central directory"},
      {changed(one + 28, uint16_t{60000}), "exceeds the central directory"},
      {changed(one + 28, uint16_t{0}), "name is empty"},
      {ZipSample(good).put_text(good.name("data/1"), std::string("\0", 1)).bytes, "NUL"},
      {ZipSample(good).put_text(good.name("data/1") + 11, "dada").bytes,
       "belongs to another member"},
      {ZipSample(good)
           .put_text(good.name("data/1") + 11, "data/2")
           .put_text(good.local("data/1") + 30 + 11, "data/2")
           .bytes,
       "'state_dict/data/2' occurs twice"},
      {ZipSample(good).put(good.end() + 10, uint16_t{3}).bytes, "differ"},
      {changed(good.locator() + 8, uint64_t{1} << 63), "zip64 end record would lie"},
      {changed(good.end64() + 4, uint64_t{45}), "not a zip64 end record of"},
      {changed(good.end64() + 16, uint32_t{1}), "several disks"},
      {ZipSample(good)
           .put(good.end64() + 24, uint64_t{1} << 60)
           .put(good.end64() + 32, uint64_t{1} << 60)
           .put(good.end() + 10, uint16_t{0xffff})
           .bytes,
       "cannot have 1152921504606846976 entries"},
      {ZipSample(good)
           .put(good.end64() + 24, uint64_t{16})
           .put(good.end64() + 32, uint64_t{16})
           .put(good.end() + 10, uint16_t{16})
           .bytes,
       "16 entries end here"},
      {ZipSample(good).put(good.end64() + 40, uint64_t{1} << 62).put(good.end() + 12, kZip32).bytes,
       "central directory would take"},
      {ZipSample(good).put(good.end64() + 48, uint64_t{0}).put(good.end() + 16, kZip32).bytes,
       "central directory would take"},
  };
}

// Members of more than 4 GiB that take no space: headers around holes.
void write_large_zip(const std::string& path, uint64_t bytes) {
  const auto extra = [](std::initializer_list<uint64_t> values) {
    std::string text;
    append_little(text, kZip64Extra);
    append_little(text, uint16_t(8 * values.size()));
    for (const uint64_t value : values) append_little(text, value);
    return text;
  };
  const auto header = [](uint32_t signature, size_t length, size_t name_at) {
    std::string text;
    append_little(text, signature);
    text.resize(length, '\0');
    text[name_at] = 1;
    return text;
  };
  const std::string local = header(kZipLocal, 30, 26);
  const uint64_t second = 31 + bytes + 24;
  std::string first_entry = header(kZipEntry, 46, 28) + "a" + extra({bytes, bytes});
  std::string second_entry = header(kZipEntry, 46, 28) + "b" + extra({second});
  first_entry.replace(20, 8, 8, '\xff');
  second_entry.replace(20, 8, std::string("\3\0\0\0\3\0\0\0", 8));
  second_entry.replace(42, 4, 4, '\xff');
  first_entry[30] = 20;
  second_entry[30] = 12;
  const uint64_t directory = second + 31 + 3 + 16;
  const std::string entries = first_entry + second_entry;
  std::string end = header(kZip64End, 56, 4);
  end[4] = 44;
  end.resize(24);
  for (const uint64_t value : {uint64_t{2}, uint64_t{2}, uint64_t{entries.size()}, directory})
    append_little(end, value);
  std::string locator = header(kZipLocator, 8, 4);
  locator[4] = 0;
  append_little(locator, directory + entries.size());
  append_little(locator, uint32_t{1});
  std::string classic = header(kZipEnd, 22, 8);
  classic.replace(4, 16, std::string("\0\0\0\0\2\0\2\0\xff\xff\xff\xff\xff\xff\xff\xff", 16));
  write_bytes(path, local + "a");
  std::filesystem::resize_file(path, second);
  std::ofstream(path, std::ios::binary | std::ios::app)
      << local << "bxyz" << std::string(16, '\0') << entries << end << locator << classic;
}

}  // namespace

TEST_CASE("torch's archives are found whole, wherever they lie in a file", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string name = GENERATE(from_range(kTorchZips));
  const uint64_t before = GENERATE(0, 1, 4096), after = GENERATE(0, 70000);
  CAPTURE(name, before, after);
  const std::string bytes = read_bytes(kTorchFixtures + name);
  const FileRange file = range_of(dir, std::string(before, 'P') + bytes + std::string(after, 'K'));
  const FileRange range = file.part(before, bytes.size(), "the archive");
  CHECK(ZipArchive::begins(range));
  const ZipArchive zip = ZipArchive::open(range);
  CHECK(zip.members().size() >= 10);
  for (const ZipMember& member : zip.members()) {
    zip.verify(member);
    CHECK(member.offset % kZipAlignment == 0);
  }
  const std::string root = zip.members()[0].name.substr(0, zip.members()[0].name.find('/'));
  CHECK(zip.read(zip.require(root + "/byteorder"), 6) == "little");
  CHECK(zip.find("byteorder") == nullptr);
}

TEST_CASE("an archive is written with torch's bytes", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string name = GENERATE(from_range(kTorchZips));
  const std::string before = GENERATE("", "other things");
  CAPTURE(name, before);
  const ZipArchive zip = ZipArchive::open(FileRange::open(kTorchFixtures + name));
  OutputFile file(dir / "copy");
  file.write(before);
  ZipWriter writer(file);
  for (const ZipMember& member : zip.members())
    writer.add(member.name, zip.read(member, member.bytes));
  writer.finish();
  file.close();
  CHECK(read_bytes(dir / "copy") == before + read_bytes(kTorchFixtures + name));
}

TEST_CASE("every hostile archive is refused with the file's name and the fault", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const HostileZip& hostile : hostile_zips()) {
    CAPTURE(hostile.words);
    const FileRange range = range_of(dir, hostile.bytes);
    const auto error = error_of([&] { ZipArchive::open(range); });
    CHECK(error.kind == ErrorKind::kCorrupt);
    CHECK_THAT(error.message, Catch::Matchers::Contains(dir / "bytes") &&
                                  Catch::Matchers::Contains("offset") &&
                                  Catch::Matchers::Contains(hostile.words));
  }
}

TEST_CASE("a gap that no data descriptor fills is refused", "[ckpt]") {
  const TemporaryDirectory dir;
  ZipSample sample;
  const size_t begin = sample.entry("data/1"), end = sample.entry("data/2");
  sample.bytes.erase(begin, end - begin);
  sample.put(sample.end64() + 24, uint64_t{16}).put(sample.end64() + 32, uint64_t{16});
  sample.put(sample.end64() + 40, read_little<uint64_t>(sample.bytes, sample.end64() + 40) - 63);
  sample.put(sample.locator() + 8, uint64_t{sample.end64()});
  sample.put(sample.end() + 8, uint16_t{16}).put(sample.end() + 10, uint16_t{16});
  sample.put(sample.end() + 12, kZip32);
  const auto error = error_of([&] { ZipArchive::open(range_of(dir, sample.bytes)); });
  CHECK_THAT(error.message, Catch::Matchers::Contains("'state_dict/data/2' does not begin within"));
}

TEST_CASE("a changed byte of a payload is found when its CRC is checked", "[ckpt]") {
  const TemporaryDirectory dir;
  ZipSample sample;
  sample.bytes[ZipArchive::open(range_of(dir, sample.bytes)).require("state_dict/data/1").offset] ^=
      1;
  const ZipArchive zip = ZipArchive::open(range_of(dir, sample.bytes));
  const ZipMember& member = zip.require("state_dict/data/1");
  for (const auto& error : {error_of([&] { zip.verify(member); }),
                            error_of([&] { static_cast<void>(zip.read(member, 1000)); })}) {
    CHECK(error.kind == ErrorKind::kCorrupt);
    CHECK_THAT(error.message, Catch::Matchers::Contains("the file is damaged"));
  }
  CHECK(error_of([&] { static_cast<void>(zip.read(member, 139)); }).says("more than 139"));
  CHECK(error_of([&] { static_cast<void>(zip.require("no")); }).says("'no' is missing"));
}

TEST_CASE("members beyond 4 GiB are found by their zip64 fields", "[ckpt]") {
  const TemporaryDirectory dir;
  const uint64_t bytes = GENERATE(uint64_t{5} << 30, uint64_t{0xffffffff}, uint64_t{1} << 40);
  write_large_zip(dir / "large", bytes);
  const ZipArchive zip = ZipArchive::open(FileRange::open(dir / "large"));
  REQUIRE(zip.members().size() == 2);
  CHECK(zip.require("a").bytes == bytes);
  CHECK(zip.require("b").offset == bytes + 86);
  std::string text(3, '\0');
  zip.payload(zip.require("b")).read(0, memory_of(text));
  CHECK(text == "xyz");
}

TEST_CASE("an archive cut or changed anywhere is refused or harmless, never a crash", "[ckpt]") {
  const TemporaryDirectory dir;
  const ZipSample good;
  for (size_t i = 0; i < good.bytes.size(); i += 5) {
    const auto cut = error_of([&] { ZipArchive::open(range_of(dir, good.bytes.substr(0, i))); });
    CHECK(cut.kind == ErrorKind::kCorrupt);
    std::string changed = good.bytes;
    changed[i] = char(changed[i] ^ (1 << (i % 8)));
    const auto flip = error_of([&] {
      const ZipArchive zip = ZipArchive::open(range_of(dir, changed));
      for (const ZipMember& member : zip.members()) zip.verify(member);
    });
    if (flip.kind) CHECK(flip.kind == ErrorKind::kCorrupt);
  }
}

}  // namespace gxp
