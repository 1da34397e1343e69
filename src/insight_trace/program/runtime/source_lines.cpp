// Which line of a source an address of a loaded file or of a kernel's image comes from, by its debug lines.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "runtime.hpp"

namespace insight_trace_program {

namespace {
// The innermost line first, then those of the functions that it was put into; empty where there are none.
std::vector<std::string> lines_at(const std::string &file, unsigned long long offset) {
    std::vector<std::string> found;
    char command[2048], said[1024];
    if (snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%llx 2>/dev/null", file.c_str(), offset) >=
        static_cast<int>(sizeof command))
        return found;
    if (FILE *pipe = popen(command, "r")) {
        while (fgets(said, sizeof said, pipe)) {
            said[strcspn(said, " \n")] = 0;
            if (said[0] && said[0] != '?') found.push_back(said);
        }
        pclose(pipe);
    }
    return found;
}
bool in_library(const std::string &line) {
    for (const char *part : {"/ascendc_headers/", "/include/pto/", "/simulate/embedded/include/"})
        if (line.find(part) != std::string::npos) return true;
    return false;
}
} // namespace

std::string caller_of(void *address) {
    Dl_info info{};
    if (!dladdr(address, &info) || !info.dli_fname) return "";
    const auto lines =
        lines_at(info.dli_fname, static_cast<unsigned long long>(static_cast<char *>(address) -
                                                                 static_cast<char *>(info.dli_fbase) - 1));
    return lines.empty() ? std::string(" in ") + info.dli_fname : " at " + lines.front();
}

std::string source_line(const std::string &image, const std::string &offset, const std::string &unknown) {
    const auto lines = lines_at(image, strtoull(offset.c_str(), nullptr, 0));
    for (const std::string &line : lines)
        if (!in_library(line)) return line;
    return lines.empty() ? unknown : lines.back();
}

std::string source_line(const std::string &place) {
    const size_t colon = place.rfind(':');
    if (colon == std::string::npos || colon < 3 || place.compare(colon - 3, 3, ".so") != 0) return place;
    return source_line(place.substr(0, colon), place.substr(colon + 1), place);
}

} // namespace insight_trace_program
