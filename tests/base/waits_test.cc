// Holds every call of lib/, kernels/ and cmd/ that may block against the rule that none waits for
// ever: it takes a deadline, a time or a stop token, or says after "ends:", on its line or the one
// before, what else bounds it.
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

struct Wait {
  const char* call;     // what blocks
  const char* bounded;  // what on the same or the next line bounds it
};

// Streams' wait() queues; a poll of 0 looks; PENDING.wait() ends when its call does.
const std::vector<Wait>& waits() {
  static const std::vector<Wait> rows = {
      {R"((\.|->)wait\()", R"([Dd]eadline|stop|until|(stream|queue_)\.wait|[^_]wait\(\);)"},
      {R"((^|[^\w:])::p?poll\()", R"([Dd]eadline|, 0\)|timeout|_ms|kLookMs|until)"},
      {R"(\bepoll_wait\()", R"(, 0\)|[Dd]eadline)"},
      {R"(\bwaitpid\(|\bwaitid\()", R"(WNOHANG)"},
      {R"(\b(flock|lockf)\()", R"(LOCK_NB|F_TLOCK)"},
      {R"(F_SETLKW|\bsigwait(info)?\(|::pause\(\)|\barrive_and_wait\()", R"($^)"},
      {R"(\.join\(\))", R"($^)"},
      {R"(\bcuda\w+Synchronize\(|\bcu(Stream|Event|Ctx)Synchronize\()", R"($^)"},
      {R"(\bSYS_futex\b.*WAIT)", R"(timeout)"}};
  return rows;
}

std::string code_of(const std::string& line) { return line.substr(0, line.find("//")); }

// "lib/a.cc:12: the call" for each wait without an end.
std::vector<std::string> endless_waits(const fs::path& root) {
  std::vector<std::pair<std::regex, std::regex>> rows;
  for (const Wait& wait : waits()) rows.emplace_back(wait.call, wait.bounded);
  std::vector<std::string> found;
  for (const char* folder : {"lib", "kernels", "cmd"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h" && extension != ".cu" && extension != ".cuh")
        continue;
      std::ifstream file(entry.path());
      std::vector<std::string> lines(1);  // lines[0]: before the first
      for (std::string line; std::getline(file, line);) lines.push_back(line);
      lines.emplace_back();
      for (size_t i = 1; i + 1 < lines.size(); ++i) {
        const std::string code = code_of(lines[i]);
        if (code.find('(') == std::string::npos) continue;
        for (const auto& [call, bounded] : rows) {
          if (!std::regex_search(code, call)) continue;
          if (std::regex_search(code + " " + code_of(lines[i + 1]), bounded)) continue;
          if ((lines[i - 1] + lines[i]).find("// ends: ") != std::string::npos) continue;
          found.push_back(fmt::format("{}:{}: {}", fs::relative(entry.path(), root).string(), i,
                                      code.substr(code.find_first_not_of(' '))));
        }
      }
    }
  }
  return found;
}

TEST_CASE("no wait of the tree is without an end", "[base]") {
  CHECK(endless_waits(GXP_SOURCE_DIR) == std::vector<std::string>());
}

TEST_CASE("a wait without an end is found", "[base]") {
  const auto [code, is_endless] = GENERATE(
      table<std::string, bool>({{"changed_.wait(lock, [] { return true; });", true},
                                {"deadline.wait(changed_, lock, done);", false},
                                {"changed_.wait(lock, stop, done);", false},
                                {"state->wait(lock);  // ends: when its peer has gone", false},
                                {"// ends: when its peer has gone\n  state->wait(lock);", false},
                                {"stream.wait(event);", false},
                                {"::poll(&entry, 1, -1);", true},
                                {"::poll(&entry, 1, 0);", false},
                                {"::poll(&entry, 1,\n         deadline.remaining_ms());", false},
                                {"transport.poll(4);", false},
                                {"::waitpid(pid, &status, 0);", true},
                                {"::flock(fd, LOCK_EX);", true},
                                {"thread.join();", true},
                                {"cudaStreamSynchronize(stream);", true},
                                {"// cudaStreamSynchronize(stream);", false}}));
  CAPTURE(code);
  const TemporaryDirectory dir;
  for (const char* folder : {"lib", "kernels", "cmd"}) fs::create_directories(dir / folder);
  std::ofstream(dir / "lib/a.cc") << "void f() {\n  " << code << "\n}\n";
  CHECK(!endless_waits(dir.path()).empty() == is_endless);
}

}  // namespace
}  // namespace gxp
