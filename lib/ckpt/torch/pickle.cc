#include "lib/ckpt/torch/pickle.h"

#include <bit>

namespace gxp {
namespace {

[[noreturn]] void refuse_kind(PickleValue value, std::string_view expected,
                              const std::string& where) {
  fail(ErrorKind::kCorrupt, "{}: {} expected, found {}", where, expected, value.describe());
}

constexpr size_t kDescribedBytes = 80;

}  // namespace

const Pickle::Container& Pickle::container(uint32_t id) const {
  GXP_ASSERT(nodes_[id].kind >= PickleKind::kTuple && nodes_[id].kind != PickleKind::kGlobal);
  return containers_[nodes_[id].payload];
}

std::vector<PickleValue> Pickle::persistent_ids() const {
  std::vector<PickleValue> ids;
  for (uint32_t id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].kind == PickleKind::kPersistent) ids.emplace_back(*this, id);
  }
  return ids;
}

PickleKind PickleValue::kind() const { return pickle_->nodes_[id_].kind; }

bool PickleValue::boolean() const {
  GXP_ASSERT(is(PickleKind::kBool));
  return pickle_->nodes_[id_].payload != 0;
}

int64_t PickleValue::integer() const {
  GXP_ASSERT(is(PickleKind::kInteger));
  return int64_t(pickle_->nodes_[id_].payload);
}

double PickleValue::real() const {
  GXP_ASSERT(is(PickleKind::kFloat));
  return std::bit_cast<double>(pickle_->nodes_[id_].payload);
}

std::string_view PickleValue::text() const {
  GXP_ASSERT(is(PickleKind::kText) || is(PickleKind::kBytes) || is(PickleKind::kLong) ||
             is(PickleKind::kGlobal));
  const Pickle::Node& node = pickle_->nodes_[id_];
  return std::string_view(pickle_->texts_).substr(node.payload, node.length);
}

size_t PickleValue::size() const {
  const size_t items = pickle_->container(id_).items.size();
  return is(PickleKind::kDict) ? items / 2 : items;
}

PickleValue PickleValue::item(size_t i) const {
  GXP_ASSERT(!is(PickleKind::kDict));
  return {*pickle_, pickle_->container(id_).items.at(i)};
}

PickleValue PickleValue::key(size_t i) const {
  GXP_ASSERT(is(PickleKind::kDict));
  return {*pickle_, pickle_->container(id_).items.at(2 * i)};
}

PickleValue PickleValue::value(size_t i) const {
  GXP_ASSERT(is(PickleKind::kDict));
  return {*pickle_, pickle_->container(id_).items.at(2 * i + 1)};
}

PickleValue PickleValue::callable() const { return {*pickle_, pickle_->container(id_).callable}; }
PickleValue PickleValue::arguments() const { return {*pickle_, pickle_->container(id_).arguments}; }
PickleValue PickleValue::state() const { return {*pickle_, pickle_->container(id_).state}; }

bool PickleValue::is_call(std::string_view global) const {
  return is(PickleKind::kObject) && callable().text() == global;
}

std::string PickleValue::describe() const {
  switch (kind()) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return boolean() ? "True" : "False";
    case PickleKind::kInteger:
      return fmt::format("the integer {}", integer());
    case PickleKind::kLong:
      return "an integer of more than 64 bits";
    case PickleKind::kFloat:
      return fmt::format("the number {}", real());
    case PickleKind::kText:
      return fmt::format("the text '{}'", text().substr(0, kDescribedBytes));
    case PickleKind::kBytes:
      return "bytes";
    case PickleKind::kTuple:
      return fmt::format("a tuple of {}", size());
    case PickleKind::kList:
      return "a list";
    case PickleKind::kDict:
      return "a dict";
    case PickleKind::kSet:
      return "a set";
    case PickleKind::kGlobal:
      return std::string(text());
    case PickleKind::kObject:
      return fmt::format("{}(...)", callable().text());
    case PickleKind::kPersistent:
      return "a persistent id";
  }
  return "";
}

uint64_t to_unsigned(PickleValue value, const std::string& where) {
  if (!value.is(PickleKind::kInteger) || value.integer() < 0)
    refuse_kind(value, "an integer that is not negative", where);
  return uint64_t(value.integer());
}

std::string to_text(PickleValue value, const std::string& where) {
  if (!value.is(PickleKind::kText)) refuse_kind(value, "a text", where);
  return std::string(value.text());
}

PickleValue to_dict(PickleValue value, const std::string& where) {
  if (!value.is(PickleKind::kDict)) refuse_kind(value, "a dict", where);
  return value;
}

PickleValue to_sequence(PickleValue value, const std::string& where) {
  if (!value.is(PickleKind::kTuple) && !value.is(PickleKind::kList))
    refuse_kind(value, "a tuple or list", where);
  return value;
}

std::optional<PickleValue> find_member(PickleValue dict, std::string_view key,
                                       const std::string& where) {
  to_dict(dict, where);
  std::optional<PickleValue> found;
  for (size_t i = 0; i < dict.size(); ++i) {
    if (!dict.key(i).is(PickleKind::kText) || dict.key(i).text() != key) continue;
    if (found) fail(ErrorKind::kCorrupt, "{}: the key '{}' occurs twice", where, key);
    found = dict.value(i);
  }
  return found;
}

PickleValue member(PickleValue dict, std::string_view key, const std::string& where) {
  const auto found = find_member(dict, key, where);
  if (!found) fail(ErrorKind::kCorrupt, "{}: '{}' is missing", where, key);
  return *found;
}

}  // namespace gxp
