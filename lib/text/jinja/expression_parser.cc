#include "lib/text/jinja/expression_parser.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace gxp {

void check_jinja_depth(uint32_t depth) {
  if (depth > kMaxJinjaDepth) jinja_fail("the template is nested deeper than {}", kMaxJinjaDepth);
}

const JinjaToken& JinjaExpressionParser::now() {
  line_ = tokens_[at_].line;
  return tokens_[at_];
}

const JinjaToken& JinjaExpressionParser::next() const {
  return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
}

bool JinjaExpressionParser::is(JinjaTokenKind kind, std::string_view text) {
  return now().kind == kind && now().text == text;
}

bool JinjaExpressionParser::skip_if(JinjaTokenKind kind, std::string_view text) {
  if (!is(kind, text)) return false;
  ++at_;
  return true;
}

void JinjaExpressionParser::fail_expected(std::string_view what) {
  const JinjaToken& token = now();
  // In the order of the kinds; "": the token's own text.
  constexpr std::array<std::string_view, 11> kNames = {"text",
                                                       "'{{'",
                                                       "'}}'",
                                                       "'{%'",
                                                       "'%}'",
                                                       "",
                                                       "a string",
                                                       "",
                                                       "",
                                                       "",
                                                       "the end of the template"};
  const std::string_view name = kNames[size_t(token.kind)];
  jinja_fail("{} was expected, not {}", what,
             name.empty() ? "'" + token.text + "'" : std::string(name));
}

void JinjaExpressionParser::expect(JinjaTokenKind kind, std::string_view what) {
  if (now().kind != kind) fail_expected(what);
  ++at_;
}

void JinjaExpressionParser::expect_operator(std::string_view name) {
  if (!skip_operator(name)) fail_expected(fmt::format("'{}'", name));
}

std::string JinjaExpressionParser::expect_name() {
  if (now().kind != JinjaTokenKind::kName) fail_expected("a name");
  words_.insert(now().text);
  return tokens_[at_++].text;
}

JinjaExpressionPtr JinjaExpressionParser::finish(JinjaExpression node) {
  node.line = line_;
  for (const JinjaExpressionPtr& operand : node.operands)
    if (operand != nullptr) node.depth = std::max(node.depth, operand->depth + 1);
  check_jinja_depth(node.depth);
  return std::make_unique<JinjaExpression>(std::move(node));
}

// Each nested expression passes here once.
JinjaExpressionPtr JinjaExpressionParser::parse_expression() {
  check_jinja_depth(++nesting_);
  JinjaExpressionPtr value = parse_or();
  while (skip_name("if")) {
    JinjaExpressionPtr condition = parse_or();
    JinjaExpressionPtr other = skip_name("else") ? parse_expression() : nullptr;
    value = make(JinjaExpression::Kind::kCondition, "", std::move(value), std::move(condition),
                 std::move(other));
  }
  --nesting_;
  return value;
}

// "a, b" is a tuple.
JinjaExpressionPtr JinjaExpressionParser::parse_tuple() {
  JinjaExpressionPtr first = parse_expression();
  if (!is_operator(",")) return first;
  JinjaExpression tuple;
  tuple.kind = JinjaExpression::Kind::kTuple;
  tuple.operands.push_back(std::move(first));
  while (skip_operator(",")) {
    if (now().kind == JinjaTokenKind::kPrintEnd || now().kind == JinjaTokenKind::kBlockEnd ||
        is_operator(")"))
      break;
    tuple.operands.push_back(parse_expression());
  }
  return finish(std::move(tuple));
}

JinjaExpressionPtr JinjaExpressionParser::parse_or() {
  JinjaExpressionPtr left = parse_and();
  while (skip_name("or")) left = make(JinjaExpression::Kind::kOr, "", std::move(left), parse_and());
  return left;
}

JinjaExpressionPtr JinjaExpressionParser::parse_and() {
  JinjaExpressionPtr left = parse_not();
  while (skip_name("and"))
    left = make(JinjaExpression::Kind::kAnd, "", std::move(left), parse_not());
  return left;
}

JinjaExpressionPtr JinjaExpressionParser::parse_not() {
  if (!skip_name("not")) return parse_compare();
  check_jinja_depth(++nesting_);
  JinjaExpressionPtr operand = parse_not();
  --nesting_;
  return make(JinjaExpression::Kind::kNot, "", std::move(operand));
}

// "" or the comparison that is here, which it skips.
std::string JinjaExpressionParser::skip_comparison() {
  if (now().kind == JinjaTokenKind::kOperator) {
    constexpr std::array<std::string_view, 6> kNames = {"==", "!=", "<", "<=", ">", ">="};
    if (std::ranges::find(kNames, now().text) != kNames.end()) return tokens_[at_++].text;
    return "";
  }
  if (skip_name("in")) return "in";
  if (!is_name("not") || next().kind != JinjaTokenKind::kName || next().text != "in") return "";
  at_ += 2;
  return "not in";
}

JinjaExpressionPtr JinjaExpressionParser::parse_compare() {
  JinjaExpression compare;
  compare.kind = JinjaExpression::Kind::kCompare;
  compare.operands.push_back(parse_sum());
  for (std::string name = skip_comparison(); !name.empty(); name = skip_comparison()) {
    compare.names.push_back(std::move(name));
    compare.operands.push_back(parse_sum());
  }
  if (compare.names.empty()) return std::move(compare.operands[0]);
  return finish(std::move(compare));
}

template <class ParseOperand>
JinjaExpressionPtr JinjaExpressionParser::parse_binary(
    std::initializer_list<std::string_view> names, ParseOperand parse_operand) {
  JinjaExpressionPtr left = parse_operand();
  while (now().kind == JinjaTokenKind::kOperator &&
         std::ranges::find(names, now().text) != names.end()) {
    const std::string name = tokens_[at_++].text;
    left = make(JinjaExpression::Kind::kBinary, name, std::move(left), parse_operand());
  }
  return left;
}

JinjaExpressionPtr JinjaExpressionParser::parse_sum() {
  return parse_binary({"+", "-"}, [this] { return parse_concat(); });
}

JinjaExpressionPtr JinjaExpressionParser::parse_concat() {
  JinjaExpression concat;
  concat.kind = JinjaExpression::Kind::kConcat;
  concat.operands.push_back(parse_product());
  while (skip_operator("~")) concat.operands.push_back(parse_product());
  if (concat.operands.size() == 1) return std::move(concat.operands[0]);
  return finish(std::move(concat));
}

JinjaExpressionPtr JinjaExpressionParser::parse_product() {
  return parse_binary({"*", "/", "//", "%"}, [this] {
    return parse_binary({"**"}, [this] { return parse_unary(true); });
  });
}

JinjaExpressionPtr JinjaExpressionParser::parse_unary(bool with_filters) {
  JinjaExpressionPtr node;
  if (is_operator("-") || is_operator("+")) {
    const auto kind =
        is_operator("-") ? JinjaExpression::Kind::kNegative : JinjaExpression::Kind::kPositive;
    ++at_;
    check_jinja_depth(++nesting_);
    node = make(kind, "", parse_unary(false));
    --nesting_;
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filters ? parse_filters_and_tests(std::move(node)) : std::move(node);
}

JinjaExpressionPtr JinjaExpressionParser::parse_primary() {
  const JinjaToken token = now();
  ++at_;
  switch (token.kind) {
    case JinjaTokenKind::kName:
      return parse_word(token.text);
    case JinjaTokenKind::kText: {
      std::string text = token.text;
      while (now().kind == JinjaTokenKind::kText) text += tokens_[at_++].text;
      words_.insert(text);
      return constant(std::move(text));
    }
    case JinjaTokenKind::kInteger:
    case JinjaTokenKind::kFloat:
      return parse_number(token);
    default:
      break;
  }
  if (token.kind == JinjaTokenKind::kOperator && token.text == "(") return parse_parentheses();
  if (token.kind == JinjaTokenKind::kOperator && token.text == "[") return parse_list();
  if (token.kind == JinjaTokenKind::kOperator && token.text == "{") return parse_dict();
  --at_;
  fail_expected("an expression");
}

JinjaExpressionPtr JinjaExpressionParser::constant(JinjaValue value) {
  JinjaExpression node;
  node.constant = std::move(value);
  return finish(std::move(node));
}

JinjaExpressionPtr JinjaExpressionParser::parse_word(const std::string& word) {
  if (word == "true" || word == "True") return constant(true);
  if (word == "false" || word == "False") return constant(false);
  if (word == "none" || word == "None") return constant(JinjaNone{});
  const bool is_implicit = word == "varargs" || word == "kwargs" || word == "caller";
  if (is_implicit && is_in_macro_) jinja_fail("'{}' in a macro is not supported", word);
  words_.insert(word);
  return make(JinjaExpression::Kind::kName, word);
}

JinjaExpressionPtr JinjaExpressionParser::parse_number(const JinjaToken& token) {
  const char* end = token.text.data() + token.text.size();
  int64_t whole = 0;
  double real = 0;
  const bool is_whole = token.kind == JinjaTokenKind::kInteger;
  const auto result = is_whole ? std::from_chars(token.text.data(), end, whole)
                               : std::from_chars(token.text.data(), end, real);
  if (result.ec != std::errc()) jinja_fail("the number {} is too large", token.text);
  return is_whole ? constant(whole) : constant(real);
}

JinjaExpressionPtr JinjaExpressionParser::parse_parentheses() {
  if (skip_operator(")")) return make(JinjaExpression::Kind::kTuple, "");
  JinjaExpressionPtr inner = parse_tuple();
  expect_operator(")");
  return inner;
}

JinjaExpressionPtr JinjaExpressionParser::parse_list() {
  JinjaExpression list;
  list.kind = JinjaExpression::Kind::kList;
  while (!is_operator("]")) {
    if (!list.operands.empty()) expect_operator(",");
    if (is_operator("]")) break;
    list.operands.push_back(parse_expression());
  }
  expect_operator("]");
  return finish(std::move(list));
}

JinjaExpressionPtr JinjaExpressionParser::parse_dict() {
  JinjaExpression dict;
  dict.kind = JinjaExpression::Kind::kDict;
  while (!is_operator("}")) {
    if (!dict.operands.empty()) expect_operator(",");
    if (is_operator("}")) break;
    dict.operands.push_back(parse_expression());
    expect_operator(":");
    dict.operands.push_back(parse_expression());
  }
  expect_operator("}");
  return finish(std::move(dict));
}

JinjaExpressionPtr JinjaExpressionParser::parse_postfix(JinjaExpressionPtr node) {
  for (;;) {
    if (skip_operator(".")) {
      if (now().kind == JinjaTokenKind::kInteger) {
        const JinjaToken token = now();
        ++at_;
        node = make(JinjaExpression::Kind::kItem, "", std::move(node), parse_number(token));
      } else {
        std::string name = expect_name();
        node = make(JinjaExpression::Kind::kAttribute, std::move(name), std::move(node));
      }
    } else if (skip_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (is_operator("(")) {
      node = parse_arguments(JinjaExpression::Kind::kCall, "", std::move(node));
    } else {
      return node;
    }
  }
}

JinjaExpressionPtr JinjaExpressionParser::parse_subscript(JinjaExpressionPtr node) {
  std::array<JinjaExpressionPtr, 3> parts;
  size_t colons = 0;
  while (!is_operator("]")) {
    if (is_operator(",")) jinja_fail("a tuple as an index is not supported");
    if (!skip_operator(":")) {
      parts[colons] = parse_expression();
      if (is_operator("]") || is_operator(",")) continue;
      expect_operator(":");
    }
    if (++colons > 2) fail_expected("']'");
  }
  ++at_;
  if (colons == 0 && parts[0] == nullptr) jinja_fail("an index is missing between '[' and ']'");
  if (colons == 0)
    return make(JinjaExpression::Kind::kItem, "", std::move(node), std::move(parts[0]));
  return make(JinjaExpression::Kind::kSlice, "", std::move(node), std::move(parts[0]),
              std::move(parts[1]), std::move(parts[2]));
}

// "(a, b, name=c)", or nothing.
JinjaExpressionPtr JinjaExpressionParser::parse_arguments(JinjaExpression::Kind kind,
                                                          std::string name,
                                                          JinjaExpressionPtr subject) {
  JinjaExpression node;
  node.kind = kind;
  node.name = std::move(name);
  node.operands.push_back(std::move(subject));
  if (!skip_operator("(")) return finish(std::move(node));
  while (!is_operator(")")) {
    if (node.operands.size() > 1) expect_operator(",");
    if (is_operator(")")) break;
    if (is_operator("*") || is_operator("**"))
      jinja_fail("'*' before an argument is not supported");
    const bool is_named = now().kind == JinjaTokenKind::kName &&
                          next().kind == JinjaTokenKind::kOperator && next().text == "=";
    if (!is_named && !node.names.empty()) fail_expected("a named argument");
    if (is_named) {
      node.names.push_back(expect_name());
      ++at_;
    }
    node.operands.push_back(parse_expression());
  }
  ++at_;
  return finish(std::move(node));
}

JinjaExpressionPtr JinjaExpressionParser::parse_filters_and_tests(JinjaExpressionPtr node) {
  for (;;) {
    if (skip_operator("|")) {
      std::string name = expect_name();
      node = parse_arguments(JinjaExpression::Kind::kFilter, std::move(name), std::move(node));
    } else if (skip_name("is")) {
      node = parse_test(std::move(node));
    } else if (is_operator("(")) {
      node = parse_arguments(JinjaExpression::Kind::kCall, "", std::move(node));
    } else {
      return node;
    }
  }
}

JinjaExpressionPtr JinjaExpressionParser::parse_test(JinjaExpressionPtr subject) {
  const bool is_negated = skip_name("not");
  const std::string name = expect_name();
  const bool begins_argument =
      now().kind == JinjaTokenKind::kText || now().kind == JinjaTokenKind::kInteger ||
      now().kind == JinjaTokenKind::kFloat || is_operator("[") || is_operator("{") ||
      (now().kind == JinjaTokenKind::kName && !is_name("else") && !is_name("or") &&
       !is_name("and"));
  if (is_name("is")) jinja_fail("'is' cannot follow a test");
  JinjaExpressionPtr test =
      begins_argument ? make(JinjaExpression::Kind::kTest, name, std::move(subject),
                             parse_postfix(parse_primary()))
                      : parse_arguments(JinjaExpression::Kind::kTest, name, std::move(subject));
  return is_negated ? make(JinjaExpression::Kind::kNot, "", std::move(test)) : std::move(test);
}

}  // namespace gxp
