// To be preloaded: the thread that loads batches reads once, and then hangs in read after read, as where a disk or
// a file server does; if HANGING_RANK is set, on this rank only.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace {

bool hangs_here() {
  const char* only = std::getenv("HANGING_RANK");
  const char* rank = std::getenv("GXP_RANK");
  return only == nullptr || (rank != nullptr && std::string_view(rank) == only);
}

}  // namespace

extern "C" ssize_t pread(int file, void* to, size_t bytes, off_t at) {
  using Read = ssize_t (*)(int, void*, size_t, off_t);
  static const auto next = reinterpret_cast<Read>(dlsym(RTLD_NEXT, "pread"));
  static thread_local int reads = 0;
  char thread[16] = "";
  pthread_getname_np(pthread_self(), thread, sizeof thread);
  while (thread == std::string_view("gxp-loader") && reads > 0 && hangs_here()) pause();
  ++reads;
  return next(file, to, bytes, at);
}
