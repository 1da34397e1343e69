#include "text.hpp"

#include <fstream>
#include <sstream>

namespace insight_trace::engine {

std::string escaped(const std::string &text) {
    std::string out;
    for (char c : text) {
        if (c == '\\')
            out += "\\\\";
        else if (c == '\t')
            out += "\\t";
        else if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out;
}

static std::string unescaped(const std::string &text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size())
            out += text[i];
        else if (text[++i] == 't')
            out += '\t';
        else if (text[i] == 'n')
            out += '\n';
        else
            out += text[i];
    }
    return out;
}

std::vector<std::string> fields_of(const std::string &line) {
    std::vector<std::string> found;
    std::stringstream fields(line);
    for (std::string field; std::getline(fields, field, '\t');) found.push_back(unescaped(field));
    return found;
}

const char *fault_name(Fault fault) {
    static const char *const names[] = {"kernel", "input", "environment", "not_supported", "our_bug"};
    return names[static_cast<int>(fault)];
}

static Instr instr_of(const std::string &name) {
    Instr instr;
    if (!find_instr(name, instr)) fail(Fault::OurBug, {}, "there is no instruction %s", name.c_str());
    return instr;
}

static void read_vector_cost(const std::vector<std::string> &f, Parameters &into) {
    VectorCost cost;
    cost.given = true;
    cost.head = std::stoi(f.at(3));
    cost.slope = std::stoi(f.at(4));
    cost.gap = std::stoi(f.at(5));
    if (f.size() > 8) {
        cost.nested_slope = std::stoi(f[6]);
        cost.nested_row = std::stoi(f[7]);
        cost.nested_head = std::stoi(f[8]);
    }
    auto &row = into.vectors[static_cast<size_t>(instr_of(f.at(1)))];
    if (f.at(2) == "*")
        row.fill(cost);
    else
        row.at(std::stoul(f.at(2))) = cost;
}

static void read_move_cost(const std::vector<std::string> &f, Parameters &into) {
    MoveCost &cost = into.moves[static_cast<size_t>(instr_of(f.at(1)))];
    cost.given = true;
    cost.latency = std::stoll(f.at(2));
    cost.rate = std::stoll(f.at(3));
    cost.per_burst = std::stoll(f.at(4));
    cost.missed_burst = std::stoll(f.at(5));
    cost.interval = std::stoll(f.at(6));
    cost.floor = std::stoll(f.at(7));
    cost.burst_rate = std::stoll(f.at(8));
    cost.in_flight = std::stoll(f.at(9)) / 1000;
    const size_t first = 10, most = sizeof cost.curve / sizeof cost.curve[0];
    for (size_t i = first; i + 1 < f.size(); i += 2) {
        if (cost.points == static_cast<int>(most))
            fail(Fault::OurBug, {}, "the curve of %s has too many points", f.at(1).c_str());
        cost.curve[cost.points++] = {std::stoll(f[i]), std::stoll(f[i + 1])};
    }
}

bool read_parameter(const std::vector<std::string> &fields, Parameters &into) {
    const std::string &key = fields.at(0);
    if (key == "value")
        into.set(fields.at(1), std::stoll(fields.at(2)));
    else if (key == "vector")
        read_vector_cost(fields, into);
    else if (key == "move")
        read_move_cost(fields, into);
    else
        return false;
    return true;
}

void write_result_file(const std::string &path, const std::string &text) {
    if (path.empty()) { // a job that does not say where: whoever reads its errors sees it
        fputs(text.c_str(), stderr);
        return;
    }
    std::string beside = path + ".part";
    std::ofstream file(beside, std::ios::binary);
    file << text << "end\n";
    file.close();
    if (file) rename(beside.c_str(), path.c_str());
}

} // namespace insight_trace::engine
