act_test(store_test conformance/store_test.c engine http proc store)
add_test(NAME store_far COMMAND store_test)
set_tests_properties(store_far PROPERTIES ENVIRONMENT TEST_FAR=1)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME store_azurite
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/conformance/run_store.py $<TARGET_FILE:store_test>)
set_tests_properties(store_azurite PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1500 COST 30)
add_test(NAME store_double
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/conformance/run_store.py $<TARGET_FILE:store_test>
                 $<TARGET_FILE:blobserver>)
set_tests_properties(store_double PROPERTIES TIMEOUT 300 COST 10)
add_test(NAME store_files
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/conformance/run_store.py $<TARGET_FILE:store_test>
                 $<TARGET_FILE:blobserver> --files)
set_tests_properties(store_files PROPERTIES TIMEOUT 300 COST 10)
act_test(logs_test conformance/logs_test.c engine http site store)
add_test(NAME logs_double
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/conformance/run_store.py $<TARGET_FILE:logs_test>
                 $<TARGET_FILE:blobserver>)
act_test(platform_test conformance/platform_test.c codec proc INSIDE flow platform)
add_dependencies(platform_test act-node)
set_tests_properties(platform_test PROPERTIES TIMEOUT 600 COST 20)
add_test(NAME platform_slurm
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/conformance/run_platform.py
                 $<TARGET_FILE:platform_test> slurm)
set_tests_properties(platform_slurm PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 60)
add_test(NAME platform_ssh
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/conformance/run_platform.py
                 $<TARGET_FILE:platform_test> ssh)
set_tests_properties(platform_ssh PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 30)
add_test(NAME platform_azureml
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/conformance/run_platform.py
                 $<TARGET_FILE:platform_test> azureml)
set_tests_properties(platform_azureml PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 60)
add_test(NAME platform_kubernetes
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/conformance/run_platform.py
                 $<TARGET_FILE:platform_test> kubernetes)
set_tests_properties(platform_kubernetes PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 COST 60)
