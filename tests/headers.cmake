# Every header compiles alone, so that the order of includes never matters; and an include that points up the levels
# does not compile.
get_property(modules GLOBAL PROPERTY ACT_MODULES)
foreach(module ${modules})
  file(GLOB_RECURSE headers RELATIVE ${CMAKE_SOURCE_DIR}/act CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/act/${module}/*.h)
  set(sources)
  foreach(header ${headers})
    string(REPLACE "/" "_" name ${header})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.c)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(headers_of_${module} OBJECT ${sources})
  target_link_libraries(headers_of_${module} PRIVATE act_${module} act_flags)
endforeach()

file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/headers/down.c CONTENT "#include \"base/text.h\"\n")
add_test(NAME include_down_compiles
         COMMAND ${CMAKE_C_COMPILER} -fsyntax-only -I${CMAKE_BINARY_DIR}/include/base
                 ${CMAKE_CURRENT_BINARY_DIR}/headers/down.c)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/headers/up.c CONTENT "#include \"store/store.h\"\n")
add_test(NAME include_up_does_not_compile
         COMMAND ${CMAKE_C_COMPILER} -fsyntax-only -I${CMAKE_BINARY_DIR}/include/base
                 ${CMAKE_CURRENT_BINARY_DIR}/headers/up.c)
set_tests_properties(include_up_does_not_compile PROPERTIES WILL_FAIL TRUE)
