// Zip archives of stored members, as torch.save writes them: the checked positions of the members.
//
//   local header | payload | data descriptor     for each member; then
//   central directory | zip64 end | zip64 locator | end record
//
// The central directory has names, sizes and CRCs; of local headers only the name and the lengths
// of their variable parts count, since torch leaves the rest 0. Positions are relative to the
// beginning of the archive, which may lie anywhere in a file (torch DCP puts one after the other).
//
// Archives are hostile until checked: the directory ends where the end record begins; members have
// distinct names, are neither compressed nor encrypted, follow each other without overlaps and
// without holes beyond a data descriptor (24 bytes), and fill the archive from its beginning to the
// directory; each local header has its member's name; nothing follows the end record's comment.
// Source: PKWARE APPNOTE.TXT 6.3.10, 4.3; torch 2.15, caffe2/serialize/inline_container.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/ckpt/zip/file_range.h"

namespace gxp {

struct ZipMember {
  std::string name;
  uint64_t offset = 0;  // of the payload, in the archive
  uint64_t bytes = 0;
  uint32_t crc = 0;
};

// Threads: const functions from any.
class ZipArchive {
 public:
  // Whether a range begins as an archive with members does.
  static bool begins(const FileRange& range);

  // Reads the directory and every local header: two reads and one more for each member. Memory:
  // the directory, at most 100 MB. Errors: kIo; kCorrupt, naming the file, the offset and the
  // member.
  static ZipArchive open(FileRange range);

  // In the order of the bytes.
  [[nodiscard]] const std::vector<ZipMember>& members() const { return members_; }
  // nullptr: there is none.
  [[nodiscard]] const ZipMember* find(const std::string& name) const;
  // kCorrupt, naming the member: there is none.
  [[nodiscard]] const ZipMember& require(const std::string& name) const;
  [[nodiscard]] FileRange payload(const ZipMember& member) const;

  // Whether any member has a CRC. All are 0 after torch.serialization.set_crc32_options(False);
  // then the two functions below check none.
  [[nodiscard]] bool has_crcs() const { return has_crcs_; }
  // The whole payload. kCorrupt: it has more than `limit` bytes, or another CRC than recorded.
  [[nodiscard]] std::string read(const ZipMember& member, uint64_t limit) const;
  // Reads the payload through a buffer of 1 MiB. kCorrupt: it has another CRC than recorded.
  void verify(const ZipMember& member) const;

 private:
  void check_crc(const ZipMember& member, uint32_t crc) const;

  FileRange range_;
  std::vector<ZipMember> members_;
  std::unordered_map<std::string, size_t> by_name_;
  bool has_crcs_ = false;
};

}  // namespace gxp
