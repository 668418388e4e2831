/* site.c - stands in until the module is written. */
#include "site/site.h"
