// What a fuzzed input is as data: a file of documents, or an index or a cache beside one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gxp {

// By name: "documents" (a file of any kind), "gzip" and "zstd" (what is left of one after its magic),
// "jsonl" (a text that is read as JSON lines), "megatron" (an index) or "token-cache". Nothing under
// any other name. Errors of the call: the reader's.
std::optional<std::function<void(const std::string& bytes)>> find_data_input(std::string_view name);

}  // namespace gxp
