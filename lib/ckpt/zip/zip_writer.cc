#include "lib/ckpt/zip/zip_writer.h"

#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/ckpt/zip/little_endian.h"
#include "lib/ckpt/zip/zip_format.h"

namespace gxp {
namespace {

constexpr uint16_t kZipUtf8Flag = 0x0800;
constexpr uint16_t kZipDescriptorFlag = 0x0008;  // the CRC and the sizes follow the payload

bool is_large(uint64_t value) { return value >= kZip32; }
uint32_t to_zip32(uint64_t value) { return is_large(value) ? kZip32 : uint32_t(value); }

uint16_t zip_flags(const ZipMember& member) {
  return member.bytes == 0 ? kZipUtf8Flag : kZipUtf8Flag | kZipDescriptorFlag;
}

// What does not fit into the header's 32 bits, or nothing.
std::string make_zip64_extra(const ZipMember& member) {
  std::string values;
  if (is_large(member.bytes)) {
    append_little(values, member.bytes);
    append_little(values, member.bytes);
  }
  if (is_large(member.offset)) append_little(values, member.offset);
  if (values.empty()) return "";
  std::string extra;
  append_little(extra, kZip64Extra);
  append_little(extra, uint16_t(values.size()));
  return extra + values;
}

// The extra fields of a local header: zip64 and padding up to the next multiple of kZipAlignment.
std::string make_local_extra(const ZipMember& member) {
  std::string extra = make_zip64_extra(member);
  const uint64_t begin = member.offset + kZipLocalBytes + member.name.size() + extra.size() + 4;
  const auto padding = uint16_t(round_up(begin, kZipAlignment) - begin);
  append_little(extra, kZipPadding);
  append_little(extra, padding);
  return extra + std::string(padding, 'Z');
}

// Version, flags, method, time and date, as torch leaves them.
void append_zip_flags(std::string& bytes, const ZipMember& member) {
  append_little(bytes, uint16_t{0});
  append_little(bytes, zip_flags(member));
  bytes.append(6, '\0');
}

std::string make_zip_entry(const ZipMember& member) {
  const std::string extra = make_zip64_extra(member);
  std::string bytes;
  append_little(bytes, kZipEntry);
  append_little(bytes, uint16_t{0});
  append_zip_flags(bytes, member);
  append_little(bytes, member.crc);
  append_little(bytes, to_zip32(member.bytes));
  append_little(bytes, to_zip32(member.bytes));
  append_little(bytes, uint16_t(member.name.size()));
  append_little(bytes, uint16_t(extra.size()));
  bytes.append(10, '\0');  // comment, disk, attributes
  append_little(bytes, to_zip32(member.offset));
  return bytes + member.name + extra;
}

// The three records after a directory of `count` entries.
std::string make_zip_end(uint64_t count, uint64_t directory, uint64_t bytes) {
  std::string end;
  append_little(end, kZip64End);
  append_little(end, kZip64EndBytes - 12);
  append_little(end, uint16_t{0x031e});  // made by: 3.0 on Unix, as miniz says
  append_little(end, uint16_t{45});      // needed: 4.5, which has zip64
  end.append(8, '\0');                   // disks
  for (const uint64_t value : {count, count, bytes, directory}) append_little(end, value);
  append_little(end, kZipLocator);
  append_little(end, uint32_t{0});
  append_little(end, directory + bytes);
  append_little(end, uint32_t{1});
  append_little(end, kZipEnd);
  append_little(end, uint32_t{0});
  const auto count16 = uint16_t(count < 0xffff ? count : 0xffff);
  append_little(end, count16);
  append_little(end, count16);
  append_little(end, to_zip32(bytes));
  append_little(end, to_zip32(directory));
  append_little(end, uint16_t{0});
  return end;
}

}  // namespace

void ZipWriter::begin(const std::string& name, uint64_t bytes) {
  GXP_ASSERT(position() >= payload_end_);
  const ZipMember member{name, position(), bytes, 0};
  const std::string extra = make_local_extra(member);
  std::string header;
  append_little(header, kZipLocal);
  append_zip_flags(header, member);
  header.append(12, '\0');  // the CRC and the sizes
  append_little(header, uint16_t(name.size()));
  append_little(header, uint16_t(extra.size()));
  file_.write(header + name + extra);
  payload_end_ = position() + bytes;
  members_.push_back(member);
}

void ZipWriter::write(ConstMemory data) {
  members_.back().crc = zip_crc(members_.back().crc, data);
  file_.write(data);
}

void ZipWriter::end() {
  GXP_ASSERT(position() == payload_end_);
  const ZipMember& member = members_.back();
  if (member.bytes == 0) return;
  std::string descriptor;
  append_little(descriptor, kZipDescriptor);
  append_little(descriptor, member.crc);
  const bool large = is_large(member.bytes) || is_large(member.offset);
  for (int size = 0; size < 2; ++size) {
    if (large) append_little(descriptor, member.bytes);
    if (!large) append_little(descriptor, uint32_t(member.bytes));
  }
  file_.write(descriptor);
}

void ZipWriter::add(const std::string& name, std::string_view payload) {
  begin(name, payload.size());
  write(memory_of(std::as_const(payload)));
  end();
}

uint64_t ZipWriter::finish() {
  const uint64_t directory = position();
  for (const ZipMember& member : members_) file_.write(make_zip_entry(member));
  file_.write(make_zip_end(members_.size(), directory, position() - directory));
  return position();
}

}  // namespace gxp
