act_test(base_test unit/base_test.c base)
