// Facts that ranks tell each other: structs whose fields() is a std::tie() of texts, numbers and
// truth values, each packed into one text of any length for Store::gather(), Store::set() or
// gather_texts().
//   Errors  kPeer: what a rank has told has other fields.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
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

template <class Field>
std::string pack_field(const Field& field) {
  if constexpr (std::is_same_v<Field, bool>)
    return field ? "1" : "0";
  else
    return fmt::format("{}", field);
}

// False: it is none of that type.
template <class Field>
bool unpack_field(const std::string& text, Field& field) {
  if constexpr (std::is_same_v<Field, std::string>) {
    field = text;
    return true;
  } else if constexpr (std::is_same_v<Field, bool>) {
    field = text == "1";
    return field || text == "0";
  } else {
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, field);
    return read.ec == std::errc() && read.ptr == end;
  }
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
  if (!is_whole) fail(ErrorKind::kPeer, "read what a rank tells of itself: it has other fields");
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
