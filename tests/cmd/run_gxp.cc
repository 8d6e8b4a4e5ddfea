#include "tests/cmd/run_gxp.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "lib/base/environment.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

Fd make_memory_file(const char* name) {
  return Fd(int(check_sys(::memfd_create(name, MFD_CLOEXEC), "make a file in memory")));
}

std::string text_of(const Fd& file) {
  std::string text;
  std::array<char, 4096> chunk;
  for (off_t at = 0;; at = off_t(text.size())) {
    const ssize_t count = ::pread(file.get(), chunk.data(), chunk.size(), at);
    if (count <= 0) return text;
    text.append(chunk.data(), size_t(count));
  }
}

// "" once the process has ended, also while it is read: an istreambuf_iterator would throw.
std::string read_bytes(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool belongs_to_a_launcher(const std::string& name) {
  constexpr std::array kPrefixes = {"GXP_",          "SLURM_", "OMPI_",          "PMI",
                                    "TORCHELASTIC_", "RANK",   "LOCAL_",         "WORLD_SIZE",
                                    "MASTER_",       "PET_",   "JOB_COMPLETION_"};
  for (const char* prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

std::vector<std::string> environment_of(const Surroundings& surroundings) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : process_environment()) {
    if (!belongs_to_a_launcher(name)) variables.push_back(name + "=" + value);
  }
  for (const auto& [name, value] : surroundings.environment)
    variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

std::vector<std::string> Outcome::errors() const {
  std::vector<std::string> lines;
  std::istringstream stream(err);
  for (std::string line; std::getline(stream, line);) {
    if (line.find("error") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

Process::Process(const std::vector<std::string>& argv, const Surroundings& surroundings)
    : out_(make_memory_file("out")), err_(make_memory_file("err")) {
  std::vector<std::string> arguments = argv;
  std::vector<std::string> variables = environment_of(surroundings);
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> variable_pointers = pointers(variables);
  pid_ = pid_t(check_sys(::fork(), "start " + argv[0]));
  if (pid_ != 0) return;
  ::dup2(out_.get(), STDOUT_FILENO);
  ::dup2(err_.get(), STDERR_FILENO);
  const rlimit limit{surroundings.file_bytes, surroundings.file_bytes};
  if (surroundings.file_bytes > 0) ::setrlimit(RLIMIT_FSIZE, &limit);
  ::execvpe(argument_pointers[0], argument_pointers.data(), variable_pointers.data());
  ::_exit(127);
}

Process::~Process() {
  if (pid_ > 0) end(Deadline::after(std::chrono::seconds(0)));
}

Outcome Process::end(Deadline deadline) {
  int status = 0;
  const bool in_time = poll_until([&] { return ::waitpid(pid_, &status, WNOHANG) != 0; }, deadline);
  if (!in_time) {
    signal(SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  pid_ = -1;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {in_time ? code : -1, text_of(out_), text_of(err_)};
}

std::vector<std::string> gxp_argv(const std::vector<std::string>& arguments) {
  return Arguments{GXP_BINARY} + arguments;
}

Outcome run_gxp(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  return Process(gxp_argv(arguments), surroundings).end();
}

std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (read_bytes(entry.path() / "cmdline").find(text) != std::string::npos) found.push_back(pid);
  }
  return found;
}

bool signal_rank(const std::string& text, int rank, int number) {
  return poll_until([&] {
    for (const pid_t process : processes_with(text)) {
      if (variable_of(process, "GXP_RANK") == std::to_string(rank))
        return ::kill(process, number) == 0;
    }
    return false;
  });
}

std::string variable_of(pid_t process, const std::string& name) {
  const std::string all =
      std::string(1, '\0') + read_bytes("/proc/" + std::to_string(process) + "/environ");
  const std::string start = std::string(1, '\0') + name + "=";
  const size_t at = all.find(start);
  return at == std::string::npos ? "" : std::string(all.c_str() + at + start.size());
}

}  // namespace gxp
