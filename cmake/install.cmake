# What `cmake --install` puts where: the library, the command, headers under include/ingot, and the package for find_package(ingot).
include(CMakePackageConfigHelpers)

install(TARGETS ingot EXPORT ingot_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ingot_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY examples/data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/ingot)
install(EXPORT ingot_targets NAMESPACE ingot:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ingot FILE ingotTargets.cmake)
file(WRITE ${CMAKE_BINARY_DIR}/ingotConfig.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/ingotTargets.cmake)\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ingotConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/ingotConfig.cmake ${CMAKE_BINARY_DIR}/ingotConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ingot)

# The headers that a user's program reaches from ingot.h and ir.h, and no others. They include each other as
# "floor/file.h"; installed, as "ingot/floor/file.h", so that a user's own folders cannot get between.
install(CODE "
  set(include_dir \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/ingot\")
  set(headers ingot.h ir.h)
  set(position 0)
  list(LENGTH headers count)
  while(position LESS count)
    list(GET headers \${position} header)
    foreach(root \"${CMAKE_SOURCE_DIR}/src\" \"${CMAKE_BINARY_DIR}/generated\")
      if(EXISTS \${root}/\${header})
        file(READ \${root}/\${header} text)
        string(REGEX MATCHALL \"#include \\\"[^\\\"]+\\\"\" includes \"\${text}\")
        string(REGEX REPLACE \"#include \\\"(ingot/)?([^\\\"]+)\\\"\" \"#include \\\"ingot/\\\\2\\\"\" text \"\${text}\")
        file(WRITE \${include_dir}/\${header} \"\${text}\")
        foreach(include \${includes})
          string(REGEX REPLACE \"#include \\\"(.*)\\\"\" \"\\\\1\" include \"\${include}\")
          list(APPEND headers \${include})
        endforeach()
      endif()
    endforeach()
    list(REMOVE_DUPLICATES headers)
    list(LENGTH headers count)
    math(EXPR position \"\${position} + 1\")
  endwhile()
")
