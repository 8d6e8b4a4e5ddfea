// The main function of gxp_cuda_test: without a usable GPU it says why and exits with 77, which
// CTest reports as skipped.
#include <cstdio>

#include "lib/device/cuda_device.h"

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int main(int argc, char** argv) {
  if (const gxp::Support support = gxp::cuda_support(); !support) {
    std::printf("skipped: %s\n", support.reason.c_str());
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
