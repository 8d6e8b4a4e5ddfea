// Lines of source code for places in this program, by its debug information. By libdw (elfutils).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace gxp {

struct SourceLine {
  std::string function;  // "": unknown
  std::string file;  // of gxp's own code relative to its sources: "lib/train/run.cc"; "": unknown
  int line = 0;
  bool is_own = false;  // gxp's, not a library's header
};

// Reads the debug information with the first question, which takes some tenths of a second.
class SourceLines {
 public:
  SourceLines();
  ~SourceLines();
  SourceLines(const SourceLines&) = delete;
  SourceLines& operator=(const SourceLines&) = delete;

  // `offset`: a StackFrame's. Any number may be asked for.
  [[nodiscard]] SourceLine find(uint64_t offset) const;

 private:
  class Program;
  std::unique_ptr<Program> program_;
};

}  // namespace gxp
