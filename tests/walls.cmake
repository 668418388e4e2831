# Every header compiles alone, so that the order of includes never matters: a public one with nothing but its module's
# EXPORTS, an internal one with what the module itself sees.
get_property(modules GLOBAL PROPERTY ACT_MODULES)
set(facts)
foreach(module ${modules})
  file(GLOB_RECURSE headers RELATIVE ${CMAKE_SOURCE_DIR}/act/${module} CONFIGURE_DEPENDS
       ${CMAKE_SOURCE_DIR}/act/${module}/*.h)
  get_target_property(public act_${module} ACT_HEADERS)
  set(public_sources)
  set(internal_sources)
  foreach(header ${headers})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${module}/${header}.c)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${module}/${header}\"\n#include \"${module}/${header}\"\n")
    if(header IN_LIST public)
      list(APPEND public_sources ${source})
    else()
      list(APPEND internal_sources ${source})
    endif()
  endforeach()
  add_library(headers_of_${module} OBJECT ${public_sources})
  target_link_libraries(headers_of_${module} PRIVATE act_${module} act_flags)
  if(internal_sources)
    add_library(headers_inside_${module} OBJECT ${internal_sources})
    act_inside(headers_inside_${module} ${module})
    target_link_libraries(headers_inside_${module} PRIVATE act_${module} act_flags)
  endif()

  get_target_property(level act_${module} ACT_LEVEL)
  get_target_property(uses act_${module} ACT_USES)
  get_target_property(exports act_${module} ACT_EXPORTS)
  string(APPEND facts "${module}|${level}|${public}|${uses}|${exports}\n")
endforeach()

# What a module's own flags find, and what not.
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/modules.txt CONTENT "${facts}")
add_test(NAME include_test
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/walls.py ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})

# Names stand once, and those of platforms only in platform/.
add_test(NAME names_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/names.py ${CMAKE_SOURCE_DIR})
