// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/buffer.hpp>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "contender.hpp"
#include "policies.hpp"
#include "report.hpp"
#include "values.hpp"

// The loop is our own: the harnesses one would take, such as Google Benchmark, time one process and decide alone when to stop.

/// `count` elements from the start of a page: of `world`'s memory, or this process's own.
template <class Element>
class pages {
public:
    template <class Transport>
    pages(Transport& world, std::size_t count, bool mapped) : mapped_{world, mapped ? count : 0} {
        if (mapped) return;
        const std::size_t bytes = (count * sizeof(Element) + page_bytes - 1) / page_bytes * page_bytes;
        own_.reset(static_cast<Element*>(std::aligned_alloc(page_bytes, bytes)));
        if (!own_) throw std::runtime_error("no memory for " + std::to_string(bytes) + " bytes; lower --max-bytes");
    }
    Element* data() noexcept { return own_ ? own_.get() : mapped_.data(); }

private:
    struct release {
        void operator()(Element* data) const noexcept { std::free(data); }
    };
    ddl::buffer<Element> mapped_;
    std::unique_ptr<Element, release> own_;
};

/// The library's allreduce, by one schedule.
template <class Schedule, class Op, class Element, class Transport>
contender ours(Transport& world) {
    return {"ddl", [&world](const void* in, void* out, std::size_t count) -> prepared_call {
                ddl::allreduce_plan<Op, Element, Schedule, Transport> plan{world, static_cast<const Element*>(in),
                                                                           static_cast<Element*>(out), count};
                return {[plan]() mutable { return seconds_of(plan); }, ddl::explain(plan)};
            }};
}

/// All calls of one size at one offset, in turns: a call of each contender, in each way, then the next of each.
template <class Op, class Element, class Transport>
class turns {
public:
    turns(Transport& world, const settings& asked, const std::vector<contender>& contenders, Element* in, Element* out,
          std::size_t count)
        : world_{world}, asked_{asked}, contenders_{contenders}, count_{count} {
        for (const contender& each : contenders) {
            if (asked.out_of_place) kinds_.push_back({each.prepare(in, out, count), in, out, {}, {}, 0});
            if (asked.in_place) kinds_.push_back({each.prepare(in, in, count), in, in, {}, {}, 0});
        }
    }

    /// Runs them all. The same on every rank.
    std::vector<row> run() {
        for (int i = 0; i < asked_.warmup; ++i) take();
        std::size_t calls = static_cast<std::size_t>(asked_.iterations);
        if (asked_.seconds > 0) {
            const double turn = slowest({seconds_of([&] { take(); })})[0];
            calls = static_cast<std::size_t>(std::min(std::max(asked_.seconds / turn, 5.0), 1e6));
        }
        for (kind& each : kinds_) {
            each.seconds.clear();
            each.barrier.clear();
        }
        for (std::size_t i = 0; i < calls; ++i) take();
        return rows();
    }

private:
    struct kind {
        prepared_call call;
        Element* in;
        Element* out;
        std::vector<double> seconds;
        std::vector<double> barrier;
        double wrong;
    };

    void take() {
        for (kind& each : kinds_) {
            ++call_;
            write_contribution(each.in, count_, world_.rank(), call_);
            ddl::barrier(world_);
            each.barrier.push_back(seconds_of([&] { ddl::barrier(world_); }));
            each.seconds.push_back(each.call.timed());
            if (asked_.check)
                each.wrong += static_cast<double>(count_wrong<Op>(each.out, count_, world_.size(), call_));
        }
    }

    std::vector<double> slowest(std::vector<double> seconds) {
        ddl::allreduce(world_, seconds, ddl::maximum{});
        return seconds;
    }

    std::vector<row> rows() {
        std::vector<row> found;
        auto next = kinds_.begin();
        for (const contender& each : contenders_) {
            row& line = found.emplace_back();
            line.bytes = count_ * sizeof(Element);
            line.count = count_;
            line.by = each.name;
            line.explanation = next->call.explanation;
            std::vector<double> barriers;
            const auto take_figures = [&] {
                kind& mine = *next++;
                std::vector<double> wrong{mine.wrong};
                ddl::allreduce(world_, wrong);
                const std::vector<double> probes = slowest(mine.barrier);
                barriers.insert(barriers.end(), probes.begin(), probes.end());
                return figures_of(slowest(mine.seconds), static_cast<std::size_t>(wrong[0]), line.bytes, world_.size());
            };
            if (asked_.out_of_place) line.out_of_place = take_figures();
            if (asked_.in_place) line.in_place = take_figures();
            line.barrier = spread_of_seconds(barriers);
        }
        return found;
    }

    Transport& world_;
    const settings& asked_;
    const std::vector<contender>& contenders_;
    std::size_t count_;
    std::uint32_t call_ = 0;
    std::vector<kind> kinds_;
};

/// Every size at every offset. Rank 0 tells what was found.
template <class Op, class Element, class Transport>
bool measure_contenders(Transport& world, const settings& asked, const std::vector<contender>& contenders) {
    const std::size_t room = asked.max_bytes / sizeof(Element) + asked.offset;
    pages<Element> in{world, room, asked.mapped};
    pages<Element> out{world, room, asked.mapped};
    const bool tells = world.rank() == 0;
    report told{asked, world.size()};
    const std::vector<std::size_t> sizes = asked.sizes();
    if (tells) {
        std::vector<std::string> explanations;
        for (const contender& each : contenders)
            for (const std::size_t bytes : {sizes.front(), sizes.back()}) {
                auto way = each.prepare(in.data(), out.data(), bytes / sizeof(Element)).explanation;
                if (explanations.empty() || explanations.back() != way) explanations.push_back(std::move(way));
            }
        told.begin(explanations);
    }
    bool right = true;
    for (const std::size_t bytes : sizes)
        for (const std::size_t offset : asked.offsets()) {
            const std::size_t count = bytes / sizeof(Element);
            turns<Op, Element, Transport> calls{world, asked, contenders, in.data() + offset, out.data() + offset,
                                                count};
            for (row& each : calls.run()) {
                each.offset = offset;
                right = right && each.wrong() == 0;
                if (tells) told.add(each);
            }
        }
    if (tells) told.end();
    return right;
}

/// Measures what is asked for on the ranks of `world`, beside `rivals`. All ranks call it. False if a result was wrong.
template <class Transport>
bool measure(Transport& world, const settings& asked, const std::vector<contender>& rivals = {}) {
    bool right = false;
    with_choice(elements, asked.element, [&]<class Element>() {
        with_choice(ops, asked.op, [&]<class Op>() {
            std::vector<contender> contenders = rivals;
            with_choice(schedules, asked.schedule, [&]<class Schedule>() {
                contenders.insert(contenders.begin(), ours<Schedule, Op, Element>(world));
            });
            right = measure_contenders<Op, Element>(world, asked, contenders);
        });
    });
    return right;
}
