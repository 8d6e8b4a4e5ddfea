// Python pickles, read without running anything: a value tree in which what Python would import and
// call stays a symbol.
//
//   Python                                   here
//   None, bool, int, float, str, bytes       kNone, kBool, kInteger (kLong beyond 64 bits), kFloat,
//                                            kText (UTF-8), kBytes
//   tuple, list, dict, set, frozenset        kTuple, kList, kDict, kSet
//   collections.OrderedDict, defaultdict,    kDict, whose callable() is that global
//     Counter
//   a class or function                      kGlobal: text() is "module.name"
//   an object: f(*args), cls.__new__(*args)  kObject: callable() is the global, arguments() the
//                                            tuple, state() what __setstate__ would get, items()
//                                            what would be appended or, by pairs, set
//   a persistent id (torch: a storage)       kPersistent, arguments() is the id
//
// Any global is read; readers decide which ones they understand, and name the others in their
// errors. Values are indices into an arena: a value that occurs often is stored once, a value may
// contain itself, and neither reading nor destruction recurses. Callers that walk the tree must
// limit depth and visits.
//
// Protocols 2 to 5, with the opcodes that pickle.dumps and torch.save write. Refused: the text
// forms of protocol 0, instances by INST and OBJ, dicts by DICT, extension codes, buffers out of
// band, calls of what is no global or with keywords, two states of one object.
// Source: CPython 3.11, Lib/pickletools.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/zip/file_range.h"

namespace gxp {

// Limits of one pickle. A value takes up to 60 bytes of memory, an item of a container 4, and a
// text its own size: at most 500 MB in addition to the texts.
constexpr uint64_t kMaxPickleBytes = uint64_t{1} << 28;
constexpr uint64_t kMaxPickleValues = uint64_t{1} << 22;
constexpr uint64_t kMaxPickleItems = uint64_t{1} << 23;

enum class PickleKind : uint8_t {
  kNone,
  kBool,
  kInteger,
  kLong,  // text(): two's complement, little-endian
  kFloat,
  kText,
  kBytes,
  kTuple,
  kList,
  kDict,
  kSet,
  kGlobal,
  kObject,
  kPersistent,
};

class Pickle;

// One value of a Pickle, which must outlive it and stay where it is. Each accessor requires its
// kind; any other kind is a mistake of the caller (GXP_ASSERT). For input there are to_text() and
// its like below.
class PickleValue {
 public:
  PickleValue(const Pickle& pickle, uint32_t id) : pickle_(&pickle), id_(id) {}

  [[nodiscard]] PickleKind kind() const;
  [[nodiscard]] bool is(PickleKind kind) const { return this->kind() == kind; }
  [[nodiscard]] bool is_none() const { return is(PickleKind::kNone); }
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] int64_t integer() const;
  [[nodiscard]] double real() const;
  [[nodiscard]] std::string_view text() const;  // of kText, kBytes, kLong, kGlobal

  // Items of a tuple, list or set, entries of a dict, or what an object got.
  [[nodiscard]] size_t size() const;
  [[nodiscard]] PickleValue item(size_t i) const;   // not of a dict
  [[nodiscard]] PickleValue key(size_t i) const;    // of a dict
  [[nodiscard]] PickleValue value(size_t i) const;  // of a dict

  // The state of a kObject, kDict or kPersistent; None where there is none.
  [[nodiscard]] PickleValue callable() const;
  [[nodiscard]] PickleValue arguments() const;
  [[nodiscard]] PickleValue state() const;

  // Whether it is an object that this global, "module.name", makes.
  [[nodiscard]] bool is_call(std::string_view global) const;
  // For messages: "None", "the text 'a'", "a dict", "torch.device(...)".
  [[nodiscard]] std::string describe() const;
  // The same for the same value of one pickle: how often it occurs can be told.
  [[nodiscard]] uint32_t id() const { return id_; }

 private:
  const Pickle* pickle_;
  uint32_t id_;
};

class Pickle {
 public:
  // The pickle that begins at `begin` of the range. Reads through a buffer of 64 KiB. Errors: kIo;
  // kCorrupt, naming the file, the offset and the reason.
  static Pickle read(const FileRange& range, uint64_t begin = 0);

  [[nodiscard]] PickleValue root() const { return {*this, root_}; }
  [[nodiscard]] uint64_t end() const { return end_; }  // in the range: after the last opcode
  // All persistent ids, in the order in which they were made.
  [[nodiscard]] std::vector<PickleValue> persistent_ids() const;

 private:
  friend class PickleValue;
  friend class PickleMachine;

  struct Node {
    uint64_t payload = 0;  // the number, its bits, the text's offset, or the container's index
    uint32_t length = 0;   // of the text
    PickleKind kind = PickleKind::kNone;
  };
  struct Container {
    uint32_t callable = 0;  // indices of nodes_; 0 is None
    uint32_t arguments = 0;
    uint32_t state = 0;
    std::vector<uint32_t> items = {};
  };
  [[nodiscard]] const Container& container(uint32_t id) const;

  std::vector<Node> nodes_;
  std::vector<Container> containers_;
  std::string texts_;
  uint32_t root_ = 0;
  uint64_t end_ = 0;
};

// Typed access to input, as in json.h. kCorrupt, naming `where` ("read FILE: tensor NAME") and what
// there is, if the value is of another kind or the member is missing.
uint64_t to_unsigned(PickleValue value, const std::string& where);  // int, not negative
std::string to_text(PickleValue value, const std::string& where);
PickleValue to_dict(PickleValue value, const std::string& where);
PickleValue to_sequence(PickleValue value, const std::string& where);  // tuple or list

// The member of a dict with a text key; nothing if there is none. kCorrupt if the key occurs twice:
// readers differ on which one counts. Cost: the whole dict.
std::optional<PickleValue> find_member(PickleValue dict, std::string_view key,
                                       const std::string& where);
PickleValue member(PickleValue dict, std::string_view key, const std::string& where);

}  // namespace gxp
