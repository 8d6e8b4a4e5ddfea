// Parses the expressions of a template: the part of the parser below statements.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/jinja/lexer.h"
#include "lib/text/jinja/syntax.h"

namespace gxp {

class JinjaExpressionParser {
 public:
  // `line` is kept at the line of the token that is looked at.
  JinjaExpressionParser(std::vector<JinjaToken> tokens, int& line)
      : tokens_(std::move(tokens)), line_(line) {}

  // An expression, and one that "a, b" makes a tuple of; one without "if" at its end; the filters and
  // tests that follow `node`.
  JinjaExpressionPtr parse_expression();
  JinjaExpressionPtr parse_tuple();
  JinjaExpressionPtr parse_or();
  JinjaExpressionPtr parse_filters_and_tests(JinjaExpressionPtr node);

  // The tokens from the current one on.
  const JinjaToken& now();
  [[nodiscard]] const JinjaToken& next() const;
  void skip() { ++at_; }
  bool is(JinjaTokenKind kind, std::string_view text);
  bool is_name(std::string_view name) { return is(JinjaTokenKind::kName, name); }
  bool is_operator(std::string_view name) { return is(JinjaTokenKind::kOperator, name); }
  bool skip_if(JinjaTokenKind kind, std::string_view text);
  bool skip_name(std::string_view name) { return skip_if(JinjaTokenKind::kName, name); }
  bool skip_operator(std::string_view name) { return skip_if(JinjaTokenKind::kOperator, name); }
  [[noreturn]] void fail_expected(std::string_view what);
  void expect(JinjaTokenKind kind, std::string_view what);
  void expect_operator(std::string_view name);
  std::string expect_name();

  // A node with these operands, at the current line.
  template <class... Operands>
  JinjaExpressionPtr make(JinjaExpression::Kind kind, std::string name, Operands... operands) {
    JinjaExpression node;
    node.kind = kind;
    node.name = std::move(name);
    (node.operands.push_back(std::move(operands)), ...);
    return finish(std::move(node));
  }

  // Names, attributes and strings of all expressions so far.
  std::set<std::string> take_words() { return std::move(words_); }
  void set_in_macro(bool is_in_macro) { is_in_macro_ = is_in_macro; }

 private:
  JinjaExpressionPtr finish(JinjaExpression node);
  JinjaExpressionPtr constant(JinjaValue value);
  template <class ParseOperand>
  JinjaExpressionPtr parse_binary(std::initializer_list<std::string_view> names,
                                  ParseOperand parse_operand);
  JinjaExpressionPtr parse_and();
  JinjaExpressionPtr parse_not();
  std::string skip_comparison();
  JinjaExpressionPtr parse_compare();
  JinjaExpressionPtr parse_sum();
  JinjaExpressionPtr parse_concat();
  JinjaExpressionPtr parse_product();
  JinjaExpressionPtr parse_unary(bool with_filters);
  JinjaExpressionPtr parse_primary();
  JinjaExpressionPtr parse_word(const std::string& word);
  JinjaExpressionPtr parse_number(const JinjaToken& token);
  JinjaExpressionPtr parse_parentheses();
  JinjaExpressionPtr parse_list();
  JinjaExpressionPtr parse_dict();
  JinjaExpressionPtr parse_postfix(JinjaExpressionPtr node);
  JinjaExpressionPtr parse_subscript(JinjaExpressionPtr node);
  JinjaExpressionPtr parse_arguments(JinjaExpression::Kind kind, std::string name,
                                     JinjaExpressionPtr subject);
  JinjaExpressionPtr parse_test(JinjaExpressionPtr subject);

  std::vector<JinjaToken> tokens_;
  int& line_;
  size_t at_ = 0;
  uint32_t nesting_ = 0;  // of the expression that is being parsed
  bool is_in_macro_ = false;
  std::set<std::string> words_;
};

// JinjaError: beyond kMaxJinjaDepth.
void check_jinja_depth(uint32_t depth);

}  // namespace gxp
