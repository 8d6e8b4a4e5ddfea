#include "lib/ckpt/torch/pickle.h"

#include "lib/ckpt/torch/pickle_writer.h"
#include "tests/catch.h"
#include "tests/ckpt/torch_samples.h"

namespace gxp {
namespace {

std::string python_pickle(int protocol) {
  return read_bytes(fmt::format("{}/ckpt/pickles/protocol-{}.pickle", GXP_TEST_DATA, protocol));
}

// What make.py there pickles. Protocols without bytes and bytearrays call for them.
std::string expected_rendering(int protocol) {
  const std::string bytes = protocol == 2 ? "_codecs.encode('\1\u00ff', 'latin1')" : "b2";
  const std::string array = protocol == 2   ? "builtins.bytearray(_codecs.encode('abc', 'latin1'))"
                            : protocol == 5 ? "b3"
                                            : "builtins.bytearray(b3)";
  return "{'none': None, 'flags': (True, False), 'ints': [0, 255, 65535, -1, 2147483648, "
         "-1099511627776], 'big': an integer of more than 64 bits, 'f': -0.5, 'text': '\u00e9\n', "
         "'bytes': " +
         bytes +
         ", 'set': <7>, 'frozen': <8>, 'pair': ([1, 2], [1, 2]), 'od': {'a': 1}, 'count': {'a': 2, "
         "'b': 1}, 'default': {'k': []}, 'path': pathlib.PurePosixPath('x'), 'empty': ((), [], "
         "{}), "
         "'long': '" +
         std::string(300, 'y') + "', 'array': " + array + "}";
}

std::string pickle_of(const std::string& opcodes) { return "\x80\x02" + opcodes; }

struct HostilePickle {
  std::string opcodes;
  std::string words;  // that the message must have
};

const std::vector<HostilePickle> kHostilePickles = {
    {"", "truncated"},
    {".", "stack is empty"},
    {"NN.", "values left over"},
    {"(N.", "values left over"},
    {"(.", "stack is empty"},
    {"K", "truncated"},
    {std::string("X\xff\xff\xff\x7f", 5) + "abc", "2147483647 bytes of text would follow"},
    {std::string("\x8d\xff\xff\xff\xff\xff\xff\xff\xff", 9), "would follow, but 0 remain"},
    {std::string("\x95\x0a\0\0\0\0\0\0\0N.", 11), "a frame of 10 bytes"},
    {std::string("X\2\0\0\0\xc3\x28", 7), "not UTF-8"},
    {std::string("X\3\0\0\0\xed\xa0\x80", 8), "not UTF-8"},
    {"c" + std::string(300, 'm'), "more than 256 bytes"},
    {"t.", "no mark"},
    {"0.", "stack is empty"},
    {"\x85.", "fewer than 1"},
    {"(N\x86.", "fewer than 2"},
    {"h\x07.", "memo 7 is empty"},
    {"q\x07.", "stack is empty"},
    {")(NNu.", "items cannot be added to a tuple of 0"},
    {"N(Ne.", "items cannot be added to None"},
    {"}(Nu.", "a key has no value"},
    {"](NNu.", "items cannot be added to a list"},
    {"}Na.", "items cannot be added to a dict"},
    {"N)R.", "a call of None with a tuple of 0"},
    {"cos\nsystem\n]R.", "a call of os.system with a list"},
    {"cos\nsystem\n)R)R.", "a call of os.system(...) with"},
    {"ccollections\nOrderedDict\n](NNe\x85R.", "other than a list of pairs"},
    {"ccollections\nOrderedDict\nK\1\x85R.",
     "collections.OrderedDict is called with the integer 1"},
    {std::string("cbuiltins\nset\nX\1\0\0\0a\x85R.", 22),
     "builtins.set is called with the text 'a'"},
    {"Nb.", "stack is empty"},
    {"]Nb.", "a state is set on a list"},
    {"cA\nB\n)R}b}b.", "state is set twice"},
    {"cA\nB\n)}(NNu\x92.", "with keyword arguments"},
    {std::string("N\x93.", 3), "fewer than 2"},
    {"K\1K\2\x93.", "a global's name is not a text"},
    {"I1\n.", "opcode 0x49"},
    {"(cos\nsystem\no.", "opcode 0x6f"},
    {"(ios\nsystem\n.", "opcode 0x69"},
    {"P1\n.", "opcode 0x50"},
    {"\x82\x01.", "opcode 0x82"},
    {"\x97.", "opcode 0x97"},
};

}  // namespace

TEST_CASE("what CPython pickles is read in every protocol", "[ckpt]") {
  const TemporaryDirectory dir;
  const int protocol = GENERATE(2, 3, 4, 5);
  CAPTURE(protocol);
  std::string bytes = python_pickle(protocol);
  if (GENERATE(false, true)) bytes = "before" + bytes;
  const uint64_t begin = bytes[0] == 'b' ? 6 : 0;
  const Pickle pickle = Pickle::read(range_of(dir, bytes + "after"), begin);
  CHECK(render(pickle.root()) == expected_rendering(protocol));
  CHECK(pickle.end() == bytes.size());
}

TEST_CASE("objects come as the global, its arguments and their state", "[ckpt]") {
  const TemporaryDirectory dir;
  PickleWriter writer;
  writer.begin_list();
  for (const char* state : {"", "numel"}) {
    writer.global("deepspeed.utils", "address");
    writer.begin_tuple();
    writer.integer(26);
    writer.end_tuple();
    writer.new_object();
    if (*state == '\0') continue;
    writer.begin_dict();
    writer.text(state);
    writer.real(1e300);
    writer.end_dict();
    writer.build();
  }
  writer.end_list();
  const Pickle pickle = Pickle::read(range_of(dir, writer.finish()));
  CHECK(render(pickle.root()) ==
        "[deepspeed.utils.address(26), deepspeed.utils.address(26) with {'numel': 1e+300}]");
  CHECK(pickle.root().item(0).is_call("deepspeed.utils.address"));
}

TEST_CASE("what the writer writes is read as the same", "[ckpt]") {
  const TemporaryDirectory dir;
  PickleWriter writer;
  writer.begin_ordered_dict();
  writer.text("ints");
  writer.begin_list();
  for (const int64_t value : {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{-1}, int64_t{1} << 31,
                              std::numeric_limits<int64_t>::min()})
    writer.integer(value);
  writer.end_list();
  writer.none();
  writer.begin_tuple();
  for (const bool value : {true, false}) writer.boolean(value);
  writer.real(-0.1);
  writer.text("x\ny");
  writer.persistent();
  writer.end_tuple();
  writer.end_dict();
  const Pickle pickle = Pickle::read(range_of(dir, writer.finish()));
  CHECK(render(pickle.root()) ==
        "{'ints': [0, 255, 256, -1, 2147483648, -9223372036854775808], None: (True, False, -0.1, "
        "@'x\ny')}");
  CHECK(pickle.root().callable().text() == "collections.OrderedDict");
}

TEST_CASE("every hostile pickle is refused with the file's name and the fault", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const HostilePickle& hostile : kHostilePickles) {
    CAPTURE(hostile.opcodes, hostile.words);
    const FileRange range = range_of(dir, pickle_of(hostile.opcodes));
    const auto error = error_of([&] { Pickle::read(range); });
    CHECK(error.kind == ErrorKind::kCorrupt);
    CHECK_THAT(error.message, Catch::Matchers::Contains(dir / "bytes: pickle, offset") &&
                                  Catch::Matchers::Contains(hostile.words));
  }
  for (const char* head : {"N.", "\x80\x01N.", "\x80\x06N.", "(dp0\n."})
    CHECK(error_of([&] { Pickle::read(range_of(dir, head)); }).says("protocol 2 to 5"));
}

TEST_CASE("values that contain themselves or nest a million deep are read", "[ckpt]") {
  const TemporaryDirectory dir;
  std::string self = pickle_of("]q");
  self += '\0';
  self += "h";
  self += '\0';
  self += "a.";
  CHECK(render(Pickle::read(range_of(dir, self)).root(), 3) == "[[[...]]]");
  const Pickle deep =
      Pickle::read(range_of(dir, pickle_of("N" + std::string(1'000'000, '\x85') + ".")));
  CHECK(render(deep.root(), 2) == "((...))");
  // Thirty lists, each of the one before it twice: 2^30 paths, thirty values.
  std::string laughs = "]";
  for (int i = 0; i < 30; ++i) laughs += "2\x86";
  CHECK(render(Pickle::read(range_of(dir, pickle_of(laughs + "."))).root(), 2) ==
        "((..., ...), (..., ...))");
}

TEST_CASE("a pickle with too many values or items is refused", "[ckpt]") {
  const TemporaryDirectory dir;
  std::string many = "(";
  for (uint64_t i = 0; i < kMaxPickleValues; ++i) many += "K1";
  CHECK(error_of([&] {
          Pickle::read(range_of(dir, pickle_of(many + "t.")));
        }).says("4194304 values"));
  // One list of 2^16 that 300 sets are made of.
  std::string sets = "](" + std::string(65536, 'N') + "e\x85q";
  sets += '\0';
  for (int i = 0; i < 300; ++i) {
    sets += "cbuiltins\nset\nh";
    sets += '\0';
    sets += "R0";
  }
  CHECK(
      error_of([&] { Pickle::read(range_of(dir, pickle_of(sets + "."))); }).says("8388608 items"));
}

TEST_CASE("a pickle cut or changed anywhere is an error or harmless, never a crash", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string whole = python_pickle(GENERATE(2, 3, 4, 5));
  for (size_t i = 0; i < whole.size(); ++i) {
    const auto cut = error_of([&] { Pickle::read(range_of(dir, whole.substr(0, i))); });
    CHECK(cut.kind == ErrorKind::kCorrupt);
    std::string changed = whole;
    changed[i] = char(changed[i] ^ (1 << (i % 8)));
    const auto flip = error_of([&] { render(Pickle::read(range_of(dir, changed)).root()); });
    if (flip.kind) CHECK(flip.kind == ErrorKind::kCorrupt);
  }
}

TEST_CASE("typed access names what it found", "[ckpt]") {
  const TemporaryDirectory dir;
  PickleWriter writer;
  writer.begin_dict();
  for (const char* key : {"a", "b", "b"}) {
    writer.text(key);
    writer.integer(-5);
  }
  writer.end_dict();
  const Pickle pickle = Pickle::read(range_of(dir, writer.finish()));
  const PickleValue root = pickle.root();
  CHECK(member(root, "a", "x").integer() == -5);
  CHECK_FALSE(find_member(root, "c", "x"));
  CHECK(error_of([&] { member(root, "c", "read x"); }).says("read x: 'c' is missing"));
  CHECK(error_of([&] { member(root, "b", "x"); }).says("'b' occurs twice"));
  CHECK(error_of([&] { to_unsigned(root.value(0), "x"); }).says("found the integer -5"));
  CHECK(error_of([&] { to_text(root, "x"); }).says("a text expected, found a dict"));
  CHECK(error_of([&] { to_sequence(root, "x"); }).says("a tuple or list expected"));
  CHECK(error_of([&] { to_dict(root.key(0), "x"); }).says("found the text 'a'"));
}

}  // namespace gxp
