// Part of rt.h.
#include "runtime/rt.h"
