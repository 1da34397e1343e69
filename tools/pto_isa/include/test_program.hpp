// What every test program includes first, precompiled.
#pragma once

#include "insight_trace/prelude.hpp"

#include "acl/acl.h"
#include <gtest/gtest.h>
#if __has_include("test_common.h")
#include "test_common.h"
#endif
