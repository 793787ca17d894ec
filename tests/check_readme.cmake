# README.md and .ci/run promise the same commands.
#   cmake -P tests/check_readme.cmake
cmake_minimum_required(VERSION 3.25)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)

set(demo "docker/setup.sh && cmake --workflow --preset demo")
set(test "docker/setup.sh && cmake --workflow --preset test")

function(require_line file line)
  file(READ "${root}/${file}" content)
  string(FIND "\n${content}\n" "\n${line}\n" at)
  if(at EQUAL -1)
    message(SEND_ERROR "${file}: has no line that reads: ${line}")
  endif()
endfunction()

if(NOT EXISTS "${root}/README.md")
  message(FATAL_ERROR "README.md is missing")
endif()
require_line(README.md "${demo}")
require_line(README.md "${test}")
require_line(.ci/run "${test}")

# and nothing else that could pass or fail on its own
file(STRINGS "${root}/.ci/run" commands REGEX "^[^#]")
foreach(command IN LISTS commands)
  if(NOT command MATCHES "^(set -|cd )" AND NOT command STREQUAL test)
    message(SEND_ERROR ".ci/run: runs more than ${test}: ${command}")
  endif()
endforeach()
