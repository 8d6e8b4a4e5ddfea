// Results that are text already.
#pragma once

#include <string>

namespace gxp {

// To stdout, at once, as visible() shows it with its lines and tabs. kIo: it does not take it.
void write_stdout(const std::string& text);

// Checks before a long run that the file can be written, without changing it; throws kIo if not.
// "" is no file.
void check_writable(const std::string& path);
void write_file(const std::string& path, const std::string& text);

}  // namespace gxp
