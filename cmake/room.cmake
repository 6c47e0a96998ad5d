# A room is one folder below src/ and one static library; ingot_library() joins them all into libingot.
function(ingot_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$|/generate_api\\.cpp$")  # programs, not parts of a library
  if(NOT sources)
    file(WRITE ${CMAKE_BINARY_DIR}/empty.cpp "")
    set(sources ${CMAKE_BINARY_DIR}/empty.cpp)
  endif()
  add_library(ingot_${name} STATIC ${sources})
  target_include_directories(ingot_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  foreach(dependency ${ROOM_DEPENDS})
    target_link_libraries(ingot_${name} PUBLIC ingot_${dependency})
  endforeach()
  target_link_libraries(ingot_${name} PRIVATE ${ROOM_PRIVATE})
  # Builds with sanitizers begin from nothing in every run of .ci/run: what most files include is compiled once. Plain
  # builds show what a file forgot to include.
  if(INGOT_SANITIZE)
    set(included ${CMAKE_SOURCE_DIR}/src/base/program.h)
    if(NOT name MATCHES "^(base|runtime)$")
      list(APPEND included ${CMAKE_SOURCE_DIR}/src/ir/graph.h)
    endif()
    target_precompile_headers(ingot_${name} PRIVATE <algorithm> <functional> <map> <mutex> <optional> <unordered_map>
                              ${included})
  endif()
  set_property(GLOBAL APPEND PROPERTY INGOT_ROOMS ingot_${name})
endfunction()

# The shared library that users link: all rooms, only what INGOT_API marks visible.
function(ingot_library)
  get_property(rooms GLOBAL PROPERTY INGOT_ROOMS)
  file(WRITE ${CMAKE_BINARY_DIR}/empty.cpp "")
  add_library(ingot SHARED ${CMAKE_BINARY_DIR}/empty.cpp)
  add_library(ingot::ingot ALIAS ingot)
  target_link_libraries(ingot PRIVATE -Wl,--whole-archive ${rooms} -Wl,--no-whole-archive)
  target_link_libraries(ingot PRIVATE ${CMAKE_DL_LIBS})
  # Its threads sleep in its code for as long as the process lives: dlclose leaves it where it is.
  target_link_options(ingot PRIVATE LINKER:-z,nodelete LINKER:-Bsymbolic-functions)
  target_include_directories(ingot PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src> $<INSTALL_INTERFACE:include>)
  set_target_properties(ingot PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_compile_features(ingot PUBLIC cxx_std_20)
endfunction()
