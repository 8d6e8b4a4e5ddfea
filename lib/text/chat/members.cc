#include "lib/text/chat/members.h"

#include "lib/base/error.h"

namespace gxp {

const JinjaValue* find_member(const JinjaDict& object, std::string_view key) {
  const JinjaValue* value = object.find(key);
  return value == nullptr || value->is_none() ? nullptr : value;
}

const std::string& text_member(const JinjaDict& object, std::string_view key,
                               const std::string& where) {
  const JinjaValue* value = find_member(object, key);
  if (value == nullptr) fail(ErrorKind::kCorrupt, "{}: {} is missing", where, key);
  if (value->text() == nullptr)
    fail(ErrorKind::kCorrupt, "{}: {} is a {}, not a text", where, key, kind_of(*value));
  return *value->text();
}

}  // namespace gxp
