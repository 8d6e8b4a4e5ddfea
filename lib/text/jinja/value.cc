#include "lib/text/jinja/value.h"

#include <algorithm>

#include "lib/text/jinja/python_text.h"

namespace gxp {
namespace {

template <class Type>
Type or_null(const Type* held) {
  return held == nullptr ? nullptr : *held;
}

template <class Container>
void add_extent(Container& container, const JinjaValue& value) {
  uint32_t depth = 0;
  size_t weight = 1;
  if (const JinjaList* list = value.list()) {
    depth = list->depth;
    weight = list->weight;
  } else if (const JinjaDict* dict = value.dict()) {
    depth = dict->depth;
    weight = dict->weight;
  }
  container.depth = std::max(container.depth, depth + 1);
  container.weight += weight;
  if (container.depth > kMaxJinjaDepth)
    jinja_fail("lists and dicts are nested deeper than {}", kMaxJinjaDepth);
  if (container.weight > kMaxJinjaItems)
    jinja_fail("a list or dict holds more than {} values", kMaxJinjaItems);
}

bool are_equal_lists(const JinjaList& left, const JinjaList& right) {
  if (&left == &right) return true;
  const bool has_identity =
      left.kind == JinjaListKind::kView || left.kind == JinjaListKind::kGenerator;
  return left.kind == right.kind && !has_identity &&
         std::ranges::equal(left.items, right.items, are_equal);
}

bool are_equal_dicts(const JinjaDict& left, const JinjaDict& right) {
  if (left.entries().size() != right.entries().size()) return false;
  return std::ranges::all_of(left.entries(), [&](const JinjaDict::Entry& entry) {
    const JinjaValue* other = right.find(entry.first);
    return other != nullptr && are_equal(entry.second, *other);
  });
}

// Exact for whole numbers and floats alike: 64 bits of mantissa or more.
long double exact_number(const JinjaValue& value) {
  const std::optional<int64_t> whole = value.integer();
  return whole ? static_cast<long double>(*whole) : *value.number();
}

}  // namespace

JinjaValue::JinjaValue(JinjaList value) {
  value.depth = 1;
  value.weight = 1;
  for (const JinjaValue& item : value.items) add_extent(value, item);
  data_ = std::make_shared<JinjaList>(std::move(value));
}

JinjaValue::JinjaValue(JinjaDict value) {
  value.depth = 1;
  value.weight = 1;
  for (const JinjaDict::Entry& entry : value.entries()) add_extent(value, entry.second);
  data_ = std::make_shared<const JinjaDict>(std::move(value));
}

JinjaValue JinjaValue::markup(std::string text) {
  JinjaValue value;
  value.data_ = Markup{std::make_shared<const std::string>(std::move(text))};
  return value;
}

bool JinjaValue::is_markup() const { return std::holds_alternative<Markup>(data_); }

const std::string* JinjaValue::text() const {
  if (const auto* markup = std::get_if<Markup>(&data_)) return markup->text.get();
  const auto* held = std::get_if<Text>(&data_);
  return held == nullptr ? nullptr : held->get();
}
const JinjaList* JinjaValue::list() const {
  const auto* held = std::get_if<List>(&data_);
  return held == nullptr ? nullptr : held->get();
}
const JinjaDict* JinjaValue::dict() const {
  const auto* held = std::get_if<Dict>(&data_);
  return held == nullptr ? nullptr : held->get();
}
JinjaNamespace* JinjaValue::as_namespace() const {
  return or_null(std::get_if<JinjaNamespace*>(&data_));
}
const JinjaMacro* JinjaValue::macro() const {
  return or_null(std::get_if<const JinjaMacro*>(&data_));
}
const JinjaFunction* JinjaValue::function() const {
  return or_null(std::get_if<const JinjaFunction*>(&data_));
}
const JinjaUndefined* JinjaValue::undefined() const { return std::get_if<JinjaUndefined>(&data_); }
JinjaValue::List JinjaValue::shared_list() const { return or_null(std::get_if<List>(&data_)); }

std::optional<int64_t> JinjaValue::integer() const {
  if (const auto* truth = std::get_if<bool>(&data_)) return *truth ? 1 : 0;
  if (const auto* whole = std::get_if<int64_t>(&data_)) return *whole;
  return std::nullopt;
}

std::optional<double> JinjaValue::number() const {
  if (const auto* number = std::get_if<double>(&data_)) return *number;
  if (const auto whole = integer()) return double(*whole);
  return std::nullopt;
}

size_t JinjaDict::place_of(std::string_view key) const {
  if (places_.empty()) {
    const auto found = std::ranges::find(entries_, key, &Entry::first);
    return size_t(found - entries_.begin());
  }
  const auto found = places_.find(std::string(key));
  return found == places_.end() ? entries_.size() : found->second;
}

const JinjaValue* JinjaDict::find(std::string_view key) const {
  const size_t place = place_of(key);
  return place == entries_.size() ? nullptr : &entries_[place].second;
}

void JinjaDict::set(std::string_view key, JinjaValue value) {
  constexpr size_t kFew = 16;
  const size_t place = place_of(key);
  if (place < entries_.size()) {
    entries_[place].second = std::move(value);
    return;
  }
  entries_.emplace_back(key, std::move(value));
  if (entries_.size() == kFew) {
    for (size_t at = 0; at < kFew; ++at) places_[entries_[at].first] = at;
  } else if (entries_.size() > kFew) {
    places_[entries_.back().first] = place;
  }
}

std::string_view kind_of(const JinjaValue& value) {
  if (value.undefined() != nullptr) return "undefined";
  if (value.is_none()) return "none";
  if (value.is_bool()) return "boolean";
  if (value.is_float()) return "float";
  if (value.integer()) return "integer";
  if (value.text() != nullptr) return "text";
  if (value.dict() != nullptr) return "dict";
  if (value.as_namespace() != nullptr) return "namespace";
  if (value.macro() != nullptr) return "macro";
  if (value.function() != nullptr) return "function";
  switch (value.list()->kind) {
    case JinjaListKind::kTuple:
      return "tuple";
    case JinjaListKind::kRange:
      return "range";
    case JinjaListKind::kView:
      return "view of a dict";
    case JinjaListKind::kGenerator:
      return "generator";
    default:
      return "list";
  }
}

bool is_true(const JinjaValue& value) {
  if (value.undefined() != nullptr || value.is_none()) return false;
  if (const auto number = value.number()) return *number != 0;
  if (const std::string* text = value.text()) return !text->empty();
  if (const JinjaDict* dict = value.dict()) return !dict->entries().empty();
  const JinjaList* list = value.list();
  return list == nullptr || list->kind == JinjaListKind::kGenerator || !list->items.empty();
}

bool are_equal(const JinjaValue& left, const JinjaValue& right) {
  if (left.number() && right.number()) return exact_number(left) == exact_number(right);
  if (left.text() != nullptr && right.text() != nullptr) return *left.text() == *right.text();
  if (left.list() != nullptr && right.list() != nullptr)
    return are_equal_lists(*left.list(), *right.list());
  if (left.dict() != nullptr && right.dict() != nullptr)
    return are_equal_dicts(*left.dict(), *right.dict());
  if (left.as_namespace() != nullptr) return left.as_namespace() == right.as_namespace();
  if (left.macro() != nullptr) return left.macro() == right.macro();
  if (left.function() != nullptr) return left.function() == right.function();
  return (left.is_none() && right.is_none()) ||
         (left.undefined() != nullptr && right.undefined() != nullptr);
}

bool is_less(const JinjaValue& left, const JinjaValue& right) {
  if (left.number() && right.number()) return exact_number(left) < exact_number(right);
  // UTF-8 has the order of the code points.
  if (left.text() != nullptr && right.text() != nullptr) return *left.text() < *right.text();
  const bool are_lists = left.list() != nullptr && right.list() != nullptr;
  jinja_fail("a {} and a {} cannot be ordered{}", kind_of(left), kind_of(right),
             are_lists ? "; to order lists is not supported" : "");
}

void check_hashable(const JinjaValue& key) {
  if (key.dict() != nullptr || (key.list() != nullptr && key.list()->kind == JinjaListKind::kList))
    jinja_fail("a {} cannot be the key of a dict", kind_of(key));
}

JinjaValue::List items_of(const JinjaValue& value) {
  if (JinjaValue::List list = value.shared_list()) {
    if (list->kind != JinjaListKind::kGenerator) return list;
    auto rest = std::make_shared<JinjaList>(*list);
    rest->items.erase(rest->items.begin(), rest->items.begin() + ptrdiff_t(list->taken));
    list->taken = list->items.size();
    return rest;
  }
  JinjaList items;
  if (const JinjaDict* dict = value.dict()) {
    for (const auto& entry : dict->entries()) items.items.emplace_back(entry.first);
  } else if (const std::string* text = value.text()) {
    for (const std::string_view character : characters_of(*text))
      items.items.emplace_back(character);
  } else if (value.undefined() == nullptr) {
    jinja_fail("a {} cannot be iterated over", kind_of(value));
  }
  return JinjaValue(std::move(items)).shared_list();
}

size_t length_of(const JinjaValue& value) {
  const JinjaList* list = value.list();
  if (list != nullptr && list->kind != JinjaListKind::kGenerator) return list->items.size();
  if (const std::string* text = value.text()) return character_count(*text);
  if (const JinjaDict* dict = value.dict()) return dict->entries().size();
  if (value.undefined() != nullptr) return 0;
  jinja_fail("a {} has no length", kind_of(value));
}

}  // namespace gxp
