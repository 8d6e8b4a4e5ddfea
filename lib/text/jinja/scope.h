// Names that a template has set, and the loop that it is in.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "lib/text/jinja/loop.h"
#include "lib/text/jinja/value.h"

namespace gxp {

// The body of a loop, a macro and a block have a scope of their own: what is set in it does not leave
// it. Names are borrowed from the tree.
struct JinjaScope {
  const JinjaScope* outer = nullptr;
  JinjaLoop* loop = nullptr;  // whose body this is
  std::vector<std::pair<std::string_view, JinjaValue>> names{};

  void set(std::string_view name, JinjaValue value) {
    for (auto& entry : names)
      if (entry.first == name) return void(entry.second = std::move(value));
    names.emplace_back(name, std::move(value));
  }

  // Here or further out; null: nowhere.
  [[nodiscard]] const JinjaValue* find(std::string_view name) const {
    for (const JinjaScope* scope = this; scope != nullptr; scope = scope->outer)
      for (const auto& entry : scope->names)
        if (entry.first == name) return &entry.second;
    return nullptr;
  }

  [[nodiscard]] JinjaLoop* find_loop() const {
    const JinjaScope* scope = this;
    while (scope != nullptr && scope->loop == nullptr) scope = scope->outer;
    return scope == nullptr ? nullptr : scope->loop;
  }
};

// Counts, while it lives, the functions of the renderer that call each other: bounds the stack, of
// which each takes less than 1 KiB (3 KiB with sanitizers). JinjaError: there are too many.
class JinjaNesting {
 public:
  explicit JinjaNesting(int& depth) : depth_(depth) {
    if (++depth_ > 1500) jinja_fail("calls of macros are nested too deeply");
  }
  ~JinjaNesting() { --depth_; }
  JinjaNesting(const JinjaNesting&) = delete;
  JinjaNesting& operator=(const JinjaNesting&) = delete;

 private:
  int& depth_;
};

}  // namespace gxp
