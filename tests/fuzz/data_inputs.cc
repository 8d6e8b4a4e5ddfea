#include "tests/fuzz/data_inputs.h"

#include <cstdlib>
#include <cstring>

#include "lib/base/hash.h"
#include "lib/base/text/utf8.h"
#include "lib/data/documents/open_documents.h"
#include "lib/data/documents/token_cache.h"
#include "lib/data/files/megatron_index.h"
#include "tests/fuzz/memory_file.h"

namespace gxp {
namespace {

constexpr uint64_t kMostDocuments = 1000;
constexpr uint64_t kMostBytes = uint64_t{64} << 20;  // few bytes of zstd may hold gigabytes

void require_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) std::abort();
    text.remove_prefix(length);
  }
}

void read_documents(const std::string& bytes) {
  const auto reader =
      open_documents(path_of_bytes(bytes), {.separator = "\n\n", .end_token = 1, .row_tokens = 1});
  const bool is_json = reader->kind().find("JSON") != std::string::npos;
  uint64_t seen = 0;
  for (uint64_t i = 0; i < kMostDocuments && seen < kMostBytes; ++i) {
    const auto document = reader->next();
    if (!document) return;
    seen += document->text.size() + 1;
    if (is_json) require_utf8(document->text);
  }
}

void read_after(std::string_view magic, const std::string& bytes) {
  read_documents(std::string(magic) + bytes);
}

void read_index(const std::string& bytes) {
  const MegatronIndex index(path_of_bytes(bytes));
  for (uint64_t i = 0; i < std::min(index.document_count(), kMostDocuments); ++i) {
    if (index.document_begin(i) > index.document_begin(i + 1)) std::abort();
  }
}

// Under hashes that fit, which no mutation would find: that of the header's first 104 bytes, and
// before it that of what follows the header.
void read_cache(const std::string& bytes) {
  constexpr size_t kHeader = 112, kBodyHashAt = 72, kOwnHashAt = 104;
  std::string file = bytes;
  if (file.size() >= kHeader) {
    const auto all = std::as_bytes(std::span(file));
    hash_hex(all.subspan(kHeader)).copy(file.data() + kBodyHashAt, 32);
    const uint64_t own = hash64(all.first(kOwnHashAt));
    std::memcpy(file.data() + kOwnHashAt, &own, sizeof own);
  }
  const TokenCache cache(path_of_bytes(file));
  std::vector<int32_t> ids(cache.token_count());
  std::vector<uint8_t> trained(cache.form().has_trained ? ids.size() : 0);
  cache.read(0, ids);
  if (cache.form().has_trained) cache.read_trained(0, trained);
  for (uint64_t i = 0; i < ids.size(); i += 97) {
    const uint64_t document = cache.document_of(i);
    if (cache.document_begin(document) > i || cache.document_begin(document + 1) <= i) std::abort();
  }
}

constexpr struct {
  std::string_view name;
  void (*read)(const std::string& bytes);
} kInputs[] = {{"documents", read_documents},
               {"gzip", [](const std::string& bytes) { read_after("\x1f\x8b\x08", bytes); }},
               {"zstd", [](const std::string& bytes) { read_after("\x28\xb5\x2f\xfd", bytes); }},
               {"jsonl", [](const std::string& bytes) { read_after("{\"text\": \"\"}\n", bytes); }},
               {"megatron", read_index},
               {"token-cache", read_cache}};

}  // namespace

std::optional<std::function<void(const std::string& bytes)>> find_data_input(
    std::string_view name) {
  for (const auto& input : kInputs) {
    if (input.name == name) return input.read;
  }
  return std::nullopt;
}

}  // namespace gxp
