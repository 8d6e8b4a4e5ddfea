// The output of one torch.save: a pickle and the storages of its tensors.
//
// Zip (since torch 1.6), all members under one root:
//   ROOT/data.pkl, ROOT/byteorder ("little"; not in old files), ROOT/data/KEY for each storage,
//   ROOT/version; others are not looked at
// Legacy: five pickles (the magic number 0x1950a86a20f9469cfc6c, 1001, a dict about the system, the
//   object, the list of the storages' keys); then for each key in the list's order the number of
//   elements (i64) and the elements, to the end of the file
// Refused: TorchScript's archives, big-endian files, other members than those under the root, a
// storage that is listed twice or not at all, anything after the pickle or the last storage.
// Source: torch 2.15, torch/serialization.py (_save, _legacy_save).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "lib/ckpt/named_tensors.h"
#include "lib/ckpt/torch/pickle.h"
#include "lib/ckpt/torch/torch_tensors.h"
#include "lib/ckpt/zip/file_range.h"
#include "lib/ckpt/zip/zip_archive.h"

namespace gxp {

// Movable; values and tensors stay valid. Threads: const functions from any.
class TorchArchive {
 public:
  // Whether the range begins as one of the two does.
  static bool begins(const FileRange& range);

  // Reads the pickle, whose CRC is checked, and what says where the storages are. Errors: kIo;
  // kCorrupt, naming the file, the offset and the reason.
  static TorchArchive open(const FileRange& range);

  // Lives as long as the archive.
  [[nodiscard]] PickleValue root() const { return pickle_->root(); }
  // A tensor of the pickle; it may outlive the archive. kCorrupt as make_tensor(), or if its
  // storage is not there.
  [[nodiscard]] NamedTensor tensor(PickleValue value, const std::string& name,
                                   Role role = Role::kWeight) const;
  // Reads everything and compares it with the recorded CRCs. kCorrupt. Returns whether there are
  // any: legacy files have none, nor have files saved without them (zip_archive.h).
  bool verify() const;

 private:
  void open_zip(const FileRange& range);
  void open_legacy(const FileRange& range);
  [[nodiscard]] FileRange storage(const std::string& key, const std::string& where) const;

  std::unique_ptr<const Pickle> pickle_;  // values point to it
  std::string path_;
  std::optional<ZipArchive> zip_;
  std::string zip_root_;                       // "archive/"
  std::map<std::string, FileRange> storages_;  // legacy
};

}  // namespace gxp
