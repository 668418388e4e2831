/* arm.c - stands in until the module is written. */
#include "arm/arm.h"
