// Part of acl.h.
#include "acl/acl.h"
