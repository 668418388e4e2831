# A folder below act/ is a module is a library. act_module() keeps the direction of the includes:
#
#  * A module has a level and may only use modules of a lower level.
#  * "#include "<module>/<header>.h"" resolves only for those that link the module, because each module
#    has an include folder of its own in the build tree, which holds nothing but a link to its sources.
#
# The agent is linked statically, so that it runs on any node. Modules it needs (marked NODE) are built a
# second time as act_<name>_static, without sanitizers.
find_package(PkgConfig REQUIRED)

function(act_module name)
  cmake_parse_arguments(M "NODE" "LEVEL" "SOURCES;USES;LIBRARIES" ${ARGN})
  set_property(GLOBAL APPEND PROPERTY ACT_MODULES ${name})
  set(dir ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${dir})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${name} ${dir}/${name} SYMBOLIC)
  list(TRANSFORM M_SOURCES PREPEND ${name}/)

  foreach(used ${M_USES})
    get_target_property(used_level act_${used} ACT_LEVEL)
    if(used_level GREATER_EQUAL M_LEVEL)
      message(FATAL_ERROR "module ${name} (level ${M_LEVEL}) must not use ${used} (level ${used_level})")
    endif()
  endforeach()

  set(variants act_${name})
  if(M_NODE)
    list(APPEND variants act_${name}_static)
  endif()
  foreach(target ${variants})
    string(REGEX MATCH "_static$" suffix ${target})
    add_library(${target} STATIC ${M_SOURCES})
    set_target_properties(${target} PROPERTIES ACT_LEVEL ${M_LEVEL})
    target_include_directories(${target} PUBLIC ${dir})
    list(TRANSFORM M_USES REPLACE "(.+)" "act_\\1${suffix}" OUTPUT_VARIABLE uses)
    target_link_libraries(${target} PUBLIC ${uses} ${M_LIBRARIES} PRIVATE act_flags)
    if(NOT suffix)
      target_link_libraries(${target} PUBLIC act_sanitize)
    endif()
  endforeach()
endfunction()
