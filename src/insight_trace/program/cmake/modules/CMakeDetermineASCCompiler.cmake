# The compiler of the ASC language: bisheng, as insight-trace has it.
find_program(CMAKE_ASC_COMPILER NAMES bisheng HINTS "$ENV{INSIGHT_TRACE_TOOLKIT}/bin" REQUIRED)
set(CMAKE_ASC_COMPILER_ENV_VAR "ASC")
set(CMAKE_ASC_SOURCE_FILE_EXTENSIONS asc;cce)
set(CMAKE_ASC_OUTPUT_EXTENSION .o)
configure_file("${CMAKE_CURRENT_LIST_DIR}/CMakeASCCompiler.cmake.in"
               "${CMAKE_PLATFORM_INFO_DIR}/CMakeASCCompiler.cmake" @ONLY)
