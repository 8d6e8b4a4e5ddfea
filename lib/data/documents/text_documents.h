// Documents in plain text: the whole file, or what lies between separators.
#pragma once

#include <memory>
#include <string>

#include "lib/data/documents/byte_window.h"
#include "lib/data/documents/document_reader.h"

namespace gxp {

// Reads what `window` gives of the file at `path`, its bytes as they are. `separator` "": it is one
// document. Else it is cut at each separator, which belongs to no document, as Python's split() does;
// but nothing behind the last separator is no document. Errors of next(): those of ByteWindow.
std::unique_ptr<DocumentReader> read_text_documents(const std::string& path, ByteWindow window,
                                                    const std::string& separator,
                                                    const std::string& packing);

}  // namespace gxp
