// The pipes of a core and what orders them, once for all who follow them.
//
// A pipe takes up what it was given in order. A set raises a flag when its pipe comes to it, a wait takes the
// oldest that was raised or keeps its pipe, a unit flag keeps the cube unit and FIXPIPE off blocks of the
// accumulator that the other one still has. What a raised flag carries is its follower's: a row while a
// kernel runs (clock.hpp), a time (timeline.hpp), what is known to have ended (check/order.hpp), nothing but
// its being there (late_work.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "fifo.hpp"
#include "parameters.hpp"

namespace insight_trace::engine {

constexpr int kPipes = static_cast<int>(PipeId::COUNT);
constexpr int kEvents = 16, kBuffers = 32;
constexpr int kFlagIds = kEvents + kBuffers; // what hands a buffer over is a flag behind the kernel's own
constexpr int kCoreFlags = 32;               // between cores
constexpr uint8_t kScalarPipe = static_cast<uint8_t>(PipeId::S);

// Blocks of the accumulator that an instruction of the cube unit or FIXPIPE uses under unit flags.
struct UnitUse {
    static constexpr uint64_t kBlock = 512;
    uint16_t first = 0, count = 0; // no blocks: no unit flag
    bool flips = false;            // they are the other side's when it has ended

    static UnitUse of(uint32_t flag, uint64_t address, uint64_t bytes) {
        constexpr uint32_t kFlips = 3;
        if (!flag || !bytes) return {};
        const uint64_t first = address / kBlock, end = (address + bytes - 1) / kBlock + 1;
        return {static_cast<uint16_t>(first), static_cast<uint16_t>(end - first), flag == kFlips};
    }
    static UnitUse of(uint32_t packed) {
        return {static_cast<uint16_t>(packed & 0xfff), static_cast<uint16_t>(packed >> 12 & 0xfff),
                (packed >> 24 & 1) != 0};
    }
    uint32_t packed() const { return first | uint32_t(count) << 12 | uint32_t(flips) << 24; }
    explicit operator bool() const { return count != 0; }
    uint32_t end() const { return uint32_t(first) + count; }
    bool meets(const UnitUse &other) const { return first < other.end() && other.first < end(); }
};

// A buffer that pipes hand to each other by its number (get_buf, rls_buf). A pipe that takes it up waits for
// the release before: a flag from the pipe that had it, raised at the release where it is known who comes
// next, else when the next one asks.
struct Buffer {
    static constexpr int8_t kNobody = -1;
    int8_t owner = kNobody;                                    // has it, or had it last
    int8_t told = kNobody;                                     // for whom its release raised a flag
    uint32_t rows = 0;                                         // of the recording when the owner took it up
    std::array<int8_t, kPipes> next{};                         // who came after each pipe, + 1
    std::array<std::array<uint16_t, kPipes>, kPipes> raised{}; // not waited for yet, by from and to
};

enum class Sync : uint8_t { Work, Set, Wait, Barrier, CoreWait };

// What an instruction is to the network.
struct PipeStep {
    Sync kind = Sync::Work;
    uint8_t pipe = 0;         // that takes it up
    uint8_t from = 0, to = 0; // of a flag
    uint8_t event = 0;        // of a flag, also between cores
    UnitUse unit;
    uint64_t after = 0; // of the other side of the accumulator, so many must have handed blocks over
};

// How many instructions the queue of each pipe holds.
using QueueDepths = std::array<size_t, kPipes>;
inline QueueDepths queue_depths(const Parameters &parameters, bool cube) {
    QueueDepths depths{};
    for (int i = 0; i < kPipes; ++i)
        depths[static_cast<size_t>(i)] = parameters.queue_depth(static_cast<PipeId>(i), cube);
    return depths;
}

// The pipes of one core. A follower says what its items are and what happens when a pipe comes to one:
//   PipeStep step_of(const Item &)
//   bool ready(const Item &)             false: its pipe takes up nothing now
//   bool work(const Item &)              false: not yet, for reasons of its own
//   bool set(const Item &, Token &)      false: it raises the flag itself, later
//   void waited(const Item &, const Token &)
//   bool barrier(const Item &)           false: not yet
// and, in kGoesOn, whether pipes go on as soon as they can.
template <class Follower> class PipeNetwork {
  public:
    using Item = typename Follower::Item;
    using Token = typename Follower::Token;

    const Fifo<Item> &pending(int pipe) const { return pending_[static_cast<size_t>(pipe)]; }
    Fifo<Item> &pending(int pipe) { return pending_[static_cast<size_t>(pipe)]; }

    // In program order, before it is given to its pipe: which of the other side's instructions it waits for.
    uint64_t reserve(int pipe, const UnitUse &unit) {
        const size_t side = side_of(pipe);
        uint64_t after = 0;
        for (const Handed &one : reserved_)
            if (one.side != side && one.unit.meets(unit)) after = std::max(after, one.number);
        if (unit.flips) hand_over(reserved_, {unit, side, ++flips_[side], {}});
        return after;
    }

    // True: its pipe took it up at once.
    bool give(Follower &follower, const Item &item, int pipe) {
        Fifo<Item> &queue = pending(pipe);
        if (queue.empty() && take_up(follower, item)) return true;
        queue.push(item);
        return false;
    }
    // The same of an item that was made as the last one of its pipe's queue.
    bool give_last(Follower &follower, int pipe) {
        Fifo<Item> &queue = pending(pipe);
        if (queue.size() > 1) return false;
        const Item &item = queue.front();
        queue.drop();
        if (take_up(follower, item)) return true;
        queue.put_back();
        return false;
    }
    void go_on(Follower &follower, int pipe) {
        Fifo<Item> &queue = pending(pipe);
        while (!queue.empty()) {
            // taken off first: a set among them may come back here through another pipe, which adds none
            const Item &next = queue.front();
            queue.drop();
            if (!take_up(follower, next)) {
                queue.put_back();
                return;
            }
        }
    }
    void go_on(Follower &follower) {
        for (int i = 0; i < kPipes; ++i) go_on(follower, i);
    }
    // False: it has to wait.
    bool take_up(Follower &follower, const Item &item) {
        const PipeStep step = follower.step_of(item);
        if (!follower.ready(item)) return false;
        switch (step.kind) {
        case Sync::Work:
            return (!step.unit || has_blocks(step)) && follower.work(item);
        case Sync::Set: {
            Token token{};
            if (follower.set(item, token)) raise(follower, step.from, step.to, step.event, token);
            return true;
        }
        case Sync::Wait:
        case Sync::CoreWait: {
            Fifo<Token> &raised =
                step.kind == Sync::Wait ? flag(step.from, step.to, step.event) : between_cores_[step.event];
            if (raised.empty()) return false;
            follower.waited(item, raised.pop());
            return true;
        }
        case Sync::Barrier:
            return follower.barrier(item);
        }
        return true;
    }

    [[gnu::always_inline]] void raise(Follower &follower, int from, int to, int event, const Token &token) {
        flag(from, to, event).push(token);
        if (Follower::kGoesOn && to != kScalarPipe) go_on(follower, to);
    }
    // A wait of the scalar unit.
    bool take(int from, int to, int event, Token &token) {
        Fifo<Token> &raised = flag(from, to, event);
        if (raised.empty()) return false;
        token = raised.pop();
        return true;
    }
    size_t raised(int from, int to, int event) { return flag(from, to, event).size(); }
    // Flags that other cores raised for this one.
    Fifo<Token> &from_cores(int event) { return between_cores_[static_cast<size_t>(event)]; }

    // A pipe has come to an instruction that hands its blocks over.
    void flip(Follower &follower, int pipe, const UnitUse &unit, const Token &token) {
        const size_t side = side_of(pipe);
        hand_over(handed_, {unit, side, ++handed_count_[side], token});
        if (Follower::kGoesOn) go_on(follower, static_cast<int>(side ? PipeId::M : PipeId::FIX));
    }
    // What the other side left with the blocks of this one.
    template <class Visit> void each_handed(const PipeStep &step, Visit &&visit) const {
        const size_t side = side_of(step.pipe);
        for (const Handed &one : handed_)
            if (one.side != side && one.unit.meets(step.unit)) visit(one.unit, one.token);
    }

    // Flags that nothing waited for: visit(from, to, event, tokens).
    template <class Visit> void each_left(Visit &&visit) const {
        for (size_t i = 0; i < place_.size(); ++i)
            if (place_[i] && !flags_[place_[i] - 1u].empty())
                visit(static_cast<int>(i / kFlagIds / kPipes), static_cast<int>(i / kFlagIds % kPipes),
                      static_cast<int>(i % kFlagIds), flags_[place_[i] - 1u]);
    }

  private:
    struct Handed { // blocks of the accumulator, by the one that had them last
        UnitUse unit;
        size_t side; // 0 the cube unit, 1 FIXPIPE
        uint64_t number;
        Token token;
    };
    static size_t side_of(int pipe) { return pipe == static_cast<int>(PipeId::M) ? 0 : 1; }
    static void hand_over(std::vector<Handed> &list, const Handed &now) {
        auto covered = [&](const Handed &one) {
            return one.unit.first >= now.unit.first && one.unit.end() <= now.unit.end();
        };
        list.erase(std::remove_if(list.begin(), list.end(), covered), list.end());
        list.push_back(now);
    }
    bool has_blocks(const PipeStep &step) const {
        return handed_count_[1 - side_of(step.pipe)] >= step.after;
    }
    Fifo<Token> &flag(int from, int to, int event) {
        uint16_t &place = place_[static_cast<size_t>((from * kPipes + to) * kFlagIds + event)];
        if (!place) {
            flags_.emplace_back();
            place = static_cast<uint16_t>(flags_.size());
        }
        return flags_[place - 1u];
    }

    std::array<Fifo<Item>, kPipes> pending_;
    // of a thousand flags a kernel uses a few: place in `flags_` + 1, by from, to and event
    std::array<uint16_t, kPipes * kPipes * kFlagIds> place_{};
    std::vector<Fifo<Token>> flags_;
    std::array<Fifo<Token>, kCoreFlags> between_cores_;
    std::vector<Handed> reserved_, handed_; // in program order; as pipes came to them
    std::array<uint64_t, 2> flips_{}, handed_count_{};
};

// Who raises a flag between cores, and who gets it. `mode` 0: all cores of a kind, 1: the vector cores of a
// block, 2: cube <-> vector of a block; kOneToOne: one cube core to one vector core, or back (a5).
constexpr int kOneToOne = 4;

template <class Token> class CoreFlags {
  public:
    // `Cores` has the identity of each core. `join(tokens)` makes one of those of all that had to raise it;
    // `deliver(core, flag, token)` is called for each core that gets it.
    template <class Cores, class Join, class Deliver>
    void set(const Cores &cores, size_t from, int mode, int flag, const Token &token, Join &&join,
             Deliver &&deliver) {
        const auto &me = cores[from];
        std::vector<size_t> senders, receivers;
        for (size_t i = 0; i < cores.size(); ++i) {
            const auto &other = cores[i];
            const bool same_block = other.block == me.block, same_kind = other.cube == me.cube;
            if (mode == kOneToOne) {
                if (!same_block || same_kind) continue;
                if (me.cube && other.sub_block == flag / 16) deliver(i, flag % 16, token);
                if (!me.cube) deliver(i, flag % 16 + 16 * me.sub_block, token);
            } else if (mode == 2 && me.cube) {
                if (!other.cube && same_block) deliver(i, flag, token);
            } else {
                const bool sends = same_kind && (mode == 0 || same_block);
                if (sends) senders.push_back(i);
                if (mode == 2 ? other.cube && same_block : sends) receivers.push_back(i);
            }
        }
        if (senders.empty()) return;
        // the receivers get it once every sender of the group has raised it
        const int group = mode == 0 ? (me.cube ? -1 : -2) : me.block;
        arrived_[{group, flag, from}].push(token);
        for (size_t sender : senders)
            if (arrived_[{group, flag, sender}].empty()) return;
        std::vector<Token> tokens;
        for (size_t sender : senders) tokens.push_back(arrived_[{group, flag, sender}].pop());
        const Token all = join(tokens);
        for (size_t receiver : receivers) deliver(receiver, flag, all);
    }
    template <class Visit> void each_left(Visit &&visit) const {
        for (const auto &[key, tokens] : arrived_)
            if (!tokens.empty()) visit(tokens);
    }

  private:
    std::map<std::tuple<int, int, size_t>, Fifo<Token>> arrived_; // by group, flag and core
};

} // namespace insight_trace::engine
