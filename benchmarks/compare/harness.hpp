// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <vector>

#include "../contender.hpp"  // seconds_of
#include "contender.hpp"
#include "oracle.hpp"

namespace compare {

/// How much is done for a cell, and around each sample. The defaults are for ranks with a core each.
struct effort {
    double seconds = 2;
    int least = 5;           // samples
    int most = 1000;         // samples
    int settling = 16;       // barriers until a rank that slept, waiting for a slower one, is in step again
    int probes = 8;          // barriers timed
    std::size_t slots = 64;  // calls in a sample, at most
};

/// What one contender did in one cell: a value for each sample, that of the slowest rank.
struct samples {
    std::string name;
    std::vector<double> seconds;  // of a call
    std::vector<double> probes;   // of a barrier just before
    double wrong = 0;             // elements, in the first call and in the last sample, over all ranks
};

/// Buffers of one contender. Short vectors are laid side by side in slots, each on cache lines of its own, so that a
/// sample is many calls back to back and each still finds its buffers rewritten.
class slots {
public:
    slots(const contender& whose, const cell& asked, std::size_t most) {
        const std::size_t bytes = std::max<std::size_t>(asked.count * sizeof(element), 1);
        constexpr std::size_t line = 64;
        const std::size_t stride = (bytes + asked.offset * sizeof(element) + line - 1) / line * line;
        count_ = std::clamp<std::size_t>(most_bytes / stride, 1, most);
        stride_ = stride / sizeof(element);
        offset_ = asked.offset;
        in_ = allocate(whose, stride_ * count_);
        out_ = asked.in_place ? in_ : allocate(whose, stride_ * count_);
    }
    std::size_t count() const noexcept { return count_; }
    element* in(std::size_t slot) const noexcept { return in_.get() + slot * stride_ + offset_; }
    element* out(std::size_t slot) const noexcept { return out_.get() + slot * stride_ + offset_; }

private:
    static constexpr std::size_t most_bytes = 32 << 10;  // they stay in a first-level cache

    static std::shared_ptr<element> allocate(const contender& whose, std::size_t count) {
        if (whose.memory) return whose.memory(count);
        constexpr std::size_t page = 4096;
        const std::size_t bytes = (count * sizeof(element) + page - 1) / page * page;
        auto* const data = static_cast<element*>(std::aligned_alloc(page, bytes));
        if (data == nullptr) throw std::runtime_error("no memory for " + std::to_string(bytes) + " bytes");
        return {data, [](element* own) { std::free(own); }};
    }

    std::shared_ptr<element> in_;
    std::shared_ptr<element> out_;
    std::size_t count_;
    std::size_t stride_;
    std::size_t offset_;
};

/// One cell: its contenders in turns, call by call, in an order that rotates from sample to sample.
class turns {
public:
    turns(const meeting& ranks, const cell& asked, const std::vector<contender>& contenders, const effort& allowed)
        : ranks_{ranks}, allowed_{allowed}, truth_{asked, ranks.rank, ranks.size} {
        for (const contender& each : contenders) {
            collective_call call = each.prepare(asked);
            if (!call) continue;
            std::optional<slots> room;
            for (const part& other : parts_)
                if (each.memory_kind == other.whose.memory_kind) room = other.room;
            if (!room) room.emplace(each, asked, allowed.slots);
            parts_.push_back({each, *room, std::move(call), {each.name, {}, {}, 0}});
        }
    }

    /// All ranks call it; all get the same.
    std::vector<samples> run() {
        for (part& each : parts_) {
            take(each);
            check(each);
        }
        double longest = seconds_of([&] { take_all(0); });
        ranks_.maximum(&longest, 1);
        const double fitting = allowed_.seconds / longest;
        const int wanted = static_cast<int>(std::clamp<double>(fitting, allowed_.least, allowed_.most));
        for (part& each : parts_) each.found.seconds.clear(), each.found.probes.clear();
        for (int i = 0; i < wanted; ++i) take_all(static_cast<std::size_t>(i));
        std::vector<samples> all;
        for (part& each : parts_) {  // one sample more, for each leaves its results where the next one writes
            take(each);
            check(each);
            ranks_.maximum(each.found.seconds.data(), each.found.seconds.size());
            ranks_.maximum(each.found.probes.data(), each.found.probes.size());
            ranks_.maximum(&each.found.wrong, 1);
            all.push_back(each.found);
        }
        return all;
    }

    std::size_t calls_a_sample() const noexcept { return parts_.empty() ? 0 : parts_.front().room.count(); }

private:
    struct part {
        contender whose;
        slots room;
        collective_call call;
        samples found;
        std::uint32_t last = 0;
    };

    void take_all(std::size_t turn) {
        for (std::size_t i = 0; i < parts_.size(); ++i) take(parts_[(turn + i) % parts_.size()]);
    }

    void take(part& each) {
        const std::size_t calls = each.room.count();
        each.last = calls_ + 1;
        for (std::size_t slot = 0; slot < calls; ++slot) {
            if (each.room.out(slot) != each.room.in(slot)) truth_.spoil(each.room.out(slot));
            truth_.write(each.room.in(slot), ++calls_);
        }
        for (int i = 0; i < allowed_.settling; ++i) ranks_.barrier();
        const double waited = seconds_of([&] {
            for (int i = 0; i < allowed_.probes; ++i) ranks_.barrier();
        });
        each.found.probes.push_back(waited / allowed_.probes);
        const double worked = seconds_of([&] {
            for (std::size_t slot = 0; slot < calls; ++slot) each.call(each.room.in(slot), each.room.out(slot));
        });
        each.found.seconds.push_back(worked / static_cast<double>(calls));
    }

    /// The results of the last sample.
    void check(part& each) {
        if (!each.whose.checked) return;
        for (std::size_t slot = 0; slot < each.room.count(); ++slot)
            each.found.wrong +=
                static_cast<double>(truth_.wrong(each.room.out(slot), each.last + static_cast<std::uint32_t>(slot)));
    }

    const meeting& ranks_;
    const effort& allowed_;
    oracle truth_;
    std::vector<part> parts_;
    std::uint32_t calls_ = 0;
};

}  // namespace compare
