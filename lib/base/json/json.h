// JSON from untrusted files: strict, and every error names the file.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

using Json = nlohmann::json;

// kCorrupt: no JSON, no UTF-8, nested deeper than 64, or a key twice in one object (readers differ
// on which one counts). `file` is for messages. Cost: linear in the text.
Json parse_json(std::string_view text, const std::string& file);

// The same for what Python's json has written: NaN, Infinity and -Infinity are values, too. They
// become texts, so no number, which write_python_json() writes as they were. A text of the file that
// is like one of those is refused (kCorrupt).
Json parse_python_json(std::string_view text, const std::string& file);
// Indented by two spaces.
std::string write_python_json(const Json& value);

// Compact JSON. Bytes that are no UTF-8, as a path may have, become U+FFFD.
std::string write_json(const Json& value);

// Typed access. kCorrupt, naming `where` ("FILE: tensor NAME"), if the member is missing or of
// another type. Numbers are whole and in the range of 64 unsigned bits.
const Json& member(const Json& object, const char* key, const std::string& where);
uint64_t to_unsigned(const Json& value, const std::string& where);
std::string to_text(const Json& value, const std::string& where);
const Json& to_array(const Json& value, const std::string& where);
const Json& to_object(const Json& value, const std::string& where);
std::vector<uint64_t> to_numbers(const Json& value, const std::string& where);

}  // namespace gxp
