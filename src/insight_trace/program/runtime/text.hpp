// Lines that runtime, engine and session folder exchange: fields apart by tabs, rows of launches as JSON.
#pragma once
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace insight_trace_program {

inline std::string unescaped(const std::string &text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) {
            const char next = text[++i];
            out += next == 't' ? '\t' : next == 'n' ? '\n' : next;
        } else {
            out += text[i];
        }
    }
    return out;
}
inline std::string escaped(const std::string &text) {
    std::string out;
    for (char c : text)
        if (c == '\\' || c == '\t' || c == '\n')
            out += {'\\', c == '\t' ? 't' : c == '\n' ? 'n' : c};
        else
            out += c;
    return out;
}
inline std::vector<std::string> fields_of(const std::string &line) {
    std::vector<std::string> fields;
    std::string part;
    std::istringstream in(line);
    while (std::getline(in, part, '\t')) fields.push_back(unescaped(part));
    return fields;
}
inline std::string json(const std::string &text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) < 0x20) {
            char code[8];
            snprintf(code, sizeof code, "\\u%04x", c);
            out += code;
        } else {
            out += c;
        }
    }
    return out + "\"";
}
inline std::string hex_of(const void *bytes, uint64_t count) {
    static const char digits[] = "0123456789abcdef";
    std::string out;
    out.reserve(2 * count);
    for (uint64_t i = 0; i < count; ++i) {
        const uint8_t byte = static_cast<const uint8_t *>(bytes)[i];
        out += digits[byte >> 4];
        out += digits[byte & 15];
    }
    return out;
}

} // namespace insight_trace_program
