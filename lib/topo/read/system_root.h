// The files below / that tell of a host's hardware (/proc, /sys): this host's, those of a
// directory, or those of an archive that `hwloc-gather-topology` made. All paths begin with "/",
// and symbolic links are followed inside the root: none leads out of it.
//   Limits   a file's first kMaxFileBytes, kMaxLinks symbolic links on a path. Another host's
//            files: kMaxWorkBytes in all, since a few links can lead to one large directory many
//            times.
//   Threads  any number may read.
//   Errors   what is missing or not readable is no value: half of these files need a privilege or a
//            kernel that has them. kCorrupt: more work than the limit.
#pragma once

#include <map>
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

// Files in memory: what an archive held, or what a test plants.
class RecordedRoot : public SystemRoot {
 public:
  // The directories above come with it. The last of a path holds.
  void add_file(std::string_view path, std::string content);
  void add_directory(std::string_view path);
  void add_link(std::string_view path, std::string target);
  // Another name for what is at `other`; false: there is nothing.
  bool add_copy(std::string_view path, std::string_view other);
  // What the names and the content that were added take, with the directories above and copies,
  // and what each entry takes besides.
  [[nodiscard]] size_t added_bytes() const { return added_bytes_; }
  [[nodiscard]] size_t entry_count() const { return nodes_.size(); }
  // Makes "/" of the directory that holds sys, if that is the root or one directly below it; false:
  // neither does.
  bool descend_to_sys();

 protected:
  [[nodiscard]] Entry look_at(const std::string& path) const override;
  [[nodiscard]] std::optional<std::string> content_of(const std::string& path) const override;
  [[nodiscard]] std::vector<std::string> names_in(const std::string& path) const override;

 private:
  struct Node {
    Kind kind = Kind::kDirectory;
    std::string text;  // content or target
  };
  void add(std::string_view path, Node node);
  Node& make_node(const std::string& path);
  // Entries by path. The directories above an entry are entries, too.
  std::map<std::string, Node, std::less<>> nodes_;
  size_t added_bytes_ = 0;
};

// This host's.
std::unique_ptr<SystemRoot> live_root();
// A directory that holds proc and sys, or whose only directory does. kIo: it does not.
std::unique_ptr<SystemRoot> open_recorded_directory(const std::string& path);

}  // namespace gxp
