#include "lib/data/documents/byte_source.h"

#include <zlib.h>
#include <zstd.h>

#include <limits>

#include "tests/catch.h"
#include "tests/data/token_samples.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream = {};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = uInt(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = uInt(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// A frame that does not tell its size, with a checksum.
std::string zstd(const std::string& text, int window_log = 0) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(),
                                                                   ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, window_log);
  std::string packed(ZSTD_compressBound(text.size()) + 100, '\0');
  ZSTD_outBuffer out{packed.data(), packed.size(), 0};
  ZSTD_inBuffer in{text.data(), text.size(), 0};
  ZSTD_compressStream2(context.get(), &out, &in, ZSTD_e_flush);
  REQUIRE(ZSTD_compressStream2(context.get(), &out, &in, ZSTD_e_end) == 0);
  packed.resize(out.pos);
  return packed;
}

std::string pack(DataKind kind, const std::string& text) {
  return kind == DataKind::kText ? text : kind == DataKind::kGzip ? gzip(text) : zstd(text);
}

std::string read_all(const std::string& path, DataKind kind, size_t piece = 1000) {
  const auto source = open_bytes(path, kind);
  std::string text, buffer(piece, '\0');
  for (size_t count; (count = source->read(buffer)) > 0;) text += buffer.substr(0, count);
  CHECK(source->read(buffer) == 0);
  CHECK(source->consumed() == std::filesystem::file_size(path));
  return text;
}

std::string some_text(size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += std::to_string(text.size() * 2654435761U) + '\n';
  return text.substr(0, bytes);
}

const std::string kSkipped = std::string("\x5a\x2a\x4d\x18\x03\0\0\0", 8) + "xyz";

}  // namespace

TEST_CASE("what is packed is read back in pieces of any size", "[data]") {
  const TokenDirectory dir;
  const auto kind = GENERATE(DataKind::kText, DataKind::kGzip, DataKind::kZstd);
  const size_t bytes = GENERATE(0, 1, 997, 3'000'000);
  const size_t piece = GENERATE(1, 997, 1 << 20);
  if (bytes > 1000 && piece == 1) return;
  const std::string text = some_text(bytes);
  CHECK(read_all(dir.write("a", pack(kind, text)), kind, piece) == text);
}

TEST_CASE("members and frames are one stream", "[data]") {
  const TokenDirectory dir;
  const std::string a = some_text(5000), b = some_text(70000);
  CHECK(read_all(dir.write("a", gzip(a) + gzip("") + gzip(b)), DataKind::kGzip) == a + b);
  CHECK(read_all(dir.write("a", gzip(a) + std::string(512, '\0')), DataKind::kGzip) == a);
  CHECK(read_all(dir.write("b", zstd(a) + zstd("") + zstd(b)), DataKind::kZstd) == a + b);
  CHECK(read_all(dir.write("b", kSkipped + zstd(a) + kSkipped + zstd(b) + kSkipped),
                 DataKind::kZstd) == a + b);
}

TEST_CASE("a compressed file that is cut at any byte is refused", "[data]") {
  const TokenDirectory dir;
  const auto kind = GENERATE(DataKind::kGzip, DataKind::kZstd);
  const std::string packed = pack(kind, some_text(300));
  for (size_t length = 1; length < packed.size(); ++length) {
    CAPTURE(length);
    const std::string path = dir.write("a", packed.substr(0, length));
    CHECK(error_of([&] { read_all(path, kind); }).says("ends early; the file is cut"));
  }
  const std::string two = dir.write("a", packed + packed.substr(0, 5));
  CHECK(error_of([&] { read_all(two, kind); }).says("ends early"));
}

TEST_CASE("no changed byte of compressed data goes unseen", "[data]") {
  const TokenDirectory dir;
  const auto kind = GENERATE(DataKind::kGzip, DataKind::kZstd);
  const std::string text = some_text(300), packed = pack(kind, text);
  for (size_t at = 0; at < packed.size(); ++at) {
    std::string changed = packed;
    changed[at] = char(changed[at] ^ 1 << at % 8);
    const std::string path = dir.write("a", changed);
    std::string read;
    const auto kind_of_error = error_of([&] { read = read_all(path, kind); }).kind;
    // A gzip header has a time, and a system's number.
    CHECK((kind_of_error == ErrorKind::kCorrupt || read == text));
  }
}

TEST_CASE("what follows compressed data, and windows above the limit, are refused", "[data]") {
  const TokenDirectory dir;
  const std::string text = some_text(300);
  const auto error = [&](const std::string& content, DataKind kind) {
    return error_of([&] { read_all(dir.write("a", content), kind); });
  };
  CHECK(error(gzip(text) + "junk", DataKind::kGzip).says("something other than gzip follows"));
  CHECK(error(zstd(text) + "junk", DataKind::kZstd).says("zstd: "));
  CHECK(error(zstd(text, 28), DataKind::kZstd).says("looks back by more than 128 MiB"));
  CHECK(read_all(dir.write("a", zstd(text, 27)), DataKind::kZstd) == text);
}

}  // namespace gxp
