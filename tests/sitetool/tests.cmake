# A site in the hands of a test: the program `sitetool`.
add_executable(sitetool sitetool/main.c)
act_uses(sitetool codec site)
target_link_libraries(sitetool PRIVATE act_flags act_sanitize)
add_dependencies(sitetool act act-node)
