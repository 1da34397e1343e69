// The tile API in one include, under the name of one of its parts.
#pragma once

#include "pto/pto-inst.hpp"
