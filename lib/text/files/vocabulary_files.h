// What a directory without a tokenizer.json says of its tokenizer.
#pragma once

#include <string>

#include "lib/base/json/json.h"
#include "lib/text/files/rank_file.h"

namespace gxp {

// The same of vocab.json and merges.txt, with the special tokens and the class of
// tokenizer_config.json, as a tokenizer.json. kConfig: a class whose pattern gxp does not know, or
// a special token without an id.
Json json_of_vocabulary(const std::string& directory);

// The added tokens of tokenizer_config.json, as those of a tokenizer.json, in the order of their
// ids; null: it lists none, or is not there.
Json listed_tokens(const Json& config, const std::string& where);

// The content of a JSON file of the directory, or null if it is not there.
Json read_if_there(const std::string& directory, const std::string& name);

}  // namespace gxp
