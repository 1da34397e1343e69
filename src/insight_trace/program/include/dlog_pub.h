// Logging of the vendor's libraries: none.
#pragma once

enum { ASCENDCKERNEL = 0, DLOG_DEBUG = 0, DLOG_INFO = 1, DLOG_WARN = 2, DLOG_ERROR = 3 };
constexpr int DEBUG_LOG_MASK = 0x10000;
inline int CheckLogLevel(int, int) { return 0; }
#define dlog_error(...) ((void)0)
#define dlog_warn(...)  ((void)0)
#define dlog_info(...)  ((void)0)
#define dlog_debug(...) ((void)0)
#define dlog_event(...) ((void)0)
