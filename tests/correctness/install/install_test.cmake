# Installs the build tree into an empty prefix, moves the prefix (nothing may remember where it was), configures and builds
# the consumer project against it, runs the consumer and the installed command. Run by CTest; -D BUILD, SOURCE, WORK, GENERATOR, CXX, CONFIG.
cmake_minimum_required(VERSION 3.25)

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REPLACE ";" " " command "${ARGN}")
  message(STATUS "${command}\n${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
step(${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/prefix)

step(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE}/consumer -B ${WORK}/build -DCMAKE_CXX_COMPILER=${CXX}
  -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
step(${CMAKE_COMMAND} --build ${WORK}/build)
step(${WORK}/build/consumer)
step(${CMAKE_COMMAND} -E env ZYFA_CACHE=off ${WORK}/build/example)
step(${WORK}/prefix/bin/zyfa-jit --help)

# Every public header is there, and no private one.
file(GLOB_RECURSE installed RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*)
file(GLOB_RECURSE public RELATIVE ${SOURCE}/../../../runtime/include ${SOURCE}/../../../runtime/include/*.h)
list(SORT installed)
list(SORT public)
if(NOT installed STREQUAL public)
  message(FATAL_ERROR "installed headers are ${installed}, the public ones ${public}")
endif()
