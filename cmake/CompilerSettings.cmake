# Language level, warnings and sanitizers; ccache and precompiled headers; the function that declares a layer.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")  # GXP_ASSERT stays on: it costs nothing that can be measured

option(GXP_WERROR "Warnings are errors" OFF)
set(GXP_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them")

add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
                    $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno> $<$<COMPILE_LANGUAGE:CXX>:-fno-trapping-math>)
if(GXP_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_UNITY_BUILD)
  # GCC takes the files of a unit for headers, whose classes must not have members of a file's own types.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
if(GXP_SANITIZE)
  add_compile_options(-fsanitize=${GXP_SANITIZE} -fno-omit-frame-pointer)
  # With a sanitizer, GCC 12 believes that libstdc++'s <regex>, which Catch2 uses, reads what nobody wrote.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  # The thread sanitizer ignores fences, and GCC warns of each. Those of gxp are between processes.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-tsan>)
  if(GXP_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  add_link_options(-fsanitize=${GXP_SANITIZE})
endif()

# GCC collects its garbage from 1 GiB on, not from some 100 MiB: up to a fifth less time, for a quarter more memory.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>")

option(GXP_CCACHE "Compile through ccache where it is installed and no other launcher is set" ON)
find_program(GXP_CCACHE_PROGRAM ccache)
if(GXP_CCACHE AND GXP_CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without these ccache keeps nothing that was compiled with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${GXP_CCACHE_PROGRAM})
endif()
# ... nor without GCC's word of which one that was.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)

# What most files include and gxp does not write, compiled once. GCC takes it only into files with the same flags: so there is
# one for layers, and one for those that are COLD. cmd and tests have their own.
set(gxp_std_headers <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <condition_variable> <deque> <filesystem> <fstream> <functional> <map> <memory> <mutex>
                    <numeric> <optional> <set> <span> <sstream> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
                    <fmt/format.h>)
# gxp_precompiled(NAME [HEADERS header...] [LINK target...]): for use as REUSE_FROM
function(gxp_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK" ${ARGN})
  add_library(${name} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled.cc)
  target_link_libraries(${name} PRIVATE fmt::fmt Threads::Threads ${ARG_LINK})
  target_precompile_headers(${name} PRIVATE ${gxp_std_headers} ${ARG_HEADERS})
endfunction()

# What runs a few times a job and not in its loops: configuration, reports, checks. It is a half of the code.
set(gxp_cold_options $<$<CONFIG:Release>:-O1>)

# gxp_layer(NAME [COLD] SOURCES file... [LINK target...]): the static library gxp_NAME of this folder.
function(gxp_layer name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;LINK" ${ARGN})
  add_library(gxp_${name} STATIC ${ARG_SOURCES})
  target_include_directories(gxp_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(gxp_${name} PUBLIC ${ARG_LINK})
  if(ARG_COLD)
    target_compile_options(gxp_${name} PRIVATE ${gxp_cold_options})
    target_precompile_headers(gxp_${name} REUSE_FROM gxp_precompiled_cold)
  else()
    target_precompile_headers(gxp_${name} REUSE_FROM gxp_precompiled)
  endif()
endfunction()
