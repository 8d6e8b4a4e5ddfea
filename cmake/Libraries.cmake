# Required libraries, and probes of the optional ones: each says what it found, or what its absence costs.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
if(fmt_VERSION VERSION_LESS 10)
  # Formats are checked where they are compiled by all builds but this one, and so by `make lint`; it is a twentieth of the time.
  add_compile_definitions($<$<CONFIG:Release>:FMT_CONSTEVAL=>)
endif()
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
if(GXP_TOOLS)
  find_package(pugixml REQUIRED)
  find_package(yaml-cpp REQUIRED)
endif()
find_package(PkgConfig REQUIRED)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(dw REQUIRED IMPORTED_TARGET libdw)
pkg_check_modules(deflate REQUIRED IMPORTED_TARGET libdeflate)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(isal REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(simdjson REQUIRED IMPORTED_TARGET simdjson>=3)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
if(GXP_TESTS)
  find_package(Catch2 REQUIRED)
  include(Catch)
endif()

# gxp_probe(NAME FOUND "what it is" "what its absence costs")
function(gxp_probe name found what cost)
  if(found)
    message(STATUS "optional ${name}: found (${what})")
  else()
    message(STATUS "optional ${name}: not found; ${cost}")
  endif()
endfunction()

# By path: Debian's dnnl-config.cmake asks for OpenCL's development files, which gxp does not use.
if(GXP_BENCH)
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h)
  find_library(DNNL_LIBRARY dnnl)
  gxp_probe(oneDNN "${DNNL_LIBRARY}" "${DNNL_LIBRARY}" "gxp_gemm_bench has nothing to compare with")
endif()

find_package(CUDAToolkit QUIET)
gxp_probe(CUDA "${CUDAToolkit_FOUND}" "toolkit ${CUDAToolkit_VERSION}; preset cuda compiles the CUDA backend"
          "the CUDA backend cannot be compiled")
option(GXP_CUDA "Compile the CUDA backend and the engine nccl" OFF)
if(GXP_CUDA)
  find_package(CUDAToolkit REQUIRED)
  # Machine code for A100, RTX 4090 and L40S, H100 (90a: with its wgmma and TMA), B200 and RTX 5090; PTX that others compile at
  # load.
  set(CMAKE_CUDA_ARCHITECTURES 80-real 89-real 90a-real 100 120-real CACHE STRING "GPU architectures")
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")  # CMake 3.25 does not know nvcc's flag
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")
  if(GXP_WERROR)
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
  endif()
endif()

option(GXP_URING "Read and write offloaded state with io_uring, where liburing is found" ON)
if(GXP_URING)
  pkg_check_modules(uring QUIET IMPORTED_TARGET liburing)
endif()
gxp_probe(liburing "${uring_FOUND}" "liburing ${uring_VERSION}" "files of offloaded state are read and written by pread and pwrite")

# NCCL is not looked for: the engine nccl loads it at run time and needs no header of its.
# Only libibverbs' headers: the transport verbs loads it at run time.
pkg_check_modules(verbs QUIET libibverbs)
gxp_probe(verbs "${verbs_FOUND}" "headers of libibverbs ${verbs_VERSION}" "the transport verbs cannot be compiled")

# Which MPI: -DMPI_CXX_COMPILER=mpicxx.mpich, and for the tests -DMPIEXEC_EXECUTABLE=/usr/bin/mpirun.mpich; without
# them CMake's search decides.
option(GXP_MPI "Compile the engine mpi; gxp then needs that MPI's library to start" OFF)
if(GXP_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)  # only MPI's C interface is used
  find_package(MPI 3.0 REQUIRED COMPONENTS CXX)
endif()
find_program(GXP_MPI_COMPILER NAMES mpicxx mpicxx.openmpi mpicxx.mpich)
gxp_probe(MPI "${GXP_MPI_COMPILER}" "${GXP_MPI_COMPILER}; -DGXP_MPI=ON compiles the engine mpi"
          "the engine mpi cannot be compiled")
