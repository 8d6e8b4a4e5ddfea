// Threads and processes whose failure to start says what could not, and which limit is in the way.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace gxp {

// Throws kIo with the system's reason (errno) for not starting `what`: "thread gxp-store", "rank
// 3". The message has the limits that hold here.
[[noreturn]] void fail_to_start(std::string_view what, int error_number);

// `name`: for the message; the thread names itself.
template <class Work>
std::jthread start_thread(std::string_view name, Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    fail_to_start(fmt::format("thread {}", name), error.code().value());
  }
}

}  // namespace gxp
