act_test(store_test conformance/store_test.c store)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME store_azurite
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/conformance/run_store.py $<TARGET_FILE:store_test>)
set_tests_properties(store_azurite PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
