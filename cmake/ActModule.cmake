# A folder below act/ is a module is a library, and act_module() builds its walls:
#
#  * A module has a level and USES only modules of a lower level.
#  * "#include "<module>/<header>.h"" finds the public HEADERS of the modules that are named under USES, and nothing
#    else: each module has an include folder of its own in the build tree, which holds links to them.
#  * What a module uses is its own business, except for EXPORTS, which its public headers include.
#  * Internal headers are seen by the module itself, and by what is given act_inside() of it.
#
# tests/walls.py tries all this. The agent is linked statically, so that it runs on any node: modules it needs (marked
# NODE) are built a second time as act_<name>_static, without sanitizers.
find_package(PkgConfig REQUIRED)

# act_links(<folder> <origin> <file>...): a folder of links to these files of another, and to none of those before.
function(act_links folder origin)
  file(REMOVE_RECURSE ${folder})
  foreach(file ${ARGN})
    get_filename_component(parent ${folder}/${file} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    file(CREATE_LINK ${origin}/${file} ${folder}/${file} SYMBOLIC)
  endforeach()
endfunction()

# act_libraries(<name>...): finds libraries that modules name under LIBRARIES.
function(act_libraries)
  foreach(name ${ARGN})
    find_library(ACT_LIBRARY_${name} ${name} REQUIRED)
    mark_as_advanced(ACT_LIBRARY_${name})
  endforeach()
endfunction()

# act_module(<name> LEVEL <n> [NODE] HEADERS <file>... SOURCES <file>... [USES <module>...] [LIBRARIES <library>...]
#            [EXPORTS <module or library>...])
function(act_module name)
  cmake_parse_arguments(M "NODE" "LEVEL" "HEADERS;SOURCES;USES;LIBRARIES;EXPORTS" ${ARGN})
  set_property(GLOBAL APPEND PROPERTY ACT_MODULES ${name})
  foreach(used ${M_USES})
    get_target_property(used_level act_${used} ACT_LEVEL)
    if(used_level GREATER_EQUAL M_LEVEL)
      message(FATAL_ERROR "module ${name} (level ${M_LEVEL}) must not use ${used} (level ${used_level})")
    endif()
  endforeach()

  set(include ${CMAKE_BINARY_DIR}/include/${name})
  set(inside ${CMAKE_BINARY_DIR}/inside/${name})
  act_links(${include}/${name} ${CMAKE_CURRENT_SOURCE_DIR}/${name} ${M_HEADERS})
  act_links(${inside} ${CMAKE_CURRENT_SOURCE_DIR} ${name})
  list(TRANSFORM M_SOURCES PREPEND ${name}/)

  set(variants act_${name})
  if(M_NODE)
    list(APPEND variants act_${name}_static)
  endif()
  foreach(target ${variants})
    string(REGEX MATCH "_static$" suffix ${target})
    add_library(${target} STATIC ${M_SOURCES})
    set_target_properties(${target} PROPERTIES ACT_LEVEL "${M_LEVEL}" ACT_HEADERS "${M_HEADERS}" ACT_USES "${M_USES}"
                                               ACT_EXPORTS "${M_EXPORTS}")
    target_include_directories(${target} PUBLIC ${include} PRIVATE ${inside})
    foreach(needed ${M_USES} ${M_LIBRARIES})
      set(scope PRIVATE)
      if(needed IN_LIST M_EXPORTS)
        set(scope PUBLIC)
      endif()
      if(needed IN_LIST M_USES)
        set(needed act_${needed}${suffix})
      elseif(ACT_LIBRARY_${needed})
        set(needed ${ACT_LIBRARY_${needed}})
      endif()
      target_link_libraries(${target} ${scope} ${needed})
    endforeach()
    target_link_libraries(${target} PRIVATE act_flags)
    if(suffix) # one Secret of Kubernetes, of 1 MiB, holds the agent: it is built for size
      target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-g1> $<$<CONFIG:Release>:-Os>)
    else()
      target_link_libraries(${target} PUBLIC act_sanitize)
    endif()
  endforeach()
endfunction()

# act_inside(<target> <module>...): lets a target see all that these modules themselves see.
function(act_inside target)
  foreach(module ${ARGN})
    target_include_directories(${target} PRIVATE $<TARGET_PROPERTY:act_${module},INCLUDE_DIRECTORIES>)
  endforeach()
endfunction()
