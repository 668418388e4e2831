# Writes OUT, a header with the commit that is built, when it is another: cmake -D OUT=FILE -P ActCommit.cmake. It asks
# git at each build, because a commit changes no file that the build looks at.
execute_process(COMMAND git --no-optional-locks describe --always --dirty --abbrev=12 --exclude=*
                WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
endif()
set(text "#define ACT_COMMIT \"${commit}\"\n")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT "${before}" STREQUAL "${text}")
  file(WRITE ${OUT} "${text}")
endif()
