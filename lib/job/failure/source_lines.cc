#include "lib/job/failure/source_lines.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace gxp {
namespace {

constexpr const char* kProgram = "/proc/self/exe";

// The directory of the sources, with which the compiler was called.
std::string_view source_root() {
  constexpr std::string_view kThisFile = "lib/job/failure/source_lines.cc";
  const std::string_view path = __FILE__;
  return path.ends_with(kThisFile) ? path.substr(0, path.size() - kThisFile.size()) : "";
}

// A name without what it has in brackets, which may take pages: "gxp::Run::step",
// "gxp::define_train::{lambda#1}::operator()".
std::string plain_name(std::string_view name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::", kCall = "operator()";
  std::string plain;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const std::string_view rest = name.substr(i);
    if (rest.starts_with(kUnnamed)) {
      i += kUnnamed.size() - 1;
    } else if (depth == 0 && rest.starts_with(kCall)) {
      plain += kCall;
      i += kCall.size() - 1;
    } else if (name[i] == '(' || name[i] == '<') {
      ++depth;
    } else if (name[i] == ')' || name[i] == '>') {
      depth = std::max(0, depth - 1);
    } else if (depth == 0) {
      plain += name[i];
    }
  }
  // What follows the name: " const", " [clone .cold]".
  plain.resize(std::min({plain.find(" const"), plain.find(" ["), plain.size()}));
  return plain.substr(plain.rfind(' ') + 1);  // a template's name follows its result's type
}

std::string demangled(const char* name) {
  if (name == nullptr) return "";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return text ? plain_name(text.get()) : name;
}

}  // namespace

class SourceLines::Program {
 public:
  Program() : session_(dwfl_begin(&kCallbacks)) {
    if (session_ == nullptr) return;
    module_ = dwfl_report_offline(session_, "gxp", kProgram, -1);
    dwfl_report_end(session_, nullptr, nullptr);
    if (module_ != nullptr)
      dwfl_module_info(module_, nullptr, &start_, &end_, nullptr, nullptr, nullptr, nullptr);
  }
  ~Program() { dwfl_end(session_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] SourceLine find(uint64_t offset) const {
    SourceLine found;
    if (module_ == nullptr || offset >= end_ - start_) return found;
    const Dwarf_Addr address = start_ + offset;
    found.function = demangled(dwfl_module_addrname(module_, address));
    Dwfl_Line* line = dwfl_module_getsrc(module_, address);
    if (line == nullptr) return found;
    const char* file = dwfl_lineinfo(line, nullptr, &found.line, nullptr, nullptr, nullptr);
    if (file == nullptr) return found;
    found.file = file;
    const std::string_view root = source_root();
    found.is_own = !root.empty() && found.file.starts_with(root);
    if (found.is_own) found.file.erase(0, root.size());
    return found;
  }

 private:
  static constexpr Dwfl_Callbacks kCallbacks = {.find_elf = dwfl_build_id_find_elf,
                                                .find_debuginfo = dwfl_standard_find_debuginfo,
                                                .section_address = dwfl_offline_section_address,
                                                .debuginfo_path = nullptr};
  Dwfl* session_;
  Dwfl_Module* module_ = nullptr;
  Dwarf_Addr start_ = 0;
  Dwarf_Addr end_ = 0;
};

SourceLines::SourceLines() : program_(std::make_unique<Program>()) {}
SourceLines::~SourceLines() = default;
SourceLine SourceLines::find(uint64_t offset) const { return program_->find(offset); }

}  // namespace gxp
