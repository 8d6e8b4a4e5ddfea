#include "tests/fuzz/pickle_mutator.h"

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "lib/ckpt/torch/pickle_opcodes.h"

namespace gxp {
namespace {

enum class Argument : uint8_t { kNone, kNumber, kText, kLines };

struct Form {
  uint8_t code;
  Argument argument = Argument::kNone;
  size_t bytes = 0;  // of the number, or of the text's length
};

constexpr Form kForms[] = {{kPickleProto, Argument::kNumber, 1},
                           {kPickleStop},
                           {kPickleMark},
                           {kPicklePop},
                           {kPicklePopMark},
                           {kPickleDup},
                           {kPickleNone},
                           {kPickleNewTrue},
                           {kPickleNewFalse},
                           {kPickleBinInt, Argument::kNumber, 4},
                           {kPickleBinInt1, Argument::kNumber, 1},
                           {kPickleBinInt2, Argument::kNumber, 2},
                           {kPickleLong1, Argument::kText, 1},
                           {kPickleLong4, Argument::kText, 4},
                           {kPickleBinFloat, Argument::kNumber, 8},
                           {kPickleShortBinString, Argument::kText, 1},
                           {kPickleBinString, Argument::kText, 4},
                           {kPickleShortBinUnicode, Argument::kText, 1},
                           {kPickleBinUnicode, Argument::kText, 4},
                           {kPickleBinUnicode8, Argument::kText, 8},
                           {kPickleShortBinBytes, Argument::kText, 1},
                           {kPickleBinBytes, Argument::kText, 4},
                           {kPickleBinBytes8, Argument::kText, 8},
                           {kPickleByteArray8, Argument::kText, 8},
                           {kPickleEmptyTuple},
                           {kPickleTuple},
                           {kPickleTuple1},
                           {kPickleTuple2},
                           {kPickleTuple3},
                           {kPickleEmptyList},
                           {kPickleList},
                           {kPickleAppend},
                           {kPickleAppends},
                           {kPickleEmptyDict},
                           {kPickleDict},
                           {kPickleSetItem},
                           {kPickleSetItems},
                           {kPickleEmptySet},
                           {kPickleAddItems},
                           {kPickleFrozenSet},
                           {kPickleBinGet, Argument::kNumber, 1},
                           {kPickleLongBinGet, Argument::kNumber, 4},
                           {kPickleBinPut, Argument::kNumber, 1},
                           {kPickleLongBinPut, Argument::kNumber, 4},
                           {kPickleMemoize},
                           {kPickleFrame, Argument::kNumber, 8},
                           {kPickleGlobal, Argument::kLines},
                           {kPickleStackGlobal},
                           {kPickleReduce},
                           {kPickleNewObj},
                           {kPickleNewObjEx},
                           {kPickleBuild},
                           {kPickleBinPersId}};

struct Opcode {
  const Form* form;
  std::string argument;  // without the length of a text, with both '\n' of lines
};

std::string little_endian(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += char(value >> (8 * i));
  return text;
}

uint64_t number_in(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | uint8_t(bytes[i]);
  return value;
}

std::optional<std::string_view> take(std::string_view& bytes, uint64_t count) {
  if (count > bytes.size()) return {};
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

std::optional<std::string_view> take_lines(std::string_view& bytes) {
  const size_t first = bytes.find('\n');
  const size_t second = first == std::string_view::npos ? first : bytes.find('\n', first + 1);
  return second == std::string_view::npos ? std::nullopt : take(bytes, second + 1);
}

std::optional<std::string_view> take_argument(const Form& form, std::string_view& bytes) {
  if (form.argument == Argument::kLines) return take_lines(bytes);
  const auto number = take(bytes, form.bytes);
  if (form.argument != Argument::kText || !number) return number;
  return take(bytes, number_in(*number));
}

// Nothing if an opcode is not known, or not whole.
std::vector<Opcode> opcodes_of(std::string_view pickle) {
  std::vector<Opcode> opcodes;
  while (!pickle.empty()) {
    const auto code = uint8_t(pickle.front());
    pickle.remove_prefix(1);
    const auto* const form = std::ranges::find(kForms, code, &Form::code);
    if (form == std::end(kForms)) return {};
    const auto argument = take_argument(*form, pickle);
    if (!argument) return {};
    opcodes.push_back({form, std::string(*argument)});
    if (code == kPickleStop) break;
  }
  return opcodes;
}

std::string bytes_of(const std::vector<Opcode>& opcodes) {
  std::string bytes;
  for (const Opcode& opcode : opcodes) {
    bytes += char(opcode.form->code);
    if (opcode.form->argument == Argument::kText)
      bytes += little_endian(opcode.argument.size(), opcode.form->bytes);
    bytes += opcode.argument;
  }
  return bytes;
}

class Mutator {
 public:
  Mutator(std::vector<Opcode> opcodes, uint32_t seed)
      : opcodes_(std::move(opcodes)), random_(seed) {}

  void alter() {
    // The protocol stays in front, the end at the end.
    if (opcodes_.size() < 3) return;
    const size_t at = 1 + below(opcodes_.size() - 2);
    switch (below(7)) {
      case 0:
        opcodes_.erase(place(at));
        return;
      case 1:
        opcodes_.insert(place(at), copy(at));
        return;
      case 2:
        std::swap(opcodes_[at], opcodes_[1 + below(opcodes_.size() - 2)]);
        return;
      case 3:
        return replace_code(opcodes_[at]);
      case 4:
        return copy_run(at);
      case 5:
        return replace_argument(opcodes_[at]);
      default:
        opcodes_.insert(place(at), new_opcode());
        return;
    }
  }

  [[nodiscard]] const std::vector<Opcode>& opcodes() const { return opcodes_; }

 private:
  size_t below(size_t limit) { return size_t(random_()) % limit; }
  std::vector<Opcode>::iterator place(size_t at) { return opcodes_.begin() + std::ptrdiff_t(at); }
  [[nodiscard]] Opcode copy(size_t at) const { return opcodes_[at]; }

  // With the argument of another opcode of its form, or the least.
  Opcode new_opcode() {
    const Form& form = kForms[below(std::size(kForms))];
    for (const Opcode& other : opcodes_) {
      if (other.form == &form && below(2) == 0) return other;
    }
    if (form.argument == Argument::kLines) return {&form, "torch._utils\n_rebuild_tensor_v2\n"};
    return {&form, std::string(form.argument == Argument::kNumber ? form.bytes : 0, '\0')};
  }

  void replace_code(Opcode& opcode) {
    const Form& form = kForms[below(std::size(kForms))];
    if (form.argument == opcode.form->argument && form.bytes == opcode.form->bytes)
      opcode.form = &form;
  }

  void copy_run(size_t at) {
    constexpr size_t kLongestRun = 16;
    const size_t count = std::min(1 + below(kLongestRun), opcodes_.size() - 1 - at);
    const std::vector<Opcode> run(place(at), place(at + count));
    opcodes_.insert(place(1 + below(opcodes_.size() - 1)), run.begin(), run.end());
  }

  void replace_argument(Opcode& opcode) {
    if (opcode.form->argument == Argument::kNone) return;
    if (opcode.form->argument == Argument::kNumber) {
      constexpr std::array<uint64_t, 8> kLimits = {
          0, 1, 127, 0x7fffffff, 0x80000000, 0xffffffff, uint64_t{1} << 63, UINT64_MAX};
      opcode.argument = little_endian(kLimits[below(kLimits.size())], opcode.form->bytes);
      return;
    }
    const Opcode& other = opcodes_[below(opcodes_.size())];
    if (other.form->argument == opcode.form->argument) opcode.argument = other.argument;
    if (opcode.form->bytes == 1)
      opcode.argument.resize(std::min<size_t>(opcode.argument.size(), 255));
  }

  std::vector<Opcode> opcodes_;
  std::minstd_rand random_;
};

}  // namespace

std::string mutate_pickle(std::string_view pickle, uint32_t seed) {
  std::vector<Opcode> opcodes = opcodes_of(pickle);
  if (opcodes.empty()) return "";
  Mutator mutator(std::move(opcodes), seed);
  for (uint32_t i = 0; i <= seed / 8 % 4; ++i) mutator.alter();
  return bytes_of(mutator.opcodes());
}

}  // namespace gxp
