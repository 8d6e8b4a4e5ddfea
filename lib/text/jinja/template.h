// A chat template in Jinja, as transformers understands it: jinja2's sandbox with trim_blocks,
// lstrip_blocks, loop controls and {% generation %} blocks.
//
// All of Jinja that chat templates use is here. What is not, above all inheritance, macros with
// callers, changes to HTML that |safe or |escape made, and what depends on Unicode's tables, ends in
// an error that names it and its line; it never renders differently. Tags are looked at when the
// template is opened, filters, tests and methods when they are used.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "lib/text/jinja/parser.h"
#include "lib/text/jinja/renderer.h"

namespace gxp {

// Immutable; copies share the tree; any thread may render.
class JinjaTemplate {
 public:
  // `name` is for messages: "chat template DIR/chat_template.jinja". kCorrupt: it is not UTF-8, longer
  // than 1 MiB, or not such a template.
  JinjaTemplate(std::string_view source, std::string name);

  // `now`: for strftime_now. kCorrupt: the template fails or refuses, or needs too much work.
  [[nodiscard]] JinjaOutput render(const JinjaDict& variables, std::time_t now) const;

  [[nodiscard]] bool has_generation() const { return tree_->has_generation; }
  // Whether the template has this name, attribute or string anywhere.
  [[nodiscard]] bool mentions(const std::string& word) const { return tree_->words.contains(word); }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::shared_ptr<const JinjaTree> tree_;  // of all copies
};

}  // namespace gxp
