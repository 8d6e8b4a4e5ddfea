#include "lib/text/jinja/parser.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "lib/text/jinja/expression_parser.h"

namespace gxp {
namespace {

using Statement = JinjaStatement;

// Where a statement is.
struct Place {
  bool is_in_loop = false;     // where {% break %} may be
  bool has_own_scope = false;  // in a loop, a macro or a block
  bool is_captured = false;    // what it prints is not yet a part of the rendering
};

class JinjaParser {
 public:
  JinjaParser(std::vector<JinjaToken> tokens, int& line) : tokens_(std::move(tokens), line) {}

  JinjaTree run() {
    tree_.body = parse_body({});
    tree_.words = tokens_.take_words();
    return std::move(tree_);
  }

 private:
  // Up to a block that begins with one of `ends`, at whose name it stops, or to the end.
  JinjaBody parse_body(std::initializer_list<std::string_view> ends) {
    check_jinja_depth(++depth_);
    JinjaBody body;
    for (;;) {
      const JinjaToken& token = tokens_.now();
      if (token.kind == JinjaTokenKind::kEnd) {
        if (ends.size() > 0) jinja_fail("{{% {} %}} is missing", *(ends.end() - 1));
        break;
      }
      tokens_.skip();
      if (token.kind == JinjaTokenKind::kData) {
        Statement text;
        text.text = token.text;
        body.push_back(std::move(text));
      } else if (token.kind == JinjaTokenKind::kPrintBegin) {
        body.push_back(parse_print());
      } else {
        if (tokens_.now().kind == JinjaTokenKind::kName &&
            std::ranges::find(ends, tokens_.now().text) != ends.end())
          break;
        body.push_back(parse_statement());
        tokens_.expect(JinjaTokenKind::kBlockEnd, "'%}'");
      }
    }
    --depth_;
    return body;
  }

  // The same, after a block's own end, with another place; and past its end, up to "%}".
  JinjaBody parse_inner(std::initializer_list<std::string_view> ends, Place place) {
    tokens_.expect(JinjaTokenKind::kBlockEnd, "'%}'");
    std::swap(place, place_);
    JinjaBody body = parse_body(ends);
    std::swap(place, place_);
    return body;
  }

  Statement parse_print() {
    Statement print = start(Statement::Kind::kPrint);
    print.expressions.push_back(tokens_.parse_tuple());
    tokens_.expect(JinjaTokenKind::kPrintEnd, "'}}'");
    return print;
  }

  Statement start(Statement::Kind kind) {
    Statement statement;
    statement.kind = kind;
    statement.line = tokens_.now().line;
    return statement;
  }

  Statement parse_statement() {
    if (tokens_.skip_name("if")) return parse_if();
    if (tokens_.skip_name("for")) return parse_for();
    if (tokens_.skip_name("set")) return parse_set();
    if (tokens_.skip_name("with")) return parse_with();
    if (tokens_.skip_name("macro")) return parse_macro();
    if (tokens_.skip_name("generation")) return parse_generation();
    if (tokens_.is_name("break") || tokens_.is_name("continue")) {
      if (!place_.is_in_loop) jinja_fail("{{% {} %}} is not in a loop", tokens_.now().text);
      Statement jump =
          start(tokens_.is_name("break") ? Statement::Kind::kBreak : Statement::Kind::kContinue);
      tokens_.skip();
      return jump;
    }
    if (tokens_.now().kind != JinjaTokenKind::kName) tokens_.fail_expected("the name of a tag");
    if (tokens_.now().text.starts_with("end") || tokens_.is_name("else") || tokens_.is_name("elif"))
      jinja_fail("{{% {} %}} is unexpected", tokens_.now().text);
    jinja_fail("the tag {{% {} %}} is not supported in chat templates", tokens_.now().text);
  }

  Statement parse_if() {
    Statement node = start(Statement::Kind::kIf);
    do {
      node.expressions.push_back(tokens_.parse_or());
      node.bodies.push_back(parse_inner({"elif", "else", "endif"}, place_));
    } while (tokens_.skip_name("elif"));
    if (tokens_.skip_name("else")) node.bodies.push_back(parse_inner({"endif"}, place_));
    tokens_.skip();
    return node;
  }

  Statement parse_for() {
    Statement node = start(Statement::Kind::kFor);
    node.names = parse_targets();
    if (!tokens_.skip_name("in")) tokens_.fail_expected("'in'");
    node.expressions.push_back(tokens_.parse_or());
    node.expressions.push_back(tokens_.skip_name("if") ? tokens_.parse_expression() : nullptr);
    if (tokens_.is_name("recursive")) jinja_fail("a recursive loop is not supported");
    Place inner = place_;
    inner.has_own_scope = true;
    Place otherwise = inner;
    inner.is_in_loop = true;
    node.bodies.push_back(parse_inner({"else", "endfor"}, inner));
    if (tokens_.skip_name("else")) node.bodies.push_back(parse_inner({"endfor"}, otherwise));
    tokens_.skip();
    return node;
  }

  // "name" or "name, name", in parentheses or not.
  std::vector<std::string> parse_targets() {
    const bool has_parentheses = tokens_.skip_operator("(");
    std::vector<std::string> names = {parse_target()};
    while (tokens_.skip_operator(",")) names.push_back(parse_target());
    if (has_parentheses) tokens_.expect_operator(")");
    return names;
  }

  std::string parse_target() {
    constexpr std::array<std::string_view, 6> kConstants = {"true",  "True", "false",
                                                            "False", "none", "None"};
    if (std::ranges::find(kConstants, tokens_.now().text) != kConstants.end() ||
        tokens_.is_name("loop"))
      jinja_fail("'{}' cannot be set", tokens_.now().text);
    return tokens_.expect_name();
  }

  Statement parse_set() {
    Statement node = start(Statement::Kind::kSet);
    node.names = parse_targets();
    if (tokens_.skip_operator(".")) {
      if (node.names.size() > 1) tokens_.fail_expected("'='");
      node.kind = Statement::Kind::kSetAttribute;
      node.text = tokens_.expect_name();
    }
    if (tokens_.skip_operator("=")) {
      node.expressions.push_back(tokens_.parse_tuple());
      return node;
    }
    if (node.kind != Statement::Kind::kSet || node.names.size() > 1) tokens_.fail_expected("'='");
    node.kind = Statement::Kind::kSetBlock;
    node.expressions.push_back(tokens_.parse_filters_and_tests(
        tokens_.make(JinjaExpression::Kind::kName, kJinjaCaptured)));
    Place inner = place_;
    inner.is_in_loop = false;
    inner.has_own_scope = true;
    inner.is_captured = true;
    node.bodies.push_back(parse_inner({"endset"}, inner));
    tokens_.skip();
    return node;
  }

  Statement parse_with() {
    Statement node = start(Statement::Kind::kWith);
    while (tokens_.now().kind != JinjaTokenKind::kBlockEnd) {
      if (!node.names.empty()) tokens_.expect_operator(",");
      node.names.push_back(parse_target());
      tokens_.expect_operator("=");
      node.expressions.push_back(tokens_.parse_expression());
    }
    Place inner = place_;
    inner.has_own_scope = true;
    node.bodies.push_back(parse_inner({"endwith"}, inner));
    tokens_.skip();
    return node;
  }

  Statement parse_macro() {
    Statement node = start(Statement::Kind::kMacro);
    if (place_.has_own_scope)
      jinja_fail("a macro in a loop, a block or another macro is not supported");
    JinjaMacro macro;
    macro.name = parse_target();
    tokens_.expect_operator("(");
    while (!tokens_.skip_operator(")")) {
      if (!macro.parameters.empty()) tokens_.expect_operator(",");
      macro.parameters.push_back(parse_target());
      const bool has_default = tokens_.skip_operator("=");
      if (!has_default && !macro.defaults.empty() && macro.defaults.back() != nullptr)
        jinja_fail("a parameter without a default follows one with a default");
      macro.defaults.push_back(has_default ? tokens_.parse_expression() : nullptr);
    }
    tokens_.set_in_macro(true);
    macro.body = parse_inner({"endmacro"}, {.has_own_scope = true, .is_captured = true});
    tokens_.set_in_macro(false);
    tokens_.skip();
    node.names.push_back(macro.name);
    node.macro = std::make_unique<const JinjaMacro>(std::move(macro));
    return node;
  }

  Statement parse_generation() {
    Statement node = start(Statement::Kind::kGeneration);
    // transformers, too, then finds no spans, or wrong ones.
    if (place_.is_captured)
      jinja_fail(
          "{{% generation %}} in a macro, in {{% set %}} or in another {{% generation %}} is not "
          "supported");
    tree_.has_generation = true;
    node.bodies.push_back(
        parse_inner({"endgeneration"}, {.has_own_scope = true, .is_captured = true}));
    tokens_.skip();
    return node;
  }

  JinjaExpressionParser tokens_;
  uint32_t depth_ = 0;
  Place place_;
  JinjaTree tree_;
};

}  // namespace

JinjaTree parse_jinja(std::string_view source, int& line) {
  return JinjaParser(tokenize_jinja(source, line), line).run();
}

}  // namespace gxp
