# find_package(rigstep [COMPONENTS core config rt rig c] [shared])
#
#   rigstep::core    mechanism and stepper
#   rigstep::config  mechanism and rig files
#   rigstep::rt      cycle, deadline loop, thread set-up
#   rigstep::rig     a rig's end of the link to `rigstep serve`: a shared library of its own
#   rigstep::c       rigstep.h, the interface for C: a shared library of its own
#
# Without components: the first four. The first three are static libraries; with the component `shared`, or where
# BUILD_SHARED_LIBS is on, they are librigstep_shared.so.
include(CMakeFindDependencyMacro)

set(rigstep_requested ${rigstep_FIND_COMPONENTS})
if("${rigstep_requested}" MATCHES "^(shared)?$")
  list(APPEND rigstep_requested core config rt rig)
  foreach(component core config rt rig)
    set(rigstep_FIND_REQUIRED_${component} ${rigstep_FIND_REQUIRED})
  endforeach()
endif()
set(rigstep_is_shared ${BUILD_SHARED_LIBS})
if("shared" IN_LIST rigstep_requested)
  set(rigstep_is_shared ON)
endif()

if(rigstep_requested MATCHES "core|config|rt|shared")
  find_dependency(Eigen3 3.4)
  if(rigstep_is_shared)
    if(TARGET rigstep::core AND NOT TARGET rigstep::shared)
      message(FATAL_ERROR "rigstep: found as static libraries before: choose one kind for the whole program")
    endif()
    include(${CMAKE_CURRENT_LIST_DIR}/rigstep-shared-targets.cmake)
  else()
    find_dependency(OpenMP COMPONENTS CXX)
    include(${CMAKE_CURRENT_LIST_DIR}/rigstep-core-targets.cmake)
  endif()
endif()

foreach(component ${rigstep_requested})
  set(rigstep_${component}_FOUND TRUE)
  if(component STREQUAL "rig")
    include(${CMAKE_CURRENT_LIST_DIR}/rigstep-rig-targets.cmake)
  elseif(component STREQUAL "c")
    include(${CMAKE_CURRENT_LIST_DIR}/rigstep-c-targets.cmake)
  elseif(component MATCHES "^(core|config|rt)$" AND rigstep_is_shared)
    if(NOT TARGET rigstep::${component})
      add_library(rigstep::${component} INTERFACE IMPORTED)
      target_link_libraries(rigstep::${component} INTERFACE rigstep::shared)
    endif()
  elseif(component STREQUAL "config")
    find_dependency(Protobuf)
    include(${CMAKE_CURRENT_LIST_DIR}/rigstep-config-targets.cmake)
  elseif(component STREQUAL "rt")
    find_dependency(Threads)
    include(${CMAKE_CURRENT_LIST_DIR}/rigstep-rt-targets.cmake)
  elseif(NOT component MATCHES "^(core|shared)$")
    set(rigstep_${component}_FOUND FALSE)
    if(rigstep_FIND_REQUIRED_${component})
      set(rigstep_FOUND FALSE)
      set(rigstep_NOT_FOUND_MESSAGE "${component} is no component of rigstep: use core, config, rt, rig, c or shared")
    endif()
  endif()
endforeach()
