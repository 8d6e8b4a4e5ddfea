// A template as a tree. Expressions and statements are at most kMaxJinjaDepth deep.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/text/jinja/value.h"

namespace gxp {

struct JinjaExpression;
using JinjaExpressionPtr = std::unique_ptr<JinjaExpression>;

struct JinjaExpression {
  enum class Kind {
    kConstant,   // constant
    kName,       // name
    kList,       // operands: the items
    kTuple,      // operands: the items
    kDict,       // operands: key, value, key, ...
    kAttribute,  // operand . name
    kItem,       // operand [ operand ]
    kSlice,      // operand [ operand : operand : operand ]; null where one is left out
    kCall,       // operand ( operands ), the last of them named by names
    kFilter,     // operand | name ( operands ), likewise
    kTest,       // operand is name ( operands ), likewise
    kNot,
    kNegative,
    kPositive,
    kBinary,   // operand name operand: + - * / // % **
    kConcat,   // operands: all that ~ joins
    kCompare,  // operand names[0] operand names[1] operand ...
    kAnd,
    kOr,
    kCondition,  // operands: value, condition, other value or null
  };
  Kind kind = Kind::kConstant;
  int line = 0;
  uint32_t depth = 1;
  std::string name{};
  JinjaValue constant{};
  std::vector<JinjaExpressionPtr> operands{};
  std::vector<std::string> names{};
};

struct JinjaStatement;
using JinjaBody = std::vector<JinjaStatement>;

// {% macro name(names...) %}: expressions has the default of each parameter, or null.
struct JinjaMacro {
  std::string name{};
  std::vector<std::string> parameters{};
  std::vector<JinjaExpressionPtr> defaults{};
  JinjaBody body;
};

struct JinjaStatement {
  enum class Kind {
    kText,   // text
    kPrint,  // expressions[0]
    kIf,     // if expressions[i]: bodies[i]; else, where there is one more: the last body
    kFor,    // names in expressions[0] if expressions[1] (or null): bodies[0], else bodies[1]
    kSet,    // names = expressions[0]
    kSetAttribute,  // names[0].text = expressions[0]
    kSetBlock,      // names[0] = bodies[0], or expressions[0] of it, in which it is kJinjaCaptured
    kWith,          // names[i] = expressions[i], each from outside, in bodies[0]
    kMacro,         // macro
    kGeneration,    // bodies[0]
    kBreak,
    kContinue,
  };
  Kind kind = Kind::kText;
  int line = 0;
  std::string text{};
  std::vector<std::string> names{};
  std::vector<JinjaExpressionPtr> expressions{};
  std::vector<JinjaBody> bodies{};
  std::unique_ptr<const JinjaMacro> macro{};
};

// A name that no template can write.
inline constexpr const char* kJinjaCaptured = " captured";

}  // namespace gxp
