// Text in XML, of which topologies and pictures are made.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

// `text` for an element or a quoted attribute. Bytes that XML forbids stay.
std::string escaped_for_xml(std::string_view text);
// The same, but each control character other than a line end, and each byte that is not UTF-8,
// becomes '?': so a document that is made of such texts is always well-formed.
std::string safe_for_xml(std::string_view text);

}  // namespace gxp
