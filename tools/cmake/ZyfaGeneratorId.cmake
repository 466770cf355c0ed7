# The generator id: a SHA-256 over the name and text of every source of jit/ and schedules/ and the LLVM version.
#
# The tuned rows (schedules/select/tuned_rows.inc) are not among them: a key holds its placement itself.
#
# Included, it offers
#   zyfa_generator_id(<target> <header> [<extra text>])
# which makes <header> at build time whenever one of those sources changes, defining zyfa::kGeneratorId.
# Run with `cmake -P` (by that rule), it writes the header, and leaves it alone when nothing has changed.
# Names are relative to the source tree, so the id does not depend on where the tree lies.

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
endif()

set(ZYFA_GENERATOR_GLOBS
  jit/*.h jit/*.cpp jit/*.def
  schedules/*.h schedules/*.cpp)

function(zyfa_generator_sources root out)
  set(patterns)
  foreach(glob ${ZYFA_GENERATOR_GLOBS})
    list(APPEND patterns ${root}/${glob})
  endforeach()
  if(CMAKE_SCRIPT_MODE_FILE)
    file(GLOB_RECURSE sources ${patterns})
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  endif()
  list(SORT sources)
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(ZYFA_GENERATOR_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  function(zyfa_generator_id target header)
    zyfa_generator_sources(${CMAKE_SOURCE_DIR} sources)
    add_custom_command(OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DOUT=${header} "-DEXTRA=${ARGN}" -P ${ZYFA_GENERATOR_SCRIPT}
      DEPENDS ${sources} ${ZYFA_GENERATOR_SCRIPT}
      COMMENT "Generator id of jit/ and schedules/" VERBATIM)
    add_custom_target(${target} DEPENDS ${header})
  endfunction()
  return()
endif()

zyfa_generator_sources(${ROOT} sources)
set(text "${EXTRA}\n")
foreach(source ${sources})
  file(RELATIVE_PATH name ${ROOT} ${source})
  file(SHA256 ${source} digest)
  string(APPEND text "${name} ${digest}\n")
endforeach()
string(SHA256 id "${text}")
string(SUBSTRING ${id} 0 32 id)
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT "// Made by tools/cmake/ZyfaGeneratorId.cmake.
#pragma once

namespace zyfa {
inline constexpr char kGeneratorId[] = \"@id@\";
}
")
