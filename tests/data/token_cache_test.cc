#include "lib/data/documents/token_cache.h"

#include "lib/base/log.h"
#include "tests/catch.h"
#include "tests/data/token_samples.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

struct CachedDocument {
  std::vector<int32_t> ids;
  std::vector<uint8_t> trained;
};

TokenCacheForm form_of(int32_t vocabulary_end, bool has_trained, const std::string& part = "a") {
  return {token_cache_key(std::vector<std::string>{part}), vocabulary_end, has_trained};
}

// Documents of such lengths, with ids all over the vocabulary.
std::vector<CachedDocument> documents_of(const std::vector<size_t>& lengths,
                                         const TokenCacheForm& form) {
  std::vector<CachedDocument> documents;
  uint64_t seed = 1;
  for (const size_t length : lengths) {
    CachedDocument& document = documents.emplace_back();
    for (size_t i = 0; i < length; ++i) {
      seed = mix64(seed);
      document.ids.push_back(int32_t(seed % uint64_t(form.vocabulary_end)));
      if (form.has_trained) document.trained.push_back(uint8_t(seed >> 60 & 1));
    }
  }
  return documents;
}

void write_cache(const std::string& path, const TokenCacheForm& form,
                 const std::vector<CachedDocument>& documents) {
  TokenCacheWriter writer(path, form);
  for (const CachedDocument& document : documents) writer.add(document.ids, document.trained);
  writer.finish();
}

void check_content(const TokenCache& cache, const std::vector<CachedDocument>& documents) {
  REQUIRE(cache.document_count() == documents.size());
  uint64_t begin = 0;
  for (size_t i = 0; i < documents.size(); ++i) {
    REQUIRE(cache.document_begin(i) == begin);
    const size_t length = documents[i].ids.size();
    std::vector<int32_t> ids(length);
    cache.read(begin, ids);
    REQUIRE(ids == documents[i].ids);
    std::vector<uint8_t> trained(documents[i].trained.size());
    if (cache.form().has_trained) cache.read_trained(begin, trained);
    REQUIRE(trained == documents[i].trained);
    if (length > 0) REQUIRE(cache.document_of(begin) == i);
    if (length > 0) REQUIRE(cache.document_of(begin + length - 1) == i);
    begin += length;
  }
  CHECK(cache.token_count() == begin);
  CHECK(cache.document_begin(documents.size()) == begin);
}

}  // namespace

TEST_CASE("a cache gives back the documents that were written", "[data]") {
  const TokenDirectory dir;
  const int32_t vocabulary = GENERATE(1, 65536, 65537, 2'000'000'000);
  const bool has_trained = GENERATE(false, true);
  const auto lengths = GENERATE(values<std::vector<size_t>>({{},
                                                             {0},
                                                             {1},
                                                             {0, 3, 0, 0, 7, 0},
                                                             {65536},
                                                             {65535, 2},
                                                             {1, 131072, 13},
                                                             std::vector<size_t>(1025, 3)}));
  const TokenCacheForm form = form_of(vocabulary, has_trained);
  const auto documents = documents_of(lengths, form);
  write_cache(dir / "deep/er/a.tokens", form, documents);
  const auto check = GENERATE(TokenCache::Check::kAll, TokenCache::Check::kShape);
  const TokenCache cache(dir / "deep/er/a.tokens", check);
  CHECK(cache.form() == form);
  check_content(cache, documents);
}

TEST_CASE("a range is read across blocks, with its bits", "[data]") {
  const TokenDirectory dir;
  const TokenCacheForm form = form_of(1000, true);
  const auto documents = documents_of({200'000}, form);
  write_cache(dir / "a", form, documents);
  const TokenCache cache(dir / "a");
  const auto [begin, count] = GENERATE(table<size_t, size_t>(
      {{0, 0}, {3, 1}, {65535, 2}, {65530, 70'000}, {131'072, 5}, {199'999, 1}, {200'000, 0}}));
  std::vector<int32_t> ids(count);
  std::vector<uint8_t> trained(count);
  cache.read(begin, ids);
  cache.read_trained(begin, trained);
  const auto at = [&](const auto& all) { return all.begin() + std::ptrdiff_t(begin); };
  CHECK(std::equal(ids.begin(), ids.end(), at(documents[0].ids)));
  CHECK(std::equal(trained.begin(), trained.end(), at(documents[0].trained)));
}

TEST_CASE("no change of a cache goes unseen, and no cut", "[data]") {
  const TokenDirectory dir;
  const TokenCacheForm form = form_of(300, true);
  write_cache(dir / "a", form, documents_of({3, 0, 17}, form));
  std::ifstream file(dir / "a", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = char(changed[at] ^ 1 << at % 8);
    const std::string path = dir.write("b", changed), cut = dir.write("c", whole.substr(0, at));
    CHECK(error_of([&] { TokenCache cache(path); }).kind == ErrorKind::kCorrupt);
    CHECK(error_of([&] { TokenCache cache(cut); }).kind == ErrorKind::kCorrupt);
  }
  const std::string longer = dir.write("d", whole + "x");
  CHECK(error_of([&] { TokenCache cache(longer); }).kind == ErrorKind::kCorrupt);
}

TEST_CASE("an id outside the vocabulary is seen even where the checksum is not computed",
          "[data]") {
  const TokenDirectory dir;
  const TokenCacheForm form = form_of(300, false);
  write_cache(dir / "a", form, documents_of({3}, form));
  std::fstream(dir / "a", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(112)
      .write("\xff\xff", 2);
  const TokenCache cache(dir / "a", TokenCache::Check::kShape);
  std::vector<int32_t> ids(3);
  CHECK(error_of([&] { cache.read(0, ids); }).says("token 65535 is outside the vocabulary of 300"));
  cache.read(1, std::span(ids).first(2));
}

TEST_CASE("a cache is written once, and anew if it is broken or of another key", "[data]") {
  const TokenDirectory dir;
  set_log_level(LogLevel::kError);
  int written = 0;
  const auto open = [&](const std::string& part) {
    return open_or_write_token_cache(dir / "a", form_of(10, false, part), [&](auto& writer) {
      ++written;
      writer.add(std::vector<int32_t>{1, 2, written});
    });
  };
  open("x");
  CHECK(open("x").token_count() == 3);
  CHECK(written == 1);
  open("y");
  CHECK(written == 2);
  std::filesystem::resize_file(dir / "a", 115);
  CHECK(open("y").token_count() == 3);
  CHECK(written == 3);
  set_log_level(LogLevel::kInfo);
}

TEST_CASE("a cache that is not finished leaves nothing, and harms no other", "[data]") {
  const TokenDirectory dir;
  const TokenCacheForm form = form_of(10, false);
  write_cache(dir / "a", form, documents_of({5}, form));
  {
    TokenCacheWriter writer(dir / "a", form);
    writer.add(std::vector<int32_t>{1});
  }
  CHECK(TokenCache(dir / "a").token_count() == 5);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("parts that are cut elsewhere have another key", "[data]") {
  using Parts = std::vector<std::string>;
  CHECK(token_cache_key(Parts{"ab", "c"}) != token_cache_key(Parts{"a", "bc"}));
  CHECK(token_cache_key(Parts{"ab"}) != token_cache_key(Parts{"ab", ""}));
  CHECK(token_cache_key(Parts{"ab", "c"}) == token_cache_key(Parts{"ab", "c"}));
}

TEST_CASE("the content hash is that of all bytes", "[data]") {
  const TokenDirectory dir;
  const size_t bytes = GENERATE(0, 1, 1 << 20, (1 << 20) + 1, 3'000'017);
  std::string content(bytes, 'x');
  const std::string hash = content_hash(dir.write("a", content));
  CHECK(hash == hash_hex(std::as_bytes(std::span(content))));
  if (bytes == 0) return;
  content[bytes / 2] = 'y';
  CHECK(content_hash(dir.write("a", content)) != hash);
}

}  // namespace gxp
