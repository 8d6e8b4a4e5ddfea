// The files under man/ and completions/, and their generated parts. A man page is written by hand
// except for the parts between
//   .\" begin NAME (generated)
//   .\" end NAME (generated)
// A file that has no such parts is generated as a whole.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cmd/command.h"

namespace gxp {

struct Document {
  std::string path;   // relative to the source tree: "man/gxp.1"
  std::string first;  // the text of a file that does not exist yet, with empty parts
  std::vector<std::pair<std::string, std::string>> parts;  // name, generated text
};

// gxp.1, one page per command, gxp.toml.5, the completion.
std::vector<Document> documents(std::span<const Command> commands);

// `text` with the generated parts of `document` brought up to date. kCorrupt: a marker is missing.
std::string refresh(const Document& document, const std::string& text);

// Refreshes all documents in the source tree at `directory`; creates those that are missing. kIo.
void write_documents(const std::string& directory, std::span<const Command> commands);

}  // namespace gxp
