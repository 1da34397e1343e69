// The runtime's addresses for flags between cores.
#pragma once
#include "runtime/rt.h"
