# Compiler and linker flags shared by every target: act_flags for all, act_sanitize for what may be
# sanitized (a static program, as the agent is, can not).
add_library(act_flags INTERFACE)
target_compile_definitions(act_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64
                                               ACT_VERSION="${PROJECT_VERSION}")
target_compile_options(
  act_flags
  INTERFACE -Wall
            -Wextra
            -Wshadow
            -Wstrict-prototypes
            -Wmissing-prototypes
            -Wmissing-declarations
            -Wold-style-definition
            -Wpointer-arith
            -Wwrite-strings
            -Wcast-qual
            -Wformat=2
            -Wundef
            -Wvla
            -fno-common
            -ffunction-sections
            -fdata-sections)
target_link_options(act_flags INTERFACE -Wl,--gc-sections -Wl,--as-needed)
if(ACT_WERROR)
  target_compile_options(act_flags INTERFACE -Werror)
endif()

# What makes a mistake in memory end in a crash and not in somebody else's hands; tests/e2e/test_programs.py looks for it
# in the finished programs. _FORTIFY_SOURCE takes an optimiser, and hides from the sanitizers what they look for.
target_compile_options(
  act_flags
  INTERFACE -fPIE
            -fstack-protector-strong
            -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(act_flags INTERFACE -fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  target_compile_options(act_flags INTERFACE -mbranch-protection=standard)
endif()
if(NOT ACT_SANITIZE)
  target_compile_options(act_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3>)
endif()
target_link_options(act_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

add_library(act_sanitize INTERFACE)
if(ACT_SANITIZE)
  # What UBSan would say of each place is data, which GCC has ASan guard and register at each start: 7 MB of it, and half
  # of what a start takes. A trap needs none, and ASan's trace of it (asan.c) names the line.
  set(act_sanitizers -fsanitize=${ACT_SANITIZE})
  if(ACT_SANITIZE MATCHES undefined AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND act_sanitizers -fsanitize-undefined-trap-on-error)
  endif()
  target_compile_options(act_sanitize INTERFACE ${act_sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(act_sanitize INTERFACE ${act_sanitizers})
  if(ACT_SANITIZE MATCHES address)
    # Both for a quicker start: the program need not write addresses into its tables, nor look up what ASan replaces.
    target_link_options(act_sanitize INTERFACE -no-pie $<$<C_COMPILER_ID:GNU>:-static-libasan>)
    add_library(act_asan OBJECT ${CMAKE_CURRENT_LIST_DIR}/asan.c)
    target_link_libraries(act_sanitize INTERFACE $<TARGET_OBJECTS:act_asan>)
  endif()
endif()
