#include "lib/ckpt/torch/torch_archive.h"

#include <algorithm>

#include "lib/ckpt/zip/little_endian.h"

namespace gxp {
namespace {

// The magic number as LONG1 has it, after the opcode and its length. torch's own files begin with
// PROTO and, in protocol 4 and later, FRAME.
constexpr std::string_view kLegacyMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr size_t kLegacyHead = 32;
constexpr int64_t kLegacyVersion = 1001;

bool begins_like_legacy(const FileRange& range) {
  std::string head(std::min<uint64_t>(range.bytes, kLegacyHead), '\0');
  range.read(0, memory_of(head));
  return !head.empty() && head[0] == '\x80' && head.find(kLegacyMagic) != std::string::npos;
}

// "archive/": the first member's first component; all members lie under it.
std::string find_zip_root(const ZipArchive& zip, const std::string& where) {
  if (zip.members().empty()) fail(ErrorKind::kCorrupt, "{}: an archive without members", where);
  const std::string& first = zip.members().front().name;
  const std::string root = first.substr(0, first.find('/') + 1);
  for (const ZipMember& member : zip.members()) {
    if (root.empty() || !member.name.starts_with(root))
      fail(ErrorKind::kCorrupt, "{}: member '{}' is not under '{}', as all of torch.save's are",
           where, member.name, root);
  }
  return root;
}

void check_byte_order(const ZipArchive& zip, const std::string& root, const std::string& where) {
  const ZipMember* order = zip.find(root + "byteorder");
  if (order == nullptr) return;  // before torch 2.1: little-endian
  const std::string text = zip.read(*order, 16);
  if (text != "little")
    fail(ErrorKind::kCorrupt, "{}: its byte order is '{}'; gxp reads 'little'", where, text);
}

void check_legacy_head(const FileRange& range, uint64_t& at, const std::string& where) {
  const Pickle magic = Pickle::read(range, at);
  const Pickle version = Pickle::read(range, magic.end());
  const Pickle system = Pickle::read(range, version.end());
  at = system.end();
  if (!magic.root().is(PickleKind::kLong) || magic.root().text() != kLegacyMagic)
    fail(ErrorKind::kCorrupt, "{}: the magic number is not torch's", where);
  if (to_unsigned(version.root(), where + ": version") != kLegacyVersion)
    fail(ErrorKind::kCorrupt, "{}: version {}; gxp reads {}", where, version.root().integer(),
         kLegacyVersion);
  const auto order = find_member(system.root(), "little_endian", where + ": system");
  if (!order || !order->is(PickleKind::kBool) || !order->boolean())
    fail(ErrorKind::kCorrupt, "{}: it is not marked as little-endian", where);
}

// The storages that the object names, by key. Equal keys must say the same.
std::map<std::string, TorchStorage> named_storages(const Pickle& object, const std::string& where) {
  std::map<std::string, TorchStorage> storages;
  for (const PickleValue id : object.persistent_ids()) {
    const TorchStorage storage = to_storage(id, where);
    const auto [place, fresh] = storages.emplace(storage.key, storage);
    if (!fresh && place->second.bytes != storage.bytes)
      fail(ErrorKind::kCorrupt, "{}: storage '{}' has {} bytes, and {}", where, storage.key,
           place->second.bytes, storage.bytes);
  }
  return storages;
}

}  // namespace

bool TorchArchive::begins(const FileRange& range) {
  return ZipArchive::begins(range) || begins_like_legacy(range);
}

TorchArchive TorchArchive::open(const FileRange& range) {
  TorchArchive archive;
  archive.path_ = range.file->path();
  if (begins_like_legacy(range)) {
    archive.open_legacy(range);
  } else {
    archive.open_zip(range);
  }
  return archive;
}

void TorchArchive::open_zip(const FileRange& range) {
  const std::string where = "read " + path_;
  zip_ = ZipArchive::open(range);
  zip_root_ = find_zip_root(*zip_, where);
  if (zip_->find(zip_root_ + "constants.pkl") != nullptr)
    fail(ErrorKind::kCorrupt, "{}: a TorchScript archive, which is a program; save a state_dict",
         where);
  check_byte_order(*zip_, zip_root_, where);
  const ZipMember& member = zip_->require(zip_root_ + "data.pkl");
  zip_->verify(member);
  pickle_ = std::make_unique<const Pickle>(Pickle::read(zip_->payload(member)));
  if (pickle_->end() != member.bytes)
    fail(ErrorKind::kCorrupt, "{}: member '{}' has {} bytes after its pickle", where, member.name,
         member.bytes - pickle_->end());
}

void TorchArchive::open_legacy(const FileRange& range) {
  const std::string where = "read " + path_;
  uint64_t at = 0;
  check_legacy_head(range, at, where);
  pickle_ = std::make_unique<const Pickle>(Pickle::read(range, at));
  const Pickle keys = Pickle::read(range, pickle_->end());
  at = keys.end();
  const auto named = named_storages(*pickle_, where);
  const PickleValue list = to_sequence(keys.root(), where + ": storage keys");
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string key = to_text(list.item(i), where + ": storage key");
    const auto found = named.find(key);
    if (found == named.end())
      fail(ErrorKind::kCorrupt, "{}: storage '{}' belongs to no tensor", where, key);
    const TorchStorage& storage = found->second;
    std::string count(sizeof(uint64_t), '\0');
    range.read(at, memory_of(count));
    const uint64_t element = storage.dtype ? size_of(*storage.dtype) : 1;
    if (read_little<uint64_t>(count, 0) != storage.bytes / element)
      fail(ErrorKind::kCorrupt,
           "{}: storage '{}' at offset {} has {} elements, its tensors need {}", where, key,
           range.offset + at, read_little<uint64_t>(count, 0), storage.bytes / element);
    at += count.size();
    if (!storages_.emplace(key, range.part(at, storage.bytes, "storage '" + key + "'")).second)
      fail(ErrorKind::kCorrupt, "{}: storage '{}' is listed twice", where, key);
    at += storage.bytes;
  }
  if (at != range.bytes)
    fail(ErrorKind::kCorrupt, "{}: {} bytes at offset {} belong to no storage", where,
         range.bytes - at, range.offset + at);
}

FileRange TorchArchive::storage(const std::string& key, const std::string& where) const {
  if (zip_) return zip_->payload(zip_->require(zip_root_ + "data/" + key));
  const auto found = storages_.find(key);
  if (found == storages_.end())
    fail(ErrorKind::kCorrupt, "{}: storage '{}' is not in the file", where, key);
  return found->second;
}

NamedTensor TorchArchive::tensor(PickleValue value, const std::string& name, Role role) const {
  const std::string where = fmt::format("read {}: tensor '{}'", path_, name);
  const TorchTensor tensor = to_tensor(value, where);
  return make_tensor(name, role, tensor, storage(tensor.storage.key, where));
}

bool TorchArchive::verify() const {
  if (!zip_ || !zip_->has_crcs()) return false;
  for (const ZipMember& member : zip_->members()) zip_->verify(member);
  return true;
}

}  // namespace gxp
