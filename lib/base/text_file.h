// Files that are read as a whole. Only regular files are: to open a pipe, or to read it or a
// device, may wait for ever or never end.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/fd.h"

namespace gxp {

// Opens it for reading; symbolic links are followed. kIo, "ACT: CAUSE": it cannot be opened, or it
// is a directory, pipe, socket or device. Does not wait.
Fd open_regular_file(const std::string& path, std::string_view act);

// The content of a regular file. `what` names its kind in errors: "read run file PATH: ...".
// kIo: as open_regular_file(), or not readable; kCorrupt: more than `limit` bytes.
std::string read_text_file(const std::string& path, size_t limit, std::string_view what = "");

// Writes all of it, whatever `fd` is. kIo, "ACT: CAUSE": some of it may be written.
void write_fully(int fd, std::string_view text, std::string_view act);

// Standard input, whatever it is, until it ends. Errors as read_text_file().
std::string read_standard_input(size_t limit);

}  // namespace gxp
