// A system that behaves badly, for the tests of this folder: system_faults.cc defines some of the
// C library's functions, which the linker takes before the library's own.
#pragma once

#include <string>
#include <vector>

namespace gxp {

// While it lives, names cannot be exchanged, as on NFS.
class NoExchange {
 public:
  NoExchange();
  ~NoExchange();
};

// While it lives, files get no second name, as on exFAT.
class NoLinks {
 public:
  NoLinks();
  ~NoLinks();
};

// While it lives, call number `call` (from 0) of write(), fsync() and the renames of what lies below
// `directory` fails with `cause`.
class FailingDisk {
 public:
  FailingDisk(std::string directory, int cause, int call);
  ~FailingDisk();
  [[nodiscard]] bool has_failed() const;
};

// While it lives, write() takes up to three bytes at once.
class ShortWrites {
 public:
  ShortWrites();
  ~ShortWrites();
};

// From now on the process dies, as by a kill, instead of its rename number `count` (from 0). For a
// child that fork() made; it ends with kDiedAtRename.
void die_at_rename(int count);
inline constexpr int kDiedAtRename = 99;

// The next unlinkat() of a file removes its directory too, which is empty: another rank does that
// when it fails before this one has a file there.
void lose_directory_at_unlink();

// The next renameat() finds its file gone: a rank that fails removes what others have written.
void lose_file_at_rename();

// The paths of which fsync() has been called since the last call of this function.
std::vector<std::string> take_synced();

}  // namespace gxp
