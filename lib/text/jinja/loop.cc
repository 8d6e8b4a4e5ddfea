#include "lib/text/jinja/loop.h"

namespace gxp {

JinjaLoop::JinjaLoop(const JinjaValue& items, Accepts accepts) : accepts_(std::move(accepts)) {
  const JinjaValue::List list = items.shared_list();
  const bool is_generator = list != nullptr && list->kind == JinjaListKind::kGenerator;
  items_ = is_generator ? list : items_of(items);
}

std::optional<JinjaValue> JinjaLoop::take() {
  const bool is_generator = items_->kind == JinjaListKind::kGenerator;
  size_t& at = is_generator ? items_->taken : at_;
  while (at < items_->items.size()) {
    const JinjaValue item = items_->items[at++];
    if (!accepts_ || accepts_(item)) return item;
  }
  return std::nullopt;
}

const std::optional<JinjaValue>& JinjaLoop::peek() {
  if (!after_) after_ = take();
  return after_;
}

bool JinjaLoop::advance() {
  std::optional<JinjaValue> next = after_ ? std::move(after_) : take();
  after_.reset();
  if (!next) return false;
  before_ = std::move(current_);
  current_ = std::move(next);
  ++index_;
  return true;
}

int64_t JinjaLoop::length() {
  JinjaList rest;
  while (std::optional<JinjaValue> item = take()) rest.items.push_back(std::move(*item));
  const auto count = int64_t(rest.items.size());
  items_ = std::make_shared<JinjaList>(std::move(rest));
  at_ = 0;
  accepts_ = nullptr;
  return index_ + 1 + (after_ ? 1 : 0) + count;
}

JinjaValue JinjaLoop::attribute(std::string_view name) {
  if (name == "index") return index_ + 1;
  if (name == "index0") return index_;
  if (name == "first") return index_ == 0;
  if (name == "last") return !peek().has_value();
  if (name == "length") return length();
  if (name == "revindex") return length() - index_;
  if (name == "revindex0") return length() - index_ - 1;
  if (name == "depth") return 1;  // of a recursive loop
  if (name == "depth0") return 0;
  if (name == "previtem") return before_.value_or(JinjaValue());
  if (name == "nextitem") return peek().value_or(JinjaValue());
  jinja_fail("'loop.{}' is not supported", name);
}

}  // namespace gxp
