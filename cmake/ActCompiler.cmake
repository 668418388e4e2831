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
            -fdata-sections
            -fstack-protector-strong)
target_link_options(act_flags INTERFACE -Wl,--gc-sections -Wl,--as-needed)
if(ACT_WERROR)
  target_compile_options(act_flags INTERFACE -Werror)
endif()

add_library(act_sanitize INTERFACE)
if(ACT_SANITIZE)
  target_compile_options(act_sanitize INTERFACE -fsanitize=${ACT_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  target_link_options(act_sanitize INTERFACE -fsanitize=${ACT_SANITIZE})
endif()
