#include "lib/data/documents/open_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/documents/json_documents.h"
#include "lib/data/documents/text_documents.h"
#include "lib/data/documents/token_documents.h"
#include "lib/data/files/source_file.h"

namespace gxp {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMark = "\xef\xbb\xbf";  // the byte order mark in UTF-8
constexpr std::array kJsonNames = {".jsonl"sv, ".ndjson"sv, ".json"sv};

bool is_named_json(const std::string& path) {
  const std::string name = unpacked_name(path);
  return std::ranges::any_of(kJsonNames, [&](std::string_view end) { return name.ends_with(end); });
}

// From the first byte on that is not white space.
std::string_view behind_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

// Whether a text that begins so is meant to be JSON: an object with a name, or an array of objects.
// Other text may begin with a bracket, too.
bool begins_json(std::string_view head) {
  head = behind_blanks(head);
  if (head.starts_with('[')) return behind_blanks(head.substr(1)).starts_with('{');
  if (!head.starts_with('{')) return false;
  head = behind_blanks(head.substr(1));
  return head.starts_with('"') || head.starts_with('}');
}

std::unique_ptr<DocumentReader> open_json(const std::string& path, const DocumentOptions& options,
                                          ByteWindow window, const std::string& packing) {
  const std::string_view head = behind_blanks(window.view());
  const bool is_array = head.starts_with('[') && behind_blanks(head.substr(1)).starts_with('{');
  if (!head.empty() && !head.starts_with('{') && !is_array)
    fail(ErrorKind::kCorrupt,
         "read {}: it is named as JSON lines, but does not begin with an object; set data.format = "
         "\"text\" if it is plain text",
         path);
  RecordSource records(std::move(window), is_array ? RecordLayout::kArray : RecordLayout::kLines);
  return read_json_documents(path, std::move(records), options.field, packing);
}

std::unique_ptr<DocumentReader> open_text(const std::string& path, const DocumentOptions& options,
                                          DataKind kind) {
  const bool is_packed = kind != DataKind::kText;
  const std::string packing = is_packed ? fmt::format(", {}", to_string(kind)) : "";
  // Plain text is seen whole.
  const bool is_json = options.format != DataFormat::kText && is_named_json(path);
  const bool is_whole = !is_packed && !is_json && options.separator.empty();
  ByteWindow window(open_bytes(path, kind), path, is_whole ? SourceFile(path).bytes() : 0);
  while (window.view().size() < kHeadBytes && window.extend(kHeadBytes)) continue;
  if (window.view().empty()) fail(ErrorKind::kCorrupt, "read {}: it holds nothing", path);
  if (is_packed) require_packed_text(path, window.view().substr(0, kHeadBytes), options.format);
  if (window.view().starts_with(kMark)) window.drop(kMark.size());
  if (is_json || (options.format != DataFormat::kText && begins_json(window.view())))
    return open_json(path, options, std::move(window), packing);
  return read_text_documents(path, std::move(window), options.separator, packing);
}

}  // namespace

std::unique_ptr<DocumentReader> open_documents(const std::string& path,
                                               const DocumentOptions& options) {
  const DataKind kind = kind_of(path, options.format);
  return holds_text(kind) ? open_text(path, options, kind) : read_token_documents(path, options);
}

}  // namespace gxp
