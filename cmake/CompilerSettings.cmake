# Language level, warnings and sanitizers, and the function that declares a layer.
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

# gxp_layer(NAME SOURCES file... [LINK target...]): the static library gxp_NAME of this folder.
function(gxp_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(gxp_${name} STATIC ${ARG_SOURCES})
  target_include_directories(gxp_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(gxp_${name} PUBLIC ${ARG_LINK})
endfunction()
