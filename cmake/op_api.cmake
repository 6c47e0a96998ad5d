# The op API (Tensor methods, functions) is generated from the op table at build time.
add_executable(generate_api ${CMAKE_SOURCE_DIR}/tools/generate_api.cpp)
target_link_libraries(generate_api PRIVATE ingot_ir)
set(op_api_folder ${CMAKE_BINARY_DIR}/generated)
set(op_api ${op_api_folder}/eager/ops_methods.inc ${op_api_folder}/eager/ops.h ${op_api_folder}/eager/ops.cpp)
file(MAKE_DIRECTORY ${op_api_folder}/eager)
add_custom_command(OUTPUT ${op_api}
                   COMMAND generate_api ${op_api_folder}/eager
                   DEPENDS generate_api
                   COMMENT "Generating the op API")
add_custom_target(op_api DEPENDS ${op_api})
target_sources(ingot_eager PRIVATE ${op_api})
target_include_directories(ingot_eager PUBLIC ${op_api_folder})
add_dependencies(ingot_eager op_api)
target_include_directories(ingot PUBLIC $<BUILD_INTERFACE:${op_api_folder}>)
add_dependencies(ingot op_api)
install(FILES ${op_api_folder}/eager/ops_methods.inc ${op_api_folder}/eager/ops.h DESTINATION include/ingot/eager)
