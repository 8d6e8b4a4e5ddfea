// Results that are text already.
#pragma once

#include <string>

namespace gxp {

// To stdout, at once, as visible() shows it with its lines and tabs. kIo: it does not take it.
void write_stdout(const std::string& text);

// Throws kIo if a file could not be written, before a run that may take long; leaves what is there.
// "" is no file.
void check_writable(const std::string& path);
void write_file(const std::string& path, const std::string& text);

}  // namespace gxp
