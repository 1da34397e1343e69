// What is force-included before a kernel, in one header so that it can be precompiled.
#pragma once

#include "insight_trace/device.hpp"
#include "pto/pto-inst.hpp"
