# The script and the sheet of the pages, each one file: act_pages(<target> <source>) puts them together from
# act/cli/page/assets and lets <source>, a file of <target>, include them as PAGE_SCRIPT and PAGE_SHEET.
function(act_pages target source)
  set(assets ${CMAKE_SOURCE_DIR}/act/cli/page/assets)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/page)
  set(names app live charts shapes runs run compare clusters report start)
  list(TRANSFORM names REPLACE "(.+)" "${assets}/\\1.js" OUTPUT_VARIABLE scripts)
  set(names uplot/uPlot.min base controls tables run pictures)
  list(TRANSFORM names REPLACE "(.+)" "${assets}/\\1.css" OUTPUT_VARIABLE sheets)

  # uPlot is what its authors published.
  file(STRINGS ${assets}/uplot/SHA256SUMS sums)
  foreach(sum ${sums})
    string(REGEX MATCH "^([0-9a-f]+)  (.+)$" line "${sum}")
    set(expected ${CMAKE_MATCH_1})
    set(name ${CMAKE_MATCH_2})
    file(SHA256 ${assets}/uplot/${name} found)
    if(NOT found STREQUAL expected)
      message(FATAL_ERROR "${assets}/uplot/${name} is not the file whose hash SHA256SUMS has")
    endif()
  endforeach()

  # It runs when a page makes its first picture: a list of runs has none, and does not wait for it.
  file(MAKE_DIRECTORY ${out})
  file(CONFIGURE OUTPUT ${out}/begin.js @ONLY CONTENT
       "Object.defineProperty(globalThis, 'uPlot', {configurable: true, get: () => {\n")
  file(CONFIGURE OUTPUT ${out}/end.js @ONLY CONTENT
       "\nObject.defineProperty(globalThis, 'uPlot', {value: uPlot});\nreturn uPlot;\n}});\n")
  list(PREPEND scripts ${assets}/format.js ${out}/begin.js ${assets}/uplot/uPlot.iife.min.js ${out}/end.js)

  add_custom_command(OUTPUT ${out}/page.js COMMAND ${CMAKE_COMMAND} -E cat ${scripts} > ${out}/page.js
                     DEPENDS ${scripts} VERBATIM)
  add_custom_command(OUTPUT ${out}/page.css COMMAND ${CMAKE_COMMAND} -E cat ${sheets} > ${out}/page.css
                     DEPENDS ${sheets} VERBATIM)
  target_sources(${target} PRIVATE ${out}/page.js ${out}/page.css)
  set_source_files_properties(${source} PROPERTIES
    COMPILE_DEFINITIONS "PAGE_SCRIPT=\"${out}/page.js\";PAGE_SHEET=\"${out}/page.css\""
    OBJECT_DEPENDS "${out}/page.js;${out}/page.css")
  install(FILES ${assets}/uplot/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}/licenses RENAME uPlot.txt)
endfunction()
