#include "lib/ckpt/torch/torch_tensors.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "lib/ckpt/torch/pickle_writer.h"
#include "lib/ckpt/torch/strided_view.h"
#include "lib/ckpt/torch/torch_archive.h"
#include "lib/ckpt/zip/zip_writer.h"
#include "tests/catch.h"
#include "tests/ckpt/torch_samples.h"

namespace gxp {
namespace {

// The call of _rebuild_tensor_v2 or v3 with what is said here; by default two floats of a storage
// of two.
struct TensorCall {
  std::string function = "_rebuild_tensor_v2";
  std::string storage = "FloatStorage";
  std::string key = "0";
  int64_t numel = 2;
  int64_t offset = 0;
  std::vector<int64_t> size = {2};
  std::vector<int64_t> stride = {1};
  std::string dtype = "";     // v3
  std::string metadata = "";  // a key that is True
  std::string tag = "storage";
};

void put_numbers(PickleWriter& pickle, const std::vector<int64_t>& numbers) {
  pickle.begin_tuple();
  for (const int64_t number : numbers) pickle.integer(number);
  pickle.end_tuple();
}

std::string pickle_of(const TensorCall& call) {
  PickleWriter pickle;
  pickle.global("torch._utils", call.function);
  pickle.begin_tuple();
  pickle.begin_tuple();
  pickle.text(call.tag);
  pickle.global("torch", call.storage);
  for (const std::string& text : {call.key, std::string("cuda:0")}) pickle.text(text);
  pickle.integer(call.numel);
  pickle.end_tuple();
  pickle.persistent();
  pickle.integer(call.offset);
  put_numbers(pickle, call.size);
  put_numbers(pickle, call.stride);
  pickle.boolean(true);
  pickle.begin_ordered_dict();
  pickle.end_dict();
  if (!call.dtype.empty()) pickle.global("torch", call.dtype);
  if (!call.metadata.empty()) {
    pickle.begin_dict();
    pickle.text(call.metadata);
    pickle.boolean(true);
    pickle.end_dict();
  }
  pickle.end_tuple();
  pickle.reduce();
  return pickle.finish();
}

NamedTensor read_call(const TemporaryDirectory& dir, const std::string& pickle) {
  const std::string path = write_archive(dir, pickle, {counting_tensor("a", {2}, 1)});
  const auto archive = TorchArchive::open(FileRange::open(path));
  return archive.tensor(archive.root(), "t");
}

struct HostileTensor {
  TensorCall call;
  std::string words;
};

const std::vector<HostileTensor> kHostileTensors = {
    {{.function = "_rebuild_sparse_tensor"}, "torch._utils._rebuild_sparse_tensor(...), which"},
    {{.storage = "ComplexDoubleStorage", .numel = 1},
     "torch.ComplexDoubleStorage is not supported"},
    {{.key = "7"}, "'archive/data/7' is missing"},
    {{.key = "../0"}, "'archive/data/../0' is missing"},
    {{.numel = 3}, "has 8 bytes at offset 704, the tensor needs 12"},
    {{.numel = 1}, "has 8 bytes at offset 704, the tensor needs 4"},
    {{.storage = "DoubleStorage"}, "the tensor needs 16"},
    {{.numel = -1}, "found the integer -1"},
    {{.numel = std::numeric_limits<int64_t>::max()}, "exceeds 64 bits"},
    {{.offset = 1}, "reaches beyond its storage '0' of 8 bytes"},
    {{.offset = -1}, "offset: an integer that is not negative expected"},
    {{.size = {3}}, "reaches beyond"},
    {{.size = {-2}}, "size: an integer that is not negative"},
    {{.stride = {2}}, "reaches beyond"},
    {{.stride = {-1}}, "stride: an integer that is not negative"},
    {{.size = {2}, .stride = {1, 1}}, "1 sizes, but 2 strides"},
    {{.size = {1 << 30, 1 << 30, 16}, .stride = {0, 0, 0}}, "reaches beyond"},
    {{.size = {2}, .stride = {std::numeric_limits<int64_t>::max()}}, "reaches beyond"},
    {{.size = {int64_t{1} << 40}, .stride = {0}}, "claims 4398046511104 bytes of a storage of 8"},
    {{.size = {int64_t{1} << 62}, .stride = {0}}, "exceeds 64 bits"},
    {{.size = std::vector<int64_t>(65, 1), .stride = std::vector<int64_t>(65, 1)}, "65 dimensions"},
    {{.function = "_rebuild_tensor_v3", .dtype = "quint8"}, "torch.quint8 is not supported"},
    {{.function = "_rebuild_tensor_v3"}, "lacks argument 6"},
    {{.metadata = "conj"}, "has the text 'conj' set"},
    {{.tag = "module"}, "does not name a storage"},
};

std::map<std::string, std::string> expected_tensors(const std::string& name) {
  const auto json = nlohmann::json::parse(read_bytes(kTorchFixtures + name + ".expected.json"));
  std::map<std::string, std::string> result;
  for (const auto& [key, tensor] : json["tensors"].items())
    result["weight " + key] =
        fmt::format("{} ({}) {}", tensor["dtype"].get<std::string>(),
                    fmt::join(tensor["shape"].get<std::vector<uint64_t>>(), ", "),
                    tensor["sha256"].get<std::string>());
  return result;
}

// The elements of the view one by one, as the definition says.
std::vector<uint16_t> elements_of(const StridedView& view, const std::vector<uint16_t>& storage) {
  const auto count = checked_count(view.shape).value();
  std::vector<uint16_t> elements;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t rest = i, at = view.offset;
    for (size_t k = view.shape.size(); k-- > 0; rest /= view.shape[k])
      at += rest % view.shape[k] * view.strides[k];
    elements.push_back(storage[at]);
  }
  return elements;
}

// Up to four axes, some of them expanded, none beyond the storage.
StridedView random_view(std::mt19937& random, const FileRange& storage) {
  StridedView view{.storage = storage, .element = 2, .offset = random() % 50};
  for (size_t k = random() % 5; k > 0; --k) {
    view.shape.push_back(1 + random() % 7);
    view.strides.push_back(random() % 3 == 0 ? 0 : random() % 60);
  }
  if (random() % 2 == 0 && view.shape.size() > 1) {  // a transpose of consecutive elements
    view.strides.assign(view.shape.size(), 1);
    for (size_t k = view.shape.size(); k-- > 1;)
      view.strides[k - 1] = view.strides[k] * view.shape[k];
    std::swap(view.shape[0], view.shape.back());
    std::swap(view.strides[0], view.strides.back());
  }
  return view;
}

}  // namespace

TEST_CASE("a strided view has the elements that its definition says, from any on", "[ckpt]") {
  const TemporaryDirectory dir;
  std::mt19937 random(GENERATE(range(0, 40)));
  std::vector<uint16_t> storage(4000);
  std::iota(storage.begin(), storage.end(), uint16_t{0});
  const FileRange range =
      range_of(dir, {reinterpret_cast<const char*>(storage.data()), 2 * storage.size()});
  for (int i = 0; i < 25; ++i) {
    const StridedView view = random_view(random, range);
    if (!fits(view)) continue;
    const auto expected = elements_of(view, storage);
    const StridedView joined = with_joined_axes(view);
    const uint64_t step = 1 + random() % expected.size();
    std::vector<uint16_t> all;
    for (uint64_t begin = 0; begin < expected.size(); begin += step) {
      std::vector<uint16_t> part(std::min(step, expected.size() - begin));
      read_strided(joined, begin, memory_of(part));
      all.insert(all.end(), part.begin(), part.end());
    }
    CAPTURE(i, view.shape, view.strides, step);
    CHECK(all == expected);
  }
}

TEST_CASE("a transposed matrix of more than a window is read right", "[ckpt]") {
  const TemporaryDirectory dir;
  const uint64_t rows = GENERATE(3, 700), columns = GENERATE(5, 900);
  std::vector<uint32_t> storage(rows * columns);
  std::iota(storage.begin(), storage.end(), 0u);
  const StridedView view = with_joined_axes(
      {.storage =
           range_of(dir, {reinterpret_cast<const char*>(storage.data()), 4 * storage.size()}),
       .element = 4,
       .shape = {columns, rows},
       .strides = {1, columns}});
  std::vector<uint32_t> read(storage.size());
  read_strided(view, 0, memory_of(read));
  bool right = true;
  for (uint64_t i = 0; i < read.size(); ++i)
    right = right && read[i] == i % rows * columns + i / rows;
  CHECK(right);
}

TEST_CASE("axes that are stepped through like one are one", "[ckpt]") {
  StridedView view{.storage = {}, .shape = {2, 1, 3, 4}, .strides = {12, 99, 4, 1}};
  CHECK(with_joined_axes(view).shape == std::vector<uint64_t>{24});
  view.strides = {12, 99, 1, 3};
  CHECK(with_joined_axes(view).shape == std::vector<uint64_t>{2, 3, 4});
  view.shape = {1, 1};
  view.strides = {5, 5};
  CHECK(with_joined_axes(view).shape.empty());
}

TEST_CASE("torch's state dicts have the tensors that torch says", "[ckpt]") {
  const auto [file, expected] =
      GENERATE(table<std::string, std::string>({{"state_dict.pt", "state_dict"},
                                                {"state_dict_proto4.pt", "state_dict"},
                                                {"state_dict_legacy_nozip.pt", "state_dict"},
                                                {"new_dtypes.pt", "new_dtypes"}}));
  CAPTURE(file);
  NamedTensors read;
  {
    const auto archive = TorchArchive::open(FileRange::open(kTorchFixtures + file));
    CHECK(archive.verify() == (file != "state_dict_legacy_nozip.pt"));
    for (size_t i = 0; i < archive.root().size(); ++i) {
      CHECK(is_tensor(archive.root().value(i)));
      read.tensors.push_back(
          archive.tensor(archive.root().value(i), std::string(archive.root().key(i).text())));
    }
  }
  CHECK(digests(read) == expected_tensors(expected));
}

TEST_CASE("every hostile tensor is refused with the file's name and the fault", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const HostileTensor& hostile : kHostileTensors) {
    CAPTURE(hostile.words);
    const auto error = error_of([&] { read_call(dir, pickle_of(hostile.call)); });
    CHECK(error.kind == ErrorKind::kCorrupt);
    CHECK_THAT(error.message, Catch::Matchers::Contains(dir / "archive.pt") &&
                                  Catch::Matchers::Contains(hostile.words));
  }
  CHECK(sha256_hex(read_call(dir, pickle_of(TensorCall{}))) ==
        sha256_hex(counting_tensor("a", {2}, 1)));
}

TEST_CASE("what is no tensor is named, and wrappers end", "[ckpt]") {
  const TemporaryDirectory dir;
  std::string wrapped = "\x80\x02";
  for (int i = 0; i < 9; ++i) wrapped += "ctorch._utils\n_rebuild_parameter\n";
  wrapped += "N";
  for (int i = 0; i < 9; ++i) wrapped += "\x85R";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\x80\x02"
       "cos\nsystem\n)R.",
       "found os.system(...), which gxp does not know"},
      {"\x80\x02N.", "a tensor expected, found None"},
      {"\x80\x02"
       "ctorch._utils\n_rebuild_parameter\n)R.",
       "lacks argument 0"},
      {"\x80\x02"
       "ctorch._tensor\n_rebuild_from_type_v2\n(Nt\x85R.",
       "_rebuild_from_type_v2(...)"},
      {wrapped + ".", "a tensor expected, found torch._utils._rebuild_parameter(...)"}};
  for (const auto& [pickle, words] : cases) {
    CAPTURE(words);
    CHECK_THAT(error_of([&] { read_call(dir, pickle); }).message, Catch::Matchers::Contains(words));
  }
}

TEST_CASE("every element type is written as torch reads it, and read again", "[ckpt]") {
  const TemporaryDirectory dir;
  for (int i = 0; i <= int(StorageDType::kBool); ++i) {
    const auto dtype = StorageDType(i);
    CAPTURE(to_string(dtype));
    for (const std::vector<uint64_t>& shape :
         std::vector<std::vector<uint64_t>>{{}, {0, 3}, {2, 3}, {1}}) {
      const TensorInfo info{"t", Role::kWeight, dtype, shape};
      PickleWriter pickle;
      put_tensor(pickle, info, "0");
      const NamedTensor stored{info, [](uint64_t begin, Memory out) {
                                 for (size_t k = 0; k < out.bytes; ++k)
                                   out.data[k] = std::byte(begin + k);
                               }};
      const std::string path = write_archive(dir, pickle.finish(), {stored});
      const auto archive = TorchArchive::open(FileRange::open(path));
      const NamedTensor read = archive.tensor(archive.root(), "t");
      CHECK(archive.verify());
      CHECK(read.info == info);
      CHECK(sha256_hex(read) == sha256_hex(stored));
    }
  }
}

TEST_CASE("a tensor of a closed archive is read", "[ckpt]") {
  const TemporaryDirectory dir;
  const NamedTensor tensor =
      read_call(dir, pickle_of(TensorCall{.offset = 1, .size = {}, .stride = {}}));
  std::filesystem::remove(dir / "archive.pt");
  float value = 0;
  tensor.read(0, {reinterpret_cast<std::byte*>(&value), sizeof(value)});
  CHECK(value == 2);
}

TEST_CASE("archives that are not as torch.save makes them are refused", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto refused = [&](const std::vector<std::pair<std::string, std::string>>& members) {
    OutputFile file(dir / "a.pt");
    ZipWriter zip(file);
    for (const auto& [name, bytes] : members) zip.add(name, bytes);
    zip.finish();
    file.close();
    return error_of([&] { TorchArchive::open(FileRange::open(dir / "a.pt")); }).message;
  };
  using Catch::Matchers::Contains;
  const std::string none = "\x80\x02N.";
  CHECK(refused({{"a/data.pkl", none}, {"a/byteorder", "little"}}).empty());
  CHECK(refused({{"a/data.pkl", none}}).empty());
  CHECK_THAT(refused({}), Contains("without members"));
  CHECK_THAT(refused({{"data.pkl", none}}), Contains("is not under ''"));
  CHECK_THAT(refused({{"a/data.pkl", none}, {"b/data/0", ""}}),
             Contains("'b/data/0' is not under 'a/'"));
  CHECK_THAT(refused({{"a/data.pkl", none}, {"a/constants.pkl", none}}), Contains("TorchScript"));
  CHECK_THAT(refused({{"a/data.pkl", none}, {"a/byteorder", "big"}}),
             Contains("byte order is 'big'"));
  CHECK_THAT(refused({{"a/data.pkl", none + "x"}}), Contains("1 bytes after its pickle"));
  CHECK_THAT(refused({{"a/version", "3\n"}}), Contains("'a/data.pkl' is missing"));
}

TEST_CASE("a legacy file cut, prolonged or changed anywhere is refused or harmless", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string whole = read_bytes(kTorchFixtures + "state_dict_legacy_nozip.pt");
  const auto open = [&](const std::string& bytes) {
    const FileRange range = range_of(dir, bytes);
    return error_of([&] { TorchArchive::open(range); });
  };
  CHECK_FALSE(open(whole).kind);
  CHECK(open(whole + "x").says("1 bytes at offset 2289 belong to no storage"));
  for (size_t i = 0; i < whole.size(); i += 3) {
    CHECK(open(whole.substr(0, i)).kind == ErrorKind::kCorrupt);
    std::string changed = whole;
    changed[i] = char(changed[i] ^ (1 << (i % 8)));
    const auto error = open(changed);
    if (error.kind) CHECK(error.kind == ErrorKind::kCorrupt);
  }
}

}  // namespace gxp
