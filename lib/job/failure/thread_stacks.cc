#include "lib/job/failure/thread_stacks.h"

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "lib/base/text/read_number.h"
#include "lib/base/text/visible_text.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMostThreads = 256;
constexpr int kMostFrames = 64;
constexpr int kOwnFrames = 2;  // of the handler, and of the return from it
constexpr auto kPatience = 100ms;

struct Slot {
  std::atomic<pid_t> thread{0};
  std::atomic<int> count{-1};  // of frames, once they are there
  std::array<void*, kMostFrames> frames{};
};
using Slots = std::array<Slot, kMostThreads>;

// What the handler writes to. It may run late, when nobody waits any more, so the memory stays.
std::atomic<Slots*> wanted{nullptr};

// backtrace() takes no lock here: capture_stacks() has loaded what it needs.
void note_stack(int) {
  const int error = errno;
  const pid_t self = pid_t(::syscall(SYS_gettid));
  if (Slots* slots = wanted.load(std::memory_order_acquire); slots != nullptr)
    for (Slot& slot : *slots)
      if (slot.thread.load(std::memory_order_relaxed) == self) {
        slot.count.store(::backtrace(slot.frames.data(), kMostFrames), std::memory_order_release);
        break;
      }
  errno = error;
}

std::vector<pid_t> threads_of_process() {
  std::vector<pid_t> threads = {::getpid()};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error))
    if (const auto thread = read_number<pid_t>(entry.path().filename().string());
        thread && *thread != threads[0] && threads.size() < kMostThreads)
      threads.push_back(*thread);
  return threads;
}

// The rest of the line of /proc/self/task/THREAD/status that begins with `key`.
std::string status_of(pid_t thread, std::string_view key) {
  std::ifstream file(fmt::format("/proc/self/task/{}/status", thread));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return visible(line.substr(std::min(line.size(), key.size() + 1)));
  return "";
}

StackFrame frame_at(void* address) {
  Dl_info found{}, own{};
  const auto number = reinterpret_cast<uintptr_t>(address);
  if (::dladdr(address, &found) == 0) return {"unknown", number, ""};
  ::dladdr(reinterpret_cast<void*>(&note_stack), &own);
  const bool is_own = found.dli_fbase == own.dli_fbase;
  const auto base = reinterpret_cast<uintptr_t>(found.dli_fbase);
  return {is_own ? "" : std::filesystem::path(found.dli_fname).filename().string(), number - base,
          found.dli_sname == nullptr ? "" : found.dli_sname};
}

ThreadStack describe_stack(pid_t thread, const Slot& slot) {
  ThreadStack stack{thread, status_of(thread, "Name:"), status_of(thread, "State:"), {}};
  const int count = slot.count.load(std::memory_order_acquire);
  // A return address is the place after the call.
  for (int i = kOwnFrames; i < count; ++i)
    stack.frames.push_back(
        frame_at(static_cast<char*>(slot.frames[size_t(i)]) - (i > kOwnFrames ? 1 : 0)));
  return stack;
}

bool all_answered(const Slots& slots, size_t count) {
  return std::all_of(slots.begin(), slots.begin() + std::ptrdiff_t(count),
                     [](const Slot& slot) { return slot.count >= 0; });
}

int note_build_id(dl_phdr_info* info, size_t, void* result) {
  constexpr size_t kMostBytes = 64;
  for (const auto& header : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
    if (header.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    for (const char* end = at + header.p_memsz; at + sizeof(ElfW(Nhdr)) <= end;) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const auto* bytes =
          reinterpret_cast<const unsigned char*>(at) + sizeof note + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= kMostBytes)
        for (const unsigned char byte : std::span(bytes, note.n_descsz))
          *static_cast<std::string*>(result) += fmt::format("{:02x}", byte);
      at = reinterpret_cast<const char*>(bytes) + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return 1;  // the first is this program
}

}  // namespace

std::vector<ThreadStack> capture_stacks() {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  std::array<void*, 1> first;
  ::backtrace(first.data(), 1);  // loads the unwinder
  const std::vector<pid_t> threads = threads_of_process();
  static Slots slots;  // for handlers that run late
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i].count = -1;
    slots[i].thread = i < threads.size() ? threads[i] : 0;
  }
  wanted.store(&slots, std::memory_order_release);
  const int number = SIGRTMIN + 6;
  struct sigaction act = {};
  act.sa_handler = note_stack;
  act.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigaction(number, &act, nullptr);  // it stays: the default would end the process
  for (size_t i = 0; i < threads.size(); ++i)
    if (::syscall(SYS_tgkill, ::getpid(), threads[i], number) != 0)
      slots[i].count = 0;  // it has ended
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!all_answered(slots, threads.size()) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
  wanted.store(nullptr, std::memory_order_release);
  std::vector<ThreadStack> stacks;
  for (size_t i = 0; i < threads.size(); ++i)
    if (slots[i].count != 0) stacks.push_back(describe_stack(threads[i], slots[i]));
  return stacks;
}

std::string build_id() {
  std::string id;
  ::dl_iterate_phdr(note_build_id, &id);
  return id;
}

}  // namespace gxp
