// The files that describe a host's hardware (/proc, /sys): this host's, or those of a
// directory that `hwloc-gather-topology` made. All paths begin with "/", and symbolic links are
// followed inside the root: none leads out of it.
//   Limits   a file's first kMaxFileBytes, kMaxLinks symbolic links on a path. Another host's
//            files: kMaxWorkBytes in all, since a few links can lead to one large directory many
//            times.
//   Threads  any number may read.
//   Errors   what is missing or not readable is no value: half of these files need a privilege or
//            an OS that has them. kCorrupt: more work than the limit.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

class SystemRoot {
 public:
  static constexpr size_t kMaxFileBytes = 4u << 20;
  static constexpr int kMaxLinks = 40;
  // Bytes of names, paths and content that are looked at, over the object's life.
  static constexpr size_t kMaxWorkBytes = 512u << 20;

  virtual ~SystemRoot() = default;

  // The path without symbolic links; none: it leads nowhere.
  [[nodiscard]] std::optional<std::string> resolve(std::string_view path) const;
  [[nodiscard]] bool exists(std::string_view path) const { return resolve(path).has_value(); }
  // A file's content without the white space at its end.
  [[nodiscard]] std::optional<std::string> read(std::string_view path) const;
  // The unchanged content, for files that are not text.
  [[nodiscard]] std::optional<std::string> read_bytes(std::string_view path) const;
  // A file that holds one number, decimal or 0x...
  [[nodiscard]] std::optional<long> read_number(std::string_view path) const;
  // The names in a directory, sorted, with the numbers in them by value; none if there is none.
  [[nodiscard]] std::vector<std::string> list(std::string_view path) const;
  // The last name of what a symbolic link leads to: the driver of a device; "" if there is none.
  [[nodiscard]] std::string link_name(std::string_view path) const;
  // Whether it is the machine that gxp runs on.
  [[nodiscard]] virtual bool live() const { return false; }

 protected:
  enum class Kind { kNothing, kFile, kDirectory, kLink };
  struct Entry {
    Kind kind = Kind::kNothing;
    std::string target{};  // of a link
  };
  // For these, no part of the path but the last is a symbolic link.
  [[nodiscard]] virtual Entry look_at(const std::string& path) const = 0;
  [[nodiscard]] virtual std::optional<std::string> content_of(const std::string& path) const = 0;
  [[nodiscard]] virtual std::vector<std::string> names_in(const std::string& path) const = 0;

 private:
  void spend(size_t bytes) const;
  mutable size_t spent_bytes_ = 0;  // changed by atomic_ref alone
};

// This host's.
std::unique_ptr<SystemRoot> live_root();
// A directory that holds proc and sys, or whose only directory does. kIo: it does not, is a file,
// or has lost the links to PCIe devices.
std::unique_ptr<SystemRoot> open_recorded_directory(const std::string& path);

}  // namespace gxp
