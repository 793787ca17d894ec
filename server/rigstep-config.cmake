include(${CMAKE_CURRENT_LIST_DIR}/rigstep-targets.cmake)
