// Facts that ranks exchange: structs whose fields() is a std::tie() of texts, lists of texts,
// numbers and truth values, each packed into one text of any length for Store::gather(),
// Store::set() or gather_texts().
//   Errors  kPeer: what a rank has told has other fields.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lib/base/error.h"
#include "lib/net/socket/frame.h"
#include "lib/net/store/store.h"

namespace gxp {

template <class Fact>
auto fields_of(Fact& fact) {
  return fact.fields();
}
inline auto fields_of(Support& support) { return std::tie(support.ok, support.reason); }

inline std::string pack_field(bool field) { return field ? "1" : "0"; }
inline std::string pack_field(const std::vector<std::string>& field) { return pack_strings(field); }
template <class Field>
std::string pack_field(const Field& field) {
  return fmt::format("{}", field);
}

// False: it is none of that type.
inline bool unpack_field(const std::string& text, std::string& field) {
  field = text;
  return true;
}
inline bool unpack_field(const std::string& text, std::vector<std::string>& field) {
  field = unpack_strings(text);
  return true;
}
inline bool unpack_field(const std::string& text, bool& field) {
  field = text == "1";
  return field || text == "0";
}
template <class Number>
bool unpack_field(const std::string& text, Number& field) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, field);
  return read.ec == std::errc() && read.ptr == end;
}

template <class Fact>
std::string pack_fact(Fact fact) {
  return std::apply([](const auto&... field) { return pack_strings({pack_field(field)...}); },
                    fields_of(fact));
}

template <class Fact>
Fact unpack_fact(std::string_view packed) {
  Fact fact{};
  const std::vector<std::string> texts = unpack_strings(packed);
  const bool is_whole = std::apply(
      [&](auto&... field) {
        auto text = texts.begin();
        return texts.size() == sizeof...(field) && (unpack_field(*text++, field) && ...);
      },
      fields_of(fact));
  if (!is_whole)
    fail(ErrorKind::kPeer,
         "read a rank's facts: they have other fields; install the same gxp on all hosts");
  return fact;
}

// [collective] Every rank's fact, in order of rank. `gather` brings the ranks' texts to all.
template <class Fact, class Gather>
std::vector<Fact> exchange_facts(const Fact& mine, const Gather& gather) {
  std::vector<Fact> all;
  for (const std::string& text : gather(pack_fact(mine))) all.push_back(unpack_fact<Fact>(text));
  return all;
}
template <class Fact>
std::vector<Fact> exchange_facts(const Fact& mine, Store& store, std::string_view name,
                                 Deadline deadline) {
  return exchange_facts(
      mine, [&](const std::string& text) { return store.gather(name, text, deadline); });
}

}  // namespace gxp
