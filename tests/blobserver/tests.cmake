# The test double of the Blob service, and with --files of the File service: the program `blobserver`.
pkg_check_modules(EXPAT REQUIRED IMPORTED_TARGET expat)
find_package(Threads REQUIRED)
add_executable(
  blobserver
  blobserver/auth.c
  blobserver/batch.c
  blobserver/blobs.c
  blobserver/blocklist.c
  blobserver/copy.c
  blobserver/fault.c
  blobserver/files.c
  blobserver/files_copy.c
  blobserver/files_list.c
  blobserver/files_service.c
  blobserver/http.c
  blobserver/list.c
  blobserver/login.c
  blobserver/main.c
  blobserver/server.c
  blobserver/service.c
  blobserver/stream.c
  blobserver/text.c)
target_link_libraries(blobserver PRIVATE ssl crypto PkgConfig::EXPAT Threads::Threads act_flags act_sanitize)

# What the machine can do at most, for scripts/bench.
add_executable(bounds blobserver/bounds.c)
target_link_libraries(bounds PRIVATE act_base ssl crypto Threads::Threads act_flags act_sanitize)

# A program that leaks, which LeakSanitizer must see.
add_executable(leaks leaks.c)
target_link_libraries(leaks PRIVATE act_flags act_sanitize)

# An older kernel, for the programs that are installed.
add_executable(oldkernel oldkernel.c)
target_link_libraries(oldkernel PRIVATE act_flags)

# A machine whose clock is wrong, for programs that load it.
add_library(oldclock MODULE oldclock.c)
target_link_libraries(oldclock PRIVATE act_flags)
set_target_properties(oldclock PROPERTIES PREFIX "")
