#include "lib/ckpt/zip/zip_archive.h"

#include <algorithm>
#include <optional>

#include "lib/ckpt/zip/little_endian.h"
#include "lib/ckpt/zip/zip_format.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxZipDirectory = 100'000'000;  // bytes; as of a safetensors header
constexpr uint64_t kMaxZipGap = 24;                 // between members: a data descriptor
constexpr uint64_t kZipReadBytes = uint64_t{1} << 20;

template <class... Args>
[[noreturn]] void refuse_zip(const FileRange& range, uint64_t at,
                             fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::kCorrupt, "read {}: zip archive, offset {}: {}", range.file->path(),
       range.offset + at, fmt::format(format, std::forward<Args>(args)...));
}

std::string read_zip_bytes(const FileRange& range, uint64_t begin, uint64_t length) {
  std::string bytes(length, '\0');
  range.read(begin, memory_of(bytes));
  return bytes;
}

// What the end records say of the central directory.
struct ZipDirectory {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t count = 0;
  uint64_t end = 0;  // where the end records begin
};

// The position of the end record: the last of which the comment ends with the archive.
std::optional<uint64_t> find_zip_end(const FileRange& range) {
  for (const uint64_t comment : {uint64_t{0}, uint64_t{0xffff}}) {
    const uint64_t length = std::min(range.bytes, kZipEndBytes + comment);
    if (length < kZipEndBytes) return std::nullopt;
    const std::string tail = read_zip_bytes(range, range.bytes - length, length);
    for (uint64_t at = length - kZipEndBytes + 1; at-- > 0;) {
      if (read_little<uint32_t>(tail, at) == kZipEnd &&
          read_little<uint16_t>(tail, at + 20) == length - at - kZipEndBytes)
        return range.bytes - length + at;
    }
  }
  return std::nullopt;
}

// The 64-bit record that the locator before `end` points to; nothing if there is no locator.
std::optional<ZipDirectory> read_zip64_end(const FileRange& range, uint64_t end) {
  if (end < kZipLocatorBytes) return std::nullopt;
  const uint64_t at = end - kZipLocatorBytes;
  const std::string locator = read_zip_bytes(range, at, kZipLocatorBytes);
  if (read_little<uint32_t>(locator, 0) != kZipLocator) return std::nullopt;
  const auto record = read_little<uint64_t>(locator, 8);
  if (record > at || at - record < kZip64EndBytes)
    refuse_zip(range, at, "the zip64 end record would lie at {}", record);
  const std::string bytes = read_zip_bytes(range, record, kZip64EndBytes);
  if (read_little<uint32_t>(bytes, 0) != kZip64End ||
      read_little<uint64_t>(bytes, 4) != at - record - 12)
    refuse_zip(range, record, "this is not a zip64 end record of {} bytes", at - record);
  const auto count = read_little<uint64_t>(bytes, 32);
  if (read_little<uint32_t>(bytes, 16) != 0 || read_little<uint32_t>(bytes, 20) != 0 ||
      read_little<uint64_t>(bytes, 24) != count)
    refuse_zip(range, record, "archives of several disks are not read");
  return ZipDirectory{read_little<uint64_t>(bytes, 48), read_little<uint64_t>(bytes, 40), count,
                      record};
}

ZipDirectory read_zip_end(const FileRange& range) {
  const auto at = find_zip_end(range);
  if (!at)
    refuse_zip(range, range.bytes,
               "no end record ends here; the file is truncated or not an archive");
  const std::string bytes = read_zip_bytes(range, *at, kZipEndBytes);
  const auto count = read_little<uint16_t>(bytes, 10);
  const auto size = read_little<uint32_t>(bytes, 12);
  const auto offset = read_little<uint32_t>(bytes, 16);
  const auto large = read_zip64_end(range, *at);
  if (large) {
    // Readers differ on which of two records counts, so the two must agree.
    if ((count != 0xffff && count != large->count) || (size != kZip32 && size != large->bytes) ||
        (offset != kZip32 && offset != large->offset))
      refuse_zip(range, *at, "the end record and the zip64 end record differ");
    return *large;
  }
  if (read_little<uint32_t>(bytes, 4) != 0 || read_little<uint16_t>(bytes, 8) != count)
    refuse_zip(range, *at, "archives of several disks are not read");
  return {offset, size, count, *at};
}

// Replaces what the 32-bit fields leave to the zip64 extra field, in the order that it must have.
// Returns whether all was there.
bool take_zip64_fields(std::string_view extra, const std::vector<uint64_t*>& fields) {
  while (extra.size() >= 4) {
    const size_t length = read_little<uint16_t>(extra, 2);
    if (length > extra.size() - 4) return false;
    if (read_little<uint16_t>(extra, 0) == kZip64Extra) {
      if (length < 8 * fields.size()) return false;
      for (size_t i = 0; i < fields.size(); ++i)
        *fields[i] = read_little<uint64_t>(extra, 4 + 8 * i);
      return true;
    }
    extra.remove_prefix(4 + length);
  }
  return fields.empty();
}

// The entry at `at` of the directory's text; its offset is the local header's. Moves `at` on.
ZipMember parse_zip_entry(const FileRange& range, const ZipDirectory& directory,
                          std::string_view text, uint64_t& at) {
  const uint64_t place = directory.offset + at;
  if (text.size() - at < kZipEntryBytes || read_little<uint32_t>(text, at) != kZipEntry)
    refuse_zip(range, place, "this is not an entry of the central directory");
  const std::string_view entry = text.substr(at, kZipEntryBytes);
  const size_t name = read_little<uint16_t>(entry, 28);
  const size_t extra = read_little<uint16_t>(entry, 30);
  const size_t comment = read_little<uint16_t>(entry, 32);
  if (name + extra + comment > text.size() - at - kZipEntryBytes)
    refuse_zip(range, place, "the entry exceeds the central directory");
  ZipMember member{std::string(text.substr(at + kZipEntryBytes, name)),
                   read_little<uint32_t>(entry, 42), read_little<uint32_t>(entry, 24),
                   read_little<uint32_t>(entry, 16)};
  if (member.name.empty() || member.name.find('\0') != std::string::npos)
    refuse_zip(range, place, "a member's name is empty or holds a NUL");
  if (read_little<uint16_t>(entry, 10) != 0 || read_little<uint16_t>(entry, 8) % 2 == 1)
    refuse_zip(range, place, "member '{}' is compressed or encrypted; {}", member.name,
               member.name.find("/code/") == std::string::npos
                   ? "gxp reads uncompressed members only"
                   : "this is a TorchScript archive, which is a program; save a state_dict()");
  uint64_t stored = read_little<uint32_t>(entry, 20);
  std::vector<uint64_t*> large;
  for (uint64_t* field : {&member.bytes, &stored, &member.offset}) {
    if (*field == kZip32) large.push_back(field);
  }
  if (!take_zip64_fields(text.substr(at + kZipEntryBytes + name, extra), large))
    refuse_zip(range, place, "member '{}' lacks its zip64 sizes", member.name);
  if (stored != member.bytes)
    refuse_zip(range, place, "member '{}' has {} bytes, but stores {}", member.name, member.bytes,
               stored);
  at += kZipEntryBytes + name + extra + comment;
  return member;
}

std::vector<ZipMember> read_zip_entries(const FileRange& range, const ZipDirectory& directory) {
  if (directory.bytes > kMaxZipDirectory || directory.offset > directory.end ||
      directory.bytes != directory.end - directory.offset)
    refuse_zip(range, directory.end,
               "the central directory would take {} bytes at {}, but it must end here and have at "
               "most {}",
               directory.bytes, directory.offset, kMaxZipDirectory);
  if (directory.count > directory.bytes / kZipEntryBytes)
    refuse_zip(range, directory.end, "a directory of {} bytes cannot have {} entries",
               directory.bytes, directory.count);
  const std::string text = read_zip_bytes(range, directory.offset, directory.bytes);
  std::vector<ZipMember> members;
  uint64_t at = 0;
  for (uint64_t i = 0; i < directory.count; ++i)
    members.push_back(parse_zip_entry(range, directory, text, at));
  if (at != text.size())
    refuse_zip(range, directory.offset + at, "the directory's {} entries end here, before it does",
               directory.count);
  return members;
}

// Turns the member's offset into that of its payload. Returns where the payload ends.
uint64_t place_zip_payload(const FileRange& range, ZipMember& member, uint64_t previous_end,
                           uint64_t directory) {
  const uint64_t at = member.offset;
  if (at < previous_end || at - previous_end > kMaxZipGap)
    refuse_zip(range, at, "member '{}' does not begin within {} bytes after the previous end at {}",
               member.name, kMaxZipGap, range.offset + previous_end);
  const uint64_t fixed = kZipLocalBytes + member.name.size();
  if (at > directory || directory - at < fixed)
    refuse_zip(range, at, "the header of member '{}' exceeds the archive", member.name);
  const std::string local = read_zip_bytes(range, at, fixed);
  if (read_little<uint32_t>(local, 0) != kZipLocal || read_little<uint16_t>(local, 8) != 0 ||
      read_little<uint16_t>(local, 26) != member.name.size() ||
      local.compare(kZipLocalBytes, member.name.size(), member.name) != 0)
    refuse_zip(range, at, "the header at the offset of member '{}' belongs to another member",
               member.name);
  member.offset = at + fixed + read_little<uint16_t>(local, 28);
  if (member.offset > directory || member.bytes > directory - member.offset)
    refuse_zip(range, at, "member '{}' of {} bytes reaches beyond the members' end at {}",
               member.name, member.bytes, range.offset + directory);
  return member.offset + member.bytes;
}

}  // namespace

bool ZipArchive::begins(const FileRange& range) {
  return range.bytes >= kZipEndBytes &&
         read_little<uint32_t>(read_zip_bytes(range, 0, 4), 0) == kZipLocal;
}

ZipArchive ZipArchive::open(FileRange range) {
  ZipArchive archive;
  archive.range_ = std::move(range);
  const FileRange& whole = archive.range_;
  const ZipDirectory directory = read_zip_end(whole);
  archive.members_ = read_zip_entries(whole, directory);
  std::ranges::sort(archive.members_, {}, &ZipMember::offset);
  uint64_t end = 0;
  for (size_t i = 0; i < archive.members_.size(); ++i) {
    ZipMember& member = archive.members_[i];
    end = place_zip_payload(whole, member, end, directory.offset);
    archive.has_crcs_ = archive.has_crcs_ || member.crc != 0;
    if (!archive.by_name_.emplace(member.name, i).second)
      refuse_zip(whole, member.offset, "member '{}' occurs twice", member.name);
  }
  if (directory.offset - end > kMaxZipGap)
    refuse_zip(whole, end, "{} bytes before the central directory belong to no member",
               directory.offset - end);
  return archive;
}

const ZipMember* ZipArchive::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &members_[found->second];
}

const ZipMember& ZipArchive::require(const std::string& name) const {
  const ZipMember* member = find(name);
  if (member == nullptr) refuse_zip(range_, 0, "member '{}' is missing", name);
  return *member;
}

FileRange ZipArchive::payload(const ZipMember& member) const {
  return range_.part(member.offset, member.bytes, "member '" + member.name + "'");
}

void ZipArchive::check_crc(const ZipMember& member, uint32_t crc) const {
  if (has_crcs_ && crc != member.crc)
    refuse_zip(range_, member.offset,
               "member '{}' has the CRC-32 {:08x}, but {:08x} is recorded: the file is damaged",
               member.name, crc, member.crc);
}

std::string ZipArchive::read(const ZipMember& member, uint64_t limit) const {
  if (member.bytes > limit)
    refuse_zip(range_, member.offset, "member '{}' has {} bytes, more than {}", member.name,
               member.bytes, limit);
  std::string bytes(member.bytes, '\0');
  payload(member).read(0, memory_of(bytes));
  check_crc(member, zip_crc(0, memory_of(std::as_const(bytes))));
  return bytes;
}

void ZipArchive::verify(const ZipMember& member) const {
  const FileRange range = payload(member);
  std::vector<std::byte> buffer(std::min(range.bytes, kZipReadBytes));
  uint32_t crc = 0;
  for (uint64_t done = 0; done < range.bytes; done += buffer.size()) {
    buffer.resize(std::min(range.bytes - done, kZipReadBytes));
    range.read(done, memory_of(buffer));
    crc = zip_crc(crc, memory_of(std::as_const(buffer)));
  }
  check_crc(member, crc);
}

}  // namespace gxp
