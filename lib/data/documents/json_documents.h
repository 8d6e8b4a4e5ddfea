// Documents in JSON: the text in a field of each object, or the objects themselves where they are
// chats.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/data/documents/document_reader.h"
#include "lib/data/documents/record_source.h"

namespace gxp {

// "doc.body.text" as {"doc", "body", "text"}.
std::vector<std::string> split_field(const std::string& field);

// Reads `records` of the file at `path`. `field` is data.field; `packing`, ", gzip" and the like, is
// added to the kind. The first record tells what all of them are:
//   ""            the string under "text"; or a chat if it has "messages", or "conversations", or
//                 "prompt" and "completion", or "instruction" and "output" (Alpaca)
//   "messages", "conversations"                  chats, if the value there is a list
//   "prompt+completion", "instruction+output"    chats with both of these
//   another one                                  the string at that path through objects
// Errors, here and of next(): those of RecordSource; kConfig: the first record has no such field, or
// more than one of them, or is a preference pair ("chosen", "rejected"); kCorrupt: no record at all,
// a record that is not JSON or no object, or one without what the first one has.
std::unique_ptr<DocumentReader> read_json_documents(const std::string& path, RecordSource records,
                                                    const std::string& field,
                                                    const std::string& packing);

}  // namespace gxp
