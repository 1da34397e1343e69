// How the cores of a cluster meet, under the name of one of its parts.
#pragma once

#include "pto/common/cluster_sync.hpp"
