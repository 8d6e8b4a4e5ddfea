#include "lib/data/corpus/tokenized_file.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <functional>

#include "lib/base/bytes.h"
#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/data/corpus/file_record.h"
#include "lib/data/corpus/tokenize.h"
#include "lib/data/documents/open_documents.h"
#include "lib/data/files/file_kind.h"
#include "lib/data/files/source_file.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

// The version of what documents are made into; another one makes other caches.
constexpr std::string_view kVersion = "2";

std::string user_tokens() {
  const std::string folder = user_cache_folder(process_environment());
  if (folder.empty())
    fail(ErrorKind::kConfig,
         "data.cache: neither checkpoint.dir, XDG_CACHE_HOME nor HOME is set; name a directory for "
         "the tokens of text");
  return folder + "/tokens";
}

std::string part_words(const TokenizeRequest& request) {
  if (request.part == DocumentPart::kAll) return "";
  return fmt::format("{}{}", request.part == DocumentPart::kTraining ? "training" : "validation",
                     request.run.data.validation_split);
}

void make_directory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail(ErrorKind::kIo, "make directory {}: {}", path, error.message());
}

void log_tokenized(const TokenizedFile& file, const TokenizeRequest& request, double seconds) {
  log_info("data: tokenized {}: {}, {} tokens in {:.1f} s, {}/s; {}", file.path, file.kind,
           file.cache.token_count(), seconds,
           format_bytes(uint64_t(double(file.bytes) / std::max(seconds, 1e-3))),
           request.encoder.description(file.cache.form().has_trained ? DocumentForm::kChat
                                                                     : DocumentForm::kText));
}

// content_hash(), by one process of a host.
std::string known_content_hash(const std::string& path, const std::string& directory) {
  std::error_code error;
  const std::array parts = {fs::weakly_canonical(path, error).string()};
  FileRecord record(fmt::format("{}/{}.{}.source", directory, fs::path(path).filename().string(),
                                token_cache_key(parts).substr(0, 16)),
                    "reads " + path);
  const std::string stamp = file_stamp(path);
  std::string hash = record.find(stamp);
  if (hash.empty()) {
    hash = content_hash(path);
    record.note(stamp, hash);
  }
  return hash;
}

// The cache at `path`, all of which one process of a host checks, or writes.
TokenCache open_checked(const std::string& path, const TokenCacheForm& form, const std::string& act,
                        const std::function<void(TokenCacheWriter&)>& write) {
  constexpr std::string_view kIsWhole = "whole";
  FileRecord record(path + ".lock", act);
  std::error_code error;
  const std::string stamp = fs::exists(path, error) ? file_stamp(path) : "";
  const auto check =
      record.find(stamp) == kIsWhole ? TokenCache::Check::kShape : TokenCache::Check::kAll;
  TokenCache cache = open_or_write_token_cache(path, form, write, check);
  record.note(file_stamp(path), kIsWhole);
  return cache;
}

}  // namespace

DocumentOptions document_options(const RunConfig& run, std::optional<int32_t> end_token) {
  return {.format = run.data.format,
          .field = run.data.field,
          .separator = run.data.document_separator,
          .end_token = end_token,
          .row_tokens = row_positions(run) + 1,
          .vocab_size = run.model.vocab_size > 0 ? run.model.vocab_size : INT32_MAX};
}

bool is_read_as_bytes(const DocumentReader& reader, const RunConfig& run) {
  return reads_bytes(run) && reader.kind() == to_string(DataKind::kText) &&
         !reader.traits().several;
}

std::string cache_directory(const RunConfig& run) {
  if (!run.data.cache.empty()) return run.data.cache;
  if (run.checkpoint.dir.empty()) return user_tokens();
  const fs::path checkpoints = fs::path(run.checkpoint.dir).lexically_normal();
  const bool ends_in_slash = !checkpoints.has_filename();
  return ((ends_in_slash ? checkpoints.parent_path() : checkpoints).parent_path() / "tokens")
      .string();
}

TokenizedFile tokenize_file(const std::string& path, const TokenizeRequest& request) {
  const auto reader = open_documents(path, document_options(request.run));
  const bool is_chat = reader->form() == DocumentForm::kChat;
  const std::string directory = cache_directory(request.run);
  make_directory(directory);
  const std::string content = known_content_hash(path, directory);
  const std::array parts = {content,
                            std::string(kVersion),
                            request.encoder.digest(reader->form()),
                            reader->kind(),
                            request.run.data.document_separator,
                            part_words(request)};
  const TokenCacheForm form{.key = token_cache_key(parts),
                            .vocabulary_end = request.encoder.tokenizer().vocabulary_end(),
                            .has_trained = is_chat};
  const std::string cache = fmt::format("{}/{}.{}.tokens", directory,
                                        fs::path(path).filename().string(), form.key.substr(0, 16));
  const auto begin = std::chrono::steady_clock::now();
  bool is_new = false;
  TokenizedFile file{path, reader->kind(), SourceFile(path).bytes(), reader->traits().several,
                     open_checked(cache, form, "tokenizes " + path, [&](TokenCacheWriter& writer) {
                       is_new = true;
                       tokenize(*reader, request, writer);
                       if (content_hash(path) != content)
                         fail(ErrorKind::kCorrupt,
                              "read {}: it was changed while it was tokenized; try again", path);
                     })};
  if (file.cache.document_count() == 0)
    fail(ErrorKind::kCorrupt, "read {}: it has no documents for {}{}", path,
         request.part == DocumentPart::kValidation ? "validation" : "training",
         request.part == DocumentPart::kAll
             ? ""
             : "; change data.validation_split, or name other files in data.valid");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (is_new) log_tokenized(file, request, seconds.count());
  return file;
}

}  // namespace gxp
