#include "lib/text/jinja/renderer.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "lib/text/jinja/function.h"
#include "lib/text/jinja/loop.h"
#include "lib/text/jinja/operators.h"
#include "lib/text/jinja/scope.h"
#include "lib/text/jinja/written.h"

namespace gxp {
namespace {

class JinjaRenderer {
 public:
  JinjaRenderer(const JinjaDict& variables, std::time_t now, int& line)
      : variables_(variables), rendering_(now), line_(line) {}

  JinjaOutput run(const JinjaBody& body) {
    run_body(body, root_);
    return {std::move(output_), std::move(generation_), std::move(iterations_)};
  }

 private:
  enum class Flow { kNext, kBreak, kContinue };

  // --- statements

  Flow run_body(const JinjaBody& body, JinjaScope& scope) {
    const JinjaNesting nesting(depth_);
    for (const JinjaStatement& statement : body) {
      rendering_.count_step();
      line_ = statement.line;
      const Flow flow = run_statement(statement, scope);
      if (flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
  }

  Flow run_statement(const JinjaStatement& statement, JinjaScope& scope) {
    using Kind = JinjaStatement::Kind;
    const Kind kind = statement.kind;
    if (kind == Kind::kIf) return run_if(statement, scope);
    if (kind == Kind::kBreak) return Flow::kBreak;
    if (kind == Kind::kContinue) return Flow::kContinue;
    if (kind == Kind::kWith) return run_with(statement, scope);
    if (kind == Kind::kText) print(statement.text);
    if (kind == Kind::kPrint) print_value(evaluate(*statement.expressions[0], scope));
    if (kind == Kind::kFor) run_for(statement, scope);
    if (kind == Kind::kSet)
      assign(statement.names, evaluate(*statement.expressions[0], scope), scope);
    if (kind == Kind::kSetAttribute) set_attribute(statement, scope);
    if (kind == Kind::kSetBlock) set_block(statement, scope);
    if (kind == Kind::kMacro) scope.set(statement.names[0], statement.macro.get());
    if (kind == Kind::kGeneration) run_generation(statement, scope);
    return Flow::kNext;
  }

  void print(std::string_view text) {
    if (output_.size() + text.size() > kMaxJinjaText)
      jinja_fail("the rendering is longer than {} bytes", kMaxJinjaText);
    rendering_.count_bytes(text.size());
    output_ += text;
  }

  void print_value(const JinjaValue& value) {
    value.text() != nullptr ? print(*value.text()) : print(printed(value));
  }

  // What `run` prints, as a text.
  std::string capture(const std::function<void()>& run) {
    std::string outer = std::exchange(output_, {});
    ++captures_;
    run();
    --captures_;
    return std::exchange(output_, std::move(outer));
  }

  Flow run_if(const JinjaStatement& statement, JinjaScope& scope) {
    size_t branch = 0;
    while (branch < statement.expressions.size() &&
           !is_true(evaluate(*statement.expressions[branch], scope)))
      ++branch;
    if (branch == statement.bodies.size()) return Flow::kNext;
    return run_body(statement.bodies[branch], scope);
  }

  Flow run_with(const JinjaStatement& statement, JinjaScope& scope) {
    JinjaScope inner{.outer = &scope};
    for (size_t at = 0; at < statement.names.size(); ++at)
      inner.set(statement.names[at], evaluate(*statement.expressions[at], scope));
    return run_body(statement.bodies[0], inner);
  }

  void assign(const std::vector<std::string>& names, const JinjaValue& value, JinjaScope& scope) {
    if (names.size() == 1) return scope.set(names[0], value);
    const JinjaValue::List items = items_of(value);
    if (items->items.size() != names.size())
      jinja_fail("{} values cannot be set to {} names", items->items.size(), names.size());
    for (size_t at = 0; at < names.size(); ++at) scope.set(names[at], items->items[at]);
  }

  void run_for(const JinjaStatement& statement, JinjaScope& scope) {
    const JinjaExpression* test = statement.expressions[1].get();
    const auto accepts = [&](const JinjaValue& item) {
      JinjaScope inner{.outer = &scope};
      assign(statement.names, item, inner);
      return is_true(evaluate(*test, inner));
    };
    JinjaLoop loop(evaluate(*statement.expressions[0], scope),
                   test == nullptr ? JinjaLoop::Accepts() : JinjaLoop::Accepts(accepts));
    // As in Jinja, where {% break %} and {% continue %} go past the mark of a complete iteration.
    bool has_completed = false;
    while (loop.advance()) {
      JinjaScope inner{.outer = &scope, .loop = &loop};
      assign(statement.names, loop.item(), inner);
      const size_t begin = output_.size();
      const Flow flow = run_body(statement.bodies[0], inner);
      note_iteration(loop.item(), begin);
      has_completed = has_completed || flow == Flow::kNext;
      if (flow == Flow::kBreak) break;
    }
    if (has_completed || statement.bodies.size() < 2) return;
    JinjaScope inner{.outer = &scope};
    run_body(statement.bodies[1], inner);
  }

  void note_iteration(const JinjaValue& item, size_t begin) {
    if (item.dict() == nullptr || captures_ > 0 || begin == output_.size()) return;
    rendering_.count_bytes(sizeof(JinjaIteration));
    iterations_.push_back({item.dict(), {uint32_t(begin), uint32_t(output_.size())}});
  }

  void set_attribute(const JinjaStatement& statement, JinjaScope& scope) {
    const JinjaValue owner = find_name(statement.names[0], scope);
    JinjaNamespace* names = owner.as_namespace();
    if (names == nullptr)
      jinja_fail("'{}.{}' cannot be set: '{}' is no namespace", statement.names[0], statement.text,
                 statement.names[0]);
    if (statement.text.starts_with('_'))
      jinja_fail("a namespace cannot have '{}': its name begins with '_'", statement.text);
    names->attributes.set(statement.text, evaluate(*statement.expressions[0], scope));
  }

  void set_block(const JinjaStatement& statement, JinjaScope& scope) {
    JinjaScope inner{.outer = &scope};
    inner.set(kJinjaCaptured, capture([&] { run_body(statement.bodies[0], inner); }));
    scope.set(statement.names[0], evaluate(*statement.expressions[0], inner));
  }

  void run_generation(const JinjaStatement& statement, JinjaScope& scope) {
    const size_t begin = output_.size();
    JinjaScope inner{.outer = &scope};
    run_body(statement.bodies[0], inner);
    generation_.push_back({uint32_t(begin), uint32_t(output_.size())});
  }

  // --- names

  JinjaValue find_name(const std::string& name, const JinjaScope& scope) {
    if (const JinjaValue* value = scope.find(name)) return *value;
    if (name == "loop" && scope.find_loop() != nullptr)
      jinja_fail("'loop' is supported only with one of its attributes");
    if (const JinjaValue* value = variables_.find(name)) return *value;
    if (const JinjaFunction* function = find_jinja_global(name)) return function;
    return JinjaUndefined{
        std::make_shared<const std::string>(fmt::format("'{}' is undefined", name))};
  }

  // --- expressions

  JinjaValue evaluate(const JinjaExpression& node, JinjaScope& scope) {
    const JinjaNesting nesting(depth_);
    rendering_.count_step();
    line_ = node.line;
    using Kind = JinjaExpression::Kind;
    switch (node.kind) {
      case Kind::kConstant:
        return node.constant;
      case Kind::kName:
        return find_name(node.name, scope);
      case Kind::kNot:
        return !is_true(evaluate(*node.operands[0], scope));
      case Kind::kAnd:
      case Kind::kOr:
        return evaluate_choice(node, scope);
      case Kind::kCondition:
        return evaluate_condition(node, scope);
      case Kind::kAttribute:
        return evaluate_attribute(node, scope);
      case Kind::kCall:
        return evaluate_call(node, scope);
      case Kind::kFilter:
      case Kind::kTest:
        return evaluate_filter(node, scope);
      case Kind::kCompare:
        return evaluate_compare(node, scope);
      case Kind::kConcat:
        return evaluate_concat(node, scope);
      default:
        return evaluate_rest(node, scope);
    }
  }

  JinjaValue evaluate_rest(const JinjaExpression& node, JinjaScope& scope) {
    using Kind = JinjaExpression::Kind;
    if (node.kind == Kind::kList || node.kind == Kind::kTuple) return evaluate_list(node, scope);
    if (node.kind == Kind::kDict) return evaluate_dict(node, scope);
    if (node.kind == Kind::kSlice) return evaluate_slice(node, scope);
    const JinjaValue first = evaluate(*node.operands[0], scope);
    if (node.kind == Kind::kNegative) return negated(first);
    if (node.kind == Kind::kPositive) return negated(negated(first));
    const JinjaValue second = evaluate(*node.operands[1], scope);
    if (node.kind == Kind::kItem) return item_of(first, second);
    return apply_jinja(node.name, first, second, rendering_);
  }

  JinjaValue evaluate_choice(const JinjaExpression& node, JinjaScope& scope) {
    JinjaValue left = evaluate(*node.operands[0], scope);
    const bool is_decided = is_true(left) == (node.kind == JinjaExpression::Kind::kOr);
    return is_decided ? left : evaluate(*node.operands[1], scope);
  }

  JinjaValue evaluate_condition(const JinjaExpression& node, JinjaScope& scope) {
    if (is_true(evaluate(*node.operands[1], scope))) return evaluate(*node.operands[0], scope);
    if (node.operands[2] != nullptr) return evaluate(*node.operands[2], scope);
    return JinjaUndefined{
        std::make_shared<const std::string>("an 'if' without 'else' has given no value")};
  }

  // That which the node `loop` is; null: it is something else.
  static JinjaLoop* find_named_loop(const JinjaExpression& node, const JinjaScope& scope) {
    const bool is_name = node.kind == JinjaExpression::Kind::kName && node.name == "loop";
    return is_name ? scope.find_loop() : nullptr;
  }

  JinjaValue evaluate_attribute(const JinjaExpression& node, JinjaScope& scope) {
    const JinjaExpression& owner = *node.operands[0];
    if (JinjaLoop* loop = find_named_loop(owner, scope)) return loop->attribute(node.name);
    return attribute_of(evaluate(owner, scope), node.name);
  }

  JinjaValue evaluate_list(const JinjaExpression& node, JinjaScope& scope) {
    const bool is_tuple = node.kind == JinjaExpression::Kind::kTuple;
    JinjaList list{.kind = is_tuple ? JinjaListKind::kTuple : JinjaListKind::kList};
    for (const auto& operand : node.operands) list.items.push_back(evaluate(*operand, scope));
    rendering_.count_bytes(list.items.size() * sizeof(JinjaValue));
    return list;
  }

  JinjaValue evaluate_dict(const JinjaExpression& node, JinjaScope& scope) {
    JinjaDict dict;
    for (size_t at = 0; at < node.operands.size(); at += 2) {
      const JinjaValue key = evaluate(*node.operands[at], scope);
      if (key.text() == nullptr || key.is_markup())
        jinja_fail("a {} as the key of a dict is not supported", kind_of(key));
      rendering_.count_bytes(key.text()->size() + sizeof(JinjaValue));
      dict.set(*key.text(), evaluate(*node.operands[at + 1], scope));
    }
    return dict;
  }

  JinjaValue evaluate_slice(const JinjaExpression& node, JinjaScope& scope) {
    const JinjaValue value = evaluate(*node.operands[0], scope);
    const auto bound = [&](size_t at) {
      return node.operands[at] == nullptr ? JinjaValue(JinjaNone{})
                                          : evaluate(*node.operands[at], scope);
    };
    JinjaSlice slice;
    slice.start = bound(1);
    slice.stop = bound(2);
    slice.step = bound(3);
    const size_t size = value.text() != nullptr ? value.text()->size() : 0;
    rendering_.count_bytes(value.list() != nullptr ? length_of(value) * sizeof(JinjaValue) : size);
    return slice_of(value, slice);
  }

  JinjaValue evaluate_compare(const JinjaExpression& node, JinjaScope& scope) {
    JinjaValue left = evaluate(*node.operands[0], scope);
    for (size_t at = 0; at < node.names.size(); ++at) {
      JinjaValue right = evaluate(*node.operands[at + 1], scope);
      if (!compare_jinja(node.names[at], left, right)) return false;
      left = std::move(right);
    }
    return true;
  }

  JinjaValue evaluate_concat(const JinjaExpression& node, JinjaScope& scope) {
    std::string text;
    for (const auto& operand : node.operands) {
      text += printed(evaluate(*operand, scope));
      if (text.size() > kMaxJinjaText) jinja_fail("a text is longer than {} bytes", kMaxJinjaText);
    }
    rendering_.count_bytes(text.size());
    return text;
  }

  // The operands after the first, of which the last ones have names.
  void evaluate_arguments(const JinjaExpression& node, JinjaScope& scope, JinjaCall& call) {
    const size_t unnamed = node.operands.size() - node.names.size();
    for (size_t at = 1; at < node.operands.size(); ++at) {
      JinjaValue value = evaluate(*node.operands[at], scope);
      if (at < unnamed) {
        call.arguments.push_back(std::move(value));
      } else {
        call.named.emplace_back(node.names[at - unnamed], std::move(value));
      }
    }
  }

  JinjaValue evaluate_filter(const JinjaExpression& node, JinjaScope& scope) {
    const JinjaFunction& function = node.kind == JinjaExpression::Kind::kTest
                                        ? find_jinja_test(node.name)
                                        : find_jinja_filter(node.name);
    const JinjaValue subject = evaluate(*node.operands[0], scope);
    JinjaCall call{rendering_, subject};
    evaluate_arguments(node, scope, call);
    line_ = node.line;
    return run_jinja(function, call);
  }

  JinjaValue evaluate_call(const JinjaExpression& node, JinjaScope& scope) {
    const JinjaExpression& callee = *node.operands[0];
    const bool is_attribute = callee.kind == JinjaExpression::Kind::kAttribute;
    JinjaValue subject;
    JinjaValue function;
    if (is_attribute && find_named_loop(*callee.operands[0], scope) == nullptr) {
      subject = evaluate(*callee.operands[0], scope);
      function = attribute_of(subject, callee.name);
    } else {
      function = evaluate(callee, scope);
    }
    if (function.undefined() != nullptr) attribute_of(function, "call");  // says what is undefined
    JinjaCall call{rendering_, subject};
    evaluate_arguments(node, scope, call);
    line_ = node.line;
    if (function.macro() != nullptr) return call_macro(*function.macro(), call);
    if (function.function() == nullptr) jinja_fail("a {} cannot be called", kind_of(function));
    const bool is_method = function.function() != find_jinja_global(function.function()->name);
    if (is_method && !is_attribute) jinja_fail("a method apart from its value is not supported");
    return run_jinja(*function.function(), call);
  }

  JinjaValue call_macro(const JinjaMacro& macro, const JinjaCall& call) {
    if (call.arguments.size() > macro.parameters.size())
      jinja_fail("the macro '{}' takes {} arguments at most", macro.name, macro.parameters.size());
    for (const auto& [name, value] : call.named) {
      const auto place = std::ranges::find(macro.parameters, name) - macro.parameters.begin();
      if (size_t(place) < call.arguments.size() || size_t(place) == macro.parameters.size())
        jinja_fail("the macro '{}' takes no argument '{}' here", macro.name, name);
    }
    JinjaScope scope{.outer = &root_};
    return capture([&] {
      for (const std::string& name : macro.parameters) scope.set(name, JinjaUndefined{});
      for (size_t at = 0; at < macro.parameters.size(); ++at) bind(macro, at, call, scope);
      run_body(macro.body, scope);
    });
  }

  void bind(const JinjaMacro& macro, size_t at, const JinjaCall& call, JinjaScope& scope) {
    const std::string& name = macro.parameters[at];
    if (at < call.arguments.size()) return scope.set(name, call.arguments[at]);
    const auto named = std::ranges::find(call.named, name, &JinjaDict::Entry::first);
    if (named != call.named.end()) return scope.set(name, named->second);
    const auto* otherwise = macro.defaults[at].get();
    if (otherwise != nullptr) return scope.set(name, evaluate(*otherwise, scope));
    scope.set(name, JinjaUndefined{std::make_shared<const std::string>(
                        fmt::format("the macro's parameter '{}' was not given", name))});
  }

  const JinjaDict& variables_;
  JinjaRendering rendering_;
  int& line_;
  int depth_ = 0;
  JinjaScope root_;
  std::string output_;
  int captures_ = 0;  // that what is printed now goes into
  std::vector<ByteSpan> generation_;
  std::vector<JinjaIteration> iterations_;
};

}  // namespace

JinjaOutput render_jinja(const JinjaBody& body, const JinjaDict& variables, std::time_t now,
                         int& line) {
  return JinjaRenderer(variables, now, line).run(body);
}

}  // namespace gxp
