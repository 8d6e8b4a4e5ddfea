// Writes zip archives of stored members byte by byte as torch.save does (zip_archive.h): payloads
// begin at multiples of 64 bytes, counted from the archive's beginning, thanks to an extra field
// "FB" of 'Z's in the local header; a CRC follows the payload, in a data descriptor, so that
// members are streamed; a zip64 end record is always there, zip64 sizes where 32 bits do not do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/file.h"
#include "lib/ckpt/zip/zip_archive.h"

namespace gxp {

constexpr uint64_t kZipAlignment = 64;  // bytes

// Order: add(), or begin(), write()s of `bytes` bytes in all, end(); then finish(). Names are the
// caller's to keep distinct. Errors: kIo, as the file.
class ZipWriter {
 public:
  // The archive begins at the file's present end. The file must outlive the writer, which neither
  // closes it nor owns it.
  explicit ZipWriter(OutputFile& file) : file_(file), start_(file.bytes()) {}

  void begin(const std::string& name, uint64_t bytes);
  void write(ConstMemory data);
  void end();
  void add(const std::string& name, std::string_view payload);
  // The directory. Returns the archive's length.
  uint64_t finish();

  // A hash of the members so far: torch.save makes the record .data/serialization_id of this.
  [[nodiscard]] const std::vector<ZipMember>& members() const { return members_; }

 private:
  [[nodiscard]] uint64_t position() const { return file_.bytes() - start_; }

  OutputFile& file_;
  uint64_t start_;
  std::vector<ZipMember> members_;  // offsets are the local headers'
  uint64_t payload_end_ = 0;        // of the member that is being written
};

}  // namespace gxp
