// Pickle::read(): the stack machine that a pickle is a program for.
#include <algorithm>
#include <unordered_map>

#include "lib/base/text/utf8.h"
#include "lib/ckpt/torch/pickle.h"
#include "lib/ckpt/torch/pickle_bytes.h"
#include "lib/ckpt/torch/pickle_opcodes.h"

namespace gxp {
namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t character = utf8_length(text);
    if (character == 0) return false;
    text.remove_prefix(character);
  }
  return true;
}

}  // namespace

class PickleMachine {
 public:
  PickleMachine(const FileRange& range, uint64_t begin) : bytes_(range, begin) {
    for (const uint64_t payload : {0, 0, 1})
      add({payload, 0, nodes().empty() ? PickleKind::kNone : PickleKind::kBool});
    add_container(PickleKind::kTuple, {});  // kEmptyTuple
  }
  Pickle run();

 private:
  using Id = uint32_t;
  using Node = Pickle::Node;
  using Container = Pickle::Container;
  static constexpr Id kNoneId = 0, kFalse = 1, kTrue = 2, kEmptyTuple = 3;

  std::vector<Node>& nodes() { return pickle_.nodes_; }
  [[nodiscard]] PickleKind kind(Id id) const { return pickle_.nodes_[id].kind; }
  Container& container(Id id) { return pickle_.containers_[nodes()[id].payload]; }
  std::string_view text(Id id) const { return PickleValue(pickle_, id).text(); }

  Id add(Node node);
  Id add_container(PickleKind kind, Container container);
  Id add_text(PickleKind kind, uint64_t length);
  Id add_long(uint64_t length);
  Id add_integer(int64_t value) { return add({uint64_t(value), 0, PickleKind::kInteger}); }
  Id add_global(std::string module, const std::string& name);
  void count_items(uint64_t count);

  void push(Id id) { stack_.push_back(id); }
  [[nodiscard]] size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  [[nodiscard]] Id top() const;
  Id pop();
  std::vector<Id> pop_marked();
  std::vector<Id> pop_some(size_t count);
  void pop_any();

  void execute(uint8_t opcode);
  bool execute_scalar(uint8_t opcode);
  bool execute_container(uint8_t opcode);
  bool execute_memo(uint8_t opcode);
  void execute_object(uint8_t opcode);

  void extend(const std::vector<Id>& items, std::initializer_list<PickleKind> kinds, bool pairs);
  Id call(Id callable, Id arguments);
  Id call_container(PickleKind kind, Id callable, Id arguments);
  void build();
  void remember(uint64_t index) { memo_[index] = top(); }
  void recall(uint64_t index);
  void check_frame(uint64_t bytes) const;

  PickleBytes bytes_;
  Pickle pickle_;
  std::vector<Id> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::unordered_map<uint64_t, Id> memo_;
  uint64_t items_ = 0;  // of all containers
};

PickleMachine::Id PickleMachine::add(Node node) {
  if (nodes().size() == kMaxPickleValues)
    bytes_.refuse("the pickle has more than {} values", kMaxPickleValues);
  nodes().push_back(node);
  return Id(nodes().size() - 1);
}

void PickleMachine::count_items(uint64_t count) {
  items_ += count;
  if (items_ > kMaxPickleItems)
    bytes_.refuse("the pickle's containers have more than {} items", kMaxPickleItems);
}

PickleMachine::Id PickleMachine::add_container(PickleKind kind, Container container) {
  count_items(container.items.size());
  pickle_.containers_.push_back(std::move(container));
  return add({pickle_.containers_.size() - 1, 0, kind});
}

PickleMachine::Id PickleMachine::add_text(PickleKind kind, uint64_t length) {
  const uint64_t begin = pickle_.texts_.size();
  bytes_.append(length, pickle_.texts_);
  if (kind == PickleKind::kText && !is_utf8(std::string_view(pickle_.texts_).substr(begin)))
    bytes_.refuse("a text is not UTF-8");
  return add({begin, uint32_t(length), kind});
}

PickleMachine::Id PickleMachine::add_long(uint64_t length) {
  if (length > sizeof(int64_t)) return add_text(PickleKind::kLong, length);
  const auto shift = int(8 * (sizeof(int64_t) - length));
  const uint64_t value = bytes_.little(length);
  return add_integer(length == 0 ? 0 : int64_t(value << shift) >> shift);
}

// Python 3 finds Python 2's modules under these names, too.
PickleMachine::Id PickleMachine::add_global(std::string module, const std::string& name) {
  if (module == "__builtin__") module = "builtins";
  if (module == "copy_reg") module = "copyreg";
  const uint64_t begin = pickle_.texts_.size();
  pickle_.texts_ += module + "." + name;
  return add({begin, uint32_t(pickle_.texts_.size() - begin), PickleKind::kGlobal});
}

PickleMachine::Id PickleMachine::top() const {
  if (stack_.size() <= bottom()) bytes_.refuse("the stack is empty");
  return stack_.back();
}

PickleMachine::Id PickleMachine::pop() {
  const Id id = top();
  stack_.pop_back();
  return id;
}

std::vector<PickleMachine::Id> PickleMachine::pop_some(size_t count) {
  if (stack_.size() - bottom() < count) bytes_.refuse("the stack has fewer than {} values", count);
  std::vector<Id> items(stack_.end() - std::ptrdiff_t(count), stack_.end());
  stack_.resize(stack_.size() - count);
  return items;
}

std::vector<PickleMachine::Id> PickleMachine::pop_marked() {
  if (marks_.empty()) bytes_.refuse("no mark is on the stack");
  std::vector<Id> items = pop_some(stack_.size() - marks_.back());
  marks_.pop_back();
  return items;
}

// POP takes a mark off, too, if nothing lies on it.
void PickleMachine::pop_any() {
  if (!marks_.empty() && marks_.back() == stack_.size()) {
    marks_.pop_back();
  } else {
    pop();
  }
}

void PickleMachine::extend(const std::vector<Id>& items, std::initializer_list<PickleKind> kinds,
                           bool pairs) {
  const Id target = top();
  if (std::ranges::find(kinds, kind(target)) == kinds.end())
    bytes_.refuse("items cannot be added to {}", PickleValue(pickle_, target).describe());
  if (pairs && items.size() % 2 != 0) bytes_.refuse("a key has no value");
  count_items(items.size());
  auto& all = container(target).items;
  all.insert(all.end(), items.begin(), items.end());
}

// A dict of () or of a list of pairs; a set of a list. What a defaultdict or a Counter is made of
// does not come as pairs: the items follow the call, but for a Counter's, which is its argument.
PickleMachine::Id PickleMachine::call_container(PickleKind kind, Id callable, Id arguments) {
  Container result{callable, arguments, kNoneId, {}};
  for (const Id argument : container(arguments).items) {
    const PickleKind given = this->kind(argument);
    if (given == PickleKind::kGlobal || given == PickleKind::kNone) continue;  // a default
    if (given < PickleKind::kTuple || given > PickleKind::kSet)
      bytes_.refuse("{} is called with {}", text(callable),
                    PickleValue(pickle_, argument).describe());
    const std::vector<Id>& items = container(argument).items;
    count_items(items.size());  // before they are copied
    if (kind == PickleKind::kSet || given == PickleKind::kDict) {
      result.items.insert(result.items.end(), items.begin(), items.end());
      continue;
    }
    for (const Id pair : items) {
      if ((this->kind(pair) != PickleKind::kTuple && this->kind(pair) != PickleKind::kList) ||
          container(pair).items.size() != 2)
        bytes_.refuse("{} is called with something other than a list of pairs", text(callable));
      for (const Id part : container(pair).items) result.items.push_back(part);
    }
  }
  return add_container(kind, std::move(result));
}

PickleMachine::Id PickleMachine::call(Id callable, Id arguments) {
  if (kind(callable) != PickleKind::kGlobal || kind(arguments) != PickleKind::kTuple)
    bytes_.refuse("a call of {} with {}, not of a class or function with a tuple",
                  PickleValue(pickle_, callable).describe(),
                  PickleValue(pickle_, arguments).describe());
  const std::string_view name = text(callable);
  for (const std::string_view dict :
       {"collections.OrderedDict", "collections.defaultdict", "collections.Counter"}) {
    if (name == dict) return call_container(PickleKind::kDict, callable, arguments);
  }
  if (name == "builtins.set" || name == "builtins.frozenset")
    return call_container(PickleKind::kSet, callable, arguments);
  return add_container(PickleKind::kObject, {callable, arguments, kNoneId, {}});
}

void PickleMachine::build() {
  const Id state = pop();
  const Id target = top();
  if (kind(target) != PickleKind::kObject && kind(target) != PickleKind::kDict)
    bytes_.refuse("a state is set on {}", PickleValue(pickle_, target).describe());
  if (container(target).state != kNoneId) bytes_.refuse("an object's state is set twice");
  container(target).state = state;
}

void PickleMachine::recall(uint64_t index) {
  const auto found = memo_.find(index);
  if (found == memo_.end()) bytes_.refuse("memo {} is empty", index);
  push(found->second);
}

void PickleMachine::check_frame(uint64_t bytes) const {
  if (bytes > bytes_.remaining())
    bytes_.refuse("a frame of {} bytes, but {} remain", bytes, bytes_.remaining());
}

// Three tables of opcodes.
// clang-format off
bool PickleMachine::execute_scalar(uint8_t opcode) {
  switch (opcode) {
    case kPickleNone: push(kNoneId); return true;
    case kPickleNewTrue: push(kTrue); return true;
    case kPickleNewFalse: push(kFalse); return true;
    case kPickleBinInt: push(add_integer(int32_t(bytes_.little(4)))); return true;
    case kPickleBinInt1: push(add_integer(int64_t(bytes_.little(1)))); return true;
    case kPickleBinInt2: push(add_integer(int64_t(bytes_.little(2)))); return true;
    case kPickleLong1: push(add_long(bytes_.little(1))); return true;
    case kPickleLong4: push(add_long(bytes_.little(4))); return true;
    case kPickleBinFloat: push(add({bytes_.big(8), 0, PickleKind::kFloat})); return true;
    case kPickleShortBinString: push(add_text(PickleKind::kText, bytes_.little(1))); return true;
    case kPickleBinString: push(add_text(PickleKind::kText, bytes_.little(4))); return true;
    case kPickleShortBinUnicode: push(add_text(PickleKind::kText, bytes_.little(1))); return true;
    case kPickleBinUnicode: push(add_text(PickleKind::kText, bytes_.little(4))); return true;
    case kPickleBinUnicode8: push(add_text(PickleKind::kText, bytes_.little(8))); return true;
    case kPickleShortBinBytes: push(add_text(PickleKind::kBytes, bytes_.little(1))); return true;
    case kPickleBinBytes: push(add_text(PickleKind::kBytes, bytes_.little(4))); return true;
    case kPickleBinBytes8: push(add_text(PickleKind::kBytes, bytes_.little(8))); return true;
    case kPickleByteArray8: push(add_text(PickleKind::kBytes, bytes_.little(8))); return true;
    default: return false;
  }
}

bool PickleMachine::execute_container(uint8_t opcode) {
  using enum PickleKind;
  switch (opcode) {
    case kPickleMark: marks_.push_back(stack_.size()); return true;
    case kPickleEmptyTuple: push(kEmptyTuple); return true;
    case kPickleEmptyList: push(add_container(kList, {})); return true;
    case kPickleEmptyDict: push(add_container(kDict, {})); return true;
    case kPickleEmptySet: push(add_container(kSet, {})); return true;
    case kPickleTuple: push(add_container(kTuple, {.items = pop_marked()})); return true;
    case kPickleTuple1: push(add_container(kTuple, {.items = pop_some(1)})); return true;
    case kPickleTuple2: push(add_container(kTuple, {.items = pop_some(2)})); return true;
    case kPickleTuple3: push(add_container(kTuple, {.items = pop_some(3)})); return true;
    case kPickleList: push(add_container(kList, {.items = pop_marked()})); return true;
    case kPickleFrozenSet: push(add_container(kSet, {.items = pop_marked()})); return true;
    case kPickleAppend: extend(pop_some(1), {kList, kObject}, false); return true;
    case kPickleAppends: extend(pop_marked(), {kList, kObject}, false); return true;
    case kPickleSetItem: extend(pop_some(2), {kDict, kObject}, true); return true;
    case kPickleSetItems: extend(pop_marked(), {kDict, kObject}, true); return true;
    case kPickleAddItems: extend(pop_marked(), {kSet}, false); return true;
    default: return false;
  }
}

bool PickleMachine::execute_memo(uint8_t opcode) {
  switch (opcode) {
    case kPicklePop: pop_any(); return true;
    case kPicklePopMark: pop_marked(); return true;
    case kPickleDup: push(top()); return true;
    case kPickleBinGet: recall(bytes_.little(1)); return true;
    case kPickleLongBinGet: recall(bytes_.little(4)); return true;
    case kPickleBinPut: remember(bytes_.little(1)); return true;
    case kPickleLongBinPut: remember(bytes_.little(4)); return true;
    case kPickleMemoize: remember(memo_.size()); return true;
    case kPickleFrame: check_frame(bytes_.little(8)); return true;
    default: return false;
  }
}
// clang-format on

void PickleMachine::execute_object(uint8_t opcode) {
  switch (opcode) {
    case kPickleGlobal: {
      const std::string module = bytes_.line();
      return push(add_global(module, bytes_.line()));
    }
    case kPickleStackGlobal: {
      const auto names = pop_some(2);
      for (const Id name : names) {
        if (kind(name) != PickleKind::kText) bytes_.refuse("a global's name is not a text");
      }
      return push(add_global(std::string(text(names[0])), std::string(text(names[1]))));
    }
    case kPickleNewObjEx:
      if (const Id keywords = pop();
          kind(keywords) != PickleKind::kDict || !container(keywords).items.empty())
        bytes_.refuse("an object is constructed with keyword arguments");
      [[fallthrough]];
    case kPickleReduce:
    case kPickleNewObj: {
      const auto parts = pop_some(2);
      return push(call(parts[0], parts[1]));
    }
    case kPickleBuild:
      return build();
    case kPickleBinPersId:
      return push(add_container(PickleKind::kPersistent, {.arguments = pop()}));
    default:
      bytes_.refuse("opcode 0x{:02x} is unknown or not supported", opcode);
  }
}

void PickleMachine::execute(uint8_t opcode) {
  if (!execute_scalar(opcode) && !execute_container(opcode) && !execute_memo(opcode))
    execute_object(opcode);
}

Pickle PickleMachine::run() {
  const uint8_t first = bytes_.byte();
  const uint8_t protocol = first == kPickleProto ? bytes_.byte() : 0;
  if (protocol < 2 || protocol > 5)
    bytes_.refuse("this is not the start of a pickle of protocol 2 to 5");
  for (;;) {
    bytes_.mark_opcode();
    const uint8_t opcode = bytes_.byte();
    if (opcode == kPickleStop) break;
    execute(opcode);
  }
  pickle_.root_ = pop();
  if (!stack_.empty() || !marks_.empty()) bytes_.refuse("the pickle ends with values left over");
  pickle_.end_ = bytes_.position();
  return std::move(pickle_);
}

Pickle Pickle::read(const FileRange& range, uint64_t begin) {
  GXP_ASSERT(begin <= range.bytes);
  return PickleMachine(range, begin).run();
}

}  // namespace gxp
