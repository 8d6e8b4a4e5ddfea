#include "lib/base/log_queue.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <thread>

#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "tests/catch.h"

namespace gxp {

TEST_CASE("a log whose reader is paused holds nobody up, and counts what it drops", "[base]") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const Fd read(ends[0]), write(ends[1]);
  auto queue = std::make_unique<LogQueue>(write.get());
  const std::string line(999, 'x');
  for (int i = 0; i < 3000; ++i) log_info("{}", line);  // 3 MB, which nobody reads meanwhile
  log_info("last");
  std::string text;
  std::jthread reader([&] {
    std::array<char, 65536> bytes;
    for (;;) {
      pollfd entry{read.get(), POLLIN, 0};
      if (::poll(&entry, 1, 1000) <= 0) return;
      const ssize_t count = ::read(read.get(), bytes.data(), bytes.size());
      text.append(bytes.data(), size_t(count));
    }
  });
  queue.reset();  // writes what is left
  reader.join();
  CHECK(text.starts_with("gxp " + line + "\n"));
  CHECK(text.size() < 2 * LogQueue::kMostBytes);
  CHECK(text.find(" lines were dropped here, since their reader was too slow\n") !=
        std::string::npos);
}

}  // namespace gxp
