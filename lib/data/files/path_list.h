// The files that a list of paths, directories and patterns names.
#pragma once

#include <string>
#include <vector>

namespace gxp {

// A directory stands for all its files, a pattern with *, ? and [] for all its matches, both without
// hidden ones and sorted by name; a path that exists is taken as it is, whatever characters it has. Of
// Megatron's pairs that a directory or pattern gives, the .idx is left out: its .bin is the file.
// `setting` names the list in messages: "data.train". kConfig: a pattern or directory without a file, or
// a directory in which there is another, whose files it does not stand for; kIo: a directory that cannot
// be read.
std::vector<std::string> expand_path(const std::string& path, const std::string& setting);

}  // namespace gxp
