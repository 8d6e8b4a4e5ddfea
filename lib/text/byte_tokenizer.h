// The tokenizer whose tokens are bytes: ids 0 to 255.
#pragma once

#include <memory>

#include "lib/text/tokenizer.h"

namespace gxp {

std::shared_ptr<const Tokenizer> byte_tokenizer();

}  // namespace gxp
