#pragma once

#include "pto/comm/pto_comm_inst.hpp"
