#include "lib/text/jinja/template.h"

#include "lib/base/error.h"
#include "lib/base/text/utf8.h"

namespace gxp {
namespace {

constexpr size_t kMaxSource = size_t{1} << 20;

void check_source(std::string_view source, const std::string& name) {
  if (source.size() > kMaxSource)
    fail(ErrorKind::kCorrupt, "read {}: it is longer than {} bytes", name, kMaxSource);
  for (size_t at = 0; at < source.size();) {
    const size_t length = utf8_length(source.substr(at));
    if (length == 0) fail(ErrorKind::kCorrupt, "read {}: byte {} is not UTF-8", name, at);
    at += length;
  }
}

}  // namespace

JinjaTemplate::JinjaTemplate(std::string_view source, std::string name) : name_(std::move(name)) {
  check_source(source, name_);
  int line = 1;
  try {
    tree_ = std::make_shared<const JinjaTree>(parse_jinja(source, line));
  } catch (const JinjaError& error) {
    fail(ErrorKind::kCorrupt, "read {}: line {}: {}", name_, line, error.what());
  }
}

JinjaOutput JinjaTemplate::render(const JinjaDict& variables, std::time_t now) const {
  int line = 1;
  try {
    return render_jinja(tree_->body, variables, now, line);
  } catch (const JinjaError& error) {
    fail(ErrorKind::kCorrupt, "render {}: line {}: {}", name_, line, error.what());
  }
}

}  // namespace gxp
