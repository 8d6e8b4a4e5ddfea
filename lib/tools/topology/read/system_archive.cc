#include "lib/tools/topology/read/system_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr size_t kMaxNameBytes = 4096;
constexpr ptrdiff_t kMaxSlashes = 128;  // of a name; those of sysfs have up to some 20

struct CloseArchive {
  void operator()(archive* open) const { archive_read_free(open); }
};

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name)
      : name_(name), archive_(archive_read_new()) {
    archive_read_support_format_tar(archive_.get());
    archive_read_support_filter_gzip(archive_.get());
    archive_read_support_filter_bzip2(archive_.get());
    archive_read_support_filter_xz(archive_.get());
    archive_read_support_filter_zstd(archive_.get());
    check(archive_read_open_memory(archive_.get(), bytes.data(), bytes.size()));
  }

  std::unique_ptr<SystemRoot> read() {
    archive_entry* entry = nullptr;
    for (size_t entries = 1;; ++entries) {
      const int result = archive_read_next_header(archive_.get(), &entry);
      if (result == ARCHIVE_EOF) break;
      check(result);
      add(entry);
      if (std::max(entries, root_->entry_count()) > kMaxArchiveEntries)
        refuse("it has more than {} names", kMaxArchiveEntries);
      check_size(root_->added_bytes());
    }
    if (!root_->descend_to_sys()) {
      refuse(
          "there is no sys in it, nor in a directory of it; is it what hwloc-gather-topology "
          "wrote?");
    }
    return std::move(root_);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> why, Args&&... args) const {
    fail(ErrorKind::kCorrupt, "read archive {}: {}", name_,
         fmt::format(why, std::forward<Args>(args)...));
  }

  void check(int result) const {
    if (result >= ARCHIVE_WARN) return;
    const char* const text = archive_error_string(archive_.get());
    refuse("{}; it is to be a tar: what is only compressed has to be unpacked first",
           text == nullptr ? "it is none" : text);
  }

  void check_size(size_t bytes) const {
    if (bytes > kMaxArchiveBytes)
      refuse("it unpacks to more than {}", format_bytes(kMaxArchiveBytes));
  }

  [[nodiscard]] std::string checked_name(const char* name) const {
    if (name == nullptr) refuse("a name in it cannot be read");
    const std::string_view text = name;
    if (text.size() > kMaxNameBytes) refuse("a name in it has more than {} bytes", kMaxNameBytes);
    if (std::ranges::count(text, '/') > kMaxSlashes)
      refuse("a name in it has more than {} directories", kMaxSlashes);
    if (text == ".." || text.starts_with("../") || text.ends_with("/..") ||
        text.find("/../") != text.npos)
      refuse("\"{}\" leads out of it", text.substr(0, 80));
    return std::string(text);
  }

  void add(archive_entry* entry) {
    const std::string path = checked_name(archive_entry_pathname(entry));
    std::string text = content();  // whatever it is: passed over, it would be unpacked uncounted
    const auto type = archive_entry_filetype(entry);
    if (archive_entry_hardlink(entry) != nullptr) {
      root_->add_copy(path, checked_name(archive_entry_hardlink(entry)));
    } else if (type == AE_IFDIR) {
      root_->add_directory(path);
    } else if (type == AE_IFLNK) {
      root_->add_link(path, checked_target(entry));
    } else if (type == AE_IFREG) {
      root_->add_file(path, std::move(text));
    }
  }

  [[nodiscard]] std::string checked_target(archive_entry* entry) const {
    const char* const target = archive_entry_symlink(entry);
    if (target == nullptr || std::string_view(target).size() > kMaxNameBytes)
      refuse("a symbolic link in it cannot be read");
    return target;
  }

  // The content of the current entry, up to kMaxFileBytes.
  std::string content() {
    std::string text;
    std::array<char, 1 << 14> piece;
    for (;;) {
      const auto got = archive_read_data(archive_.get(), piece.data(), piece.size());
      if (got < 0) check(int(got));
      if (got <= 0) return text;
      unpacked_bytes_ += size_t(got);
      check_size(unpacked_bytes_);
      text.append(piece.data(), std::min(size_t(got), SystemRoot::kMaxFileBytes - text.size()));
    }
  }

  const std::string& name_;
  std::unique_ptr<archive, CloseArchive> archive_;
  std::unique_ptr<RecordedRoot> root_ = std::make_unique<RecordedRoot>();
  size_t unpacked_bytes_ = 0;  // of content
};

}  // namespace

std::unique_ptr<SystemRoot> parse_system_archive(std::string_view bytes, const std::string& name) {
  return Reader(bytes, name).read();
}

bool looks_like_archive(std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr size_t kTarMagicAt = 257;
  for (const std::string_view magic :
       {"\x1f\x8b"sv, "BZh"sv, "\xfd\x37zXZ\0"sv, "\x28\xb5\x2f\xfd"sv}) {
    if (bytes.starts_with(magic)) return true;
  }
  return bytes.size() > kTarMagicAt + 5 && bytes.substr(kTarMagicAt, 5) == "ustar";
}

}  // namespace gxp
