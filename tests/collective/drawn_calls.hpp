// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/buffer.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>
#include <ddl/transport/request.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "oracle.hpp"

/// Elements that lie somewhere in memory that peers can map, or in some that they cannot, between others that nobody may touch.
template <class Element>
class drawn_buffer {
public:
    template <class Ranks>
    drawn_buffer(const Ranks& ranks, std::size_t count, std::size_t before, bool is_shared)
        : before_{before}, count_{count} {
        const std::size_t room = before + count + behind;
        if (is_shared) all_ = shared_.emplace(ranks, room).data();
        else all_ = own_.emplace(room).data();
        std::fill_n(all_, room, canary);
    }
    drawn_buffer(const drawn_buffer&) = delete;
    drawn_buffer& operator=(const drawn_buffer&) = delete;

    std::span<Element> all() const noexcept { return {all_ + before_, count_}; }
    bool intact() const noexcept {
        const auto is_canary = [](Element e) { return e == canary; };
        return std::all_of(all_, all_ + before_, is_canary) &&
               std::all_of(all_ + before_ + count_, all_ + before_ + count_ + behind, is_canary);
    }

private:
    static constexpr std::size_t behind = 9;
    static constexpr Element canary{101};  // no value of a test's

    std::size_t before_;
    std::size_t count_;
    std::optional<ddl::buffer<Element>> shared_;
    std::optional<std::vector<Element>> own_;
    Element* all_ = nullptr;
};

/// A long way of calls on one communicator, drawn from a seed: what a call leaves behind must not disturb the next.
///
/// All ranks draw the same calls: of any collective, length and root, blocking or several at once, by a plan that is kept, in a
/// group that was split off, or such that ranks disagree. Each draws for itself where its buffers lie, whether it works in place,
/// in which order it waits, and how long it does something else in between. All ranks make one, with the same seed.
template <class Ranks>
class drawn_calls {
public:
    /// Vectors have up to about `longest` elements.
    drawn_calls(Ranks& ranks, unsigned seed, std::size_t longest)
        : ranks_{ranks}, seed_{seed}, longest_{longest}, common_{seed},
          own_{seed * 31 + static_cast<unsigned>(ranks.rank()) + 1} {}
    drawn_calls(const drawn_calls&) = delete;
    drawn_calls& operator=(const drawn_calls&) = delete;

    void make(int calls) {
        for (int i = 0; i < calls; ++i) try {
                step();
            } catch (const std::exception& failure) {
                throw std::runtime_error("call " + std::to_string(number_) + " of seed " + std::to_string(seed_) +
                                         ", " + words_ + ", rank " + std::to_string(ranks_.rank()) + " of " +
                                         std::to_string(ranks_.size()) + ": " + failure.what());
            }
    }

private:
    using look = std::function<void()>;
    static constexpr ddl::collective all_kinds[] = {ddl::collective::allreduce,      ddl::collective::reduce,
                                                    ddl::collective::reduce_scatter, ddl::collective::all_gather,
                                                    ddl::collective::broadcast,      ddl::collective::gather,
                                                    ddl::collective::scatter,        ddl::collective::all_to_all,
                                                    ddl::collective::barrier,        ddl::collective::allreduce_n};

    static unsigned draw(std::mt19937& from, unsigned below) { return static_cast<unsigned>(from() % below); }
    bool flip() { return draw(own_, 2) == 0; }
    std::size_t draw_count() {
        switch (draw(common_, 8)) {
            case 0: return draw(common_, 4);
            case 1: return draw(common_, 64);
            case 2:
            case 3: return draw(common_, 5000);
            case 4:
            case 5: {  // a few beside a power of two
                std::size_t power = 1;
                for (unsigned i = draw(common_, 24); i > 0 && 2 * power <= longest_; --i) power *= 2;
                return power + 3 - std::min<std::size_t>(power + 3, draw(common_, 7));
            }
            default: return draw(common_, static_cast<unsigned>(longest_));
        }
    }

    void step() {
        for (unsigned pauses = draw(own_, 4) == 0 ? draw(own_, 30) : 0; pauses > 0; --pauses) std::this_thread::yield();
        switch (draw(common_, 12)) {
            case 0:
            case 1: return several_at_once();
            case 2: return once_more_by_the_plan();
            case 3: return in_a_group();
            case 4: return ranks_.size() > 1 ? in_disagreement() : void();
            default: draw_call(nullptr)();
        }
    }

    void several_at_once() {
        std::vector<ddl::request> under_way;
        std::vector<look> looks;
        for (unsigned calls = 2 + draw(common_, 5); calls > 0; --calls)
            looks.push_back(draw_call(draw(common_, 4) == 0 ? nullptr : &under_way));
        std::shuffle(under_way.begin(), under_way.end(), own_);
        for (const ddl::request& each : under_way) {
            if (flip())
                for (int looked = 0; looked < 20 && !each.test(); ++looked) std::this_thread::yield();
            each.wait();
        }
        for (const look& each : looks) each();
    }

    void once_more_by_the_plan() {
        if (!plan_ || draw(common_, 4) == 0) {
            words_ = "a plan";
            const std::size_t count = draw_count();
            const auto in = buffer<float>(count);
            const auto out = flip() ? in : buffer<float>(count);
            plan_ = [this, in, out, plan = ddl::allreduce_init(ranks_, in->all(), out->all())]() mutable {
                const auto value = values<float>();
                std::generate(in->all().begin(), in->all().end(),
                              [&, i = std::size_t{0}]() mutable { return value(ranks_.rank(), i++); });
                plan();
                expect(*out, folded<float>(ddl::sum{}, value));
            };
        }
        for (unsigned runs = 1 + draw(common_, 3); runs > 0; --runs) plan_();
    }

    void in_a_group() {
        if constexpr (requires { ranks_.split(0, 0); }) {
            words_ = "in a group";
            if (!group_ || draw(common_, 3) == 0) {
                const int color = static_cast<int>(draw(own_, 2));
                const unsigned seed = 2 * draw(common_, 1000) + static_cast<unsigned>(color);
                const int key = static_cast<int>(draw(own_, 5));
                group_.reset();
                group_ = std::make_unique<group>(ranks_.split(color, key), seed, longest_);
            }
            group_->calls.make(4);
        }
    }

    /// One rank brings more than the others: all are told so, and go on.
    void in_disagreement() {
        const int odd = static_cast<int>(draw(common_, static_cast<unsigned>(ranks_.size())));
        const ddl::collective what = all_kinds[draw(common_, 8)];
        const std::size_t count = draw_count();
        const std::size_t more = ranks_.rank() == odd ? draw(own_, flip() ? 100 : 20'000) + 1 : 0;
        const int root = static_cast<int>(draw(common_, static_cast<unsigned>(ranks_.size())));
        require_error(ddl::errc::mismatch, "",
                      [&] { call<float, ddl::checked>(what, ddl::sum{}, count + more * ranks(), root, nullptr); });
    }

    /// Calls what is drawn, or adds it to what is `under_way`. Looks at the results then.
    look draw_call(std::vector<ddl::request>* under_way) {
        const ddl::collective what = all_kinds[draw(common_, std::size(all_kinds))];
        const std::size_t count = draw_count();
        const int root = static_cast<int>(draw(common_, static_cast<unsigned>(ranks_.size())));
        if (draw(common_, 2) == 0) return call<float, ddl::checked>(what, ddl::sum{}, count, root, under_way);
        return call<std::uint8_t, ddl::unchecked>(what, ddl::maximum{}, count, root, under_way);
    }

    template <class Element, class Checking, class Op>
    look call(ddl::collective what, Op op, std::size_t about, int root, std::vector<ddl::request>* under_way) {
        const std::size_t each = about / ranks();
        const bool equal_blocks =
            what == ddl::collective::gather || what == ddl::collective::scatter || what == ddl::collective::all_to_all;
        const std::size_t count = equal_blocks ? each * ranks() : about;
        const int size = ranks_.size();
        const int rank = ranks_.rank();
        const bool is_root = rank == root;
        const auto own = ddl::block(count, size, rank);
        const auto value = values<Element>();
        const auto mine = [=](std::size_t i) { return value(rank, i); };
        const auto fold = folded<Element>(op, value);
        const auto run = [&](auto plan) {
            if (under_way != nullptr) under_way->push_back(ddl::start(ranks_, plan));
            else plan();
        };
        words_ = std::string(to_string(what)) + " of " + std::to_string(count) + " " + ddl::element_name<Element>() +
                 ", root " + std::to_string(root);
        using ddl::collective;
        switch (what) {
            case collective::allreduce: {
                const auto in = filled<Element>(count, mine);
                const auto out = flip() ? in : buffer<Element>(count);
                run(ddl::allreduce_init<ddl::tuned, Checking>(ranks_, in->all(), out->all(), op));
                return [=] { expect(*out, fold), in == out ? void() : expect(*in, mine); };
            }
            case collective::reduce: {
                const auto in = filled<Element>(count, mine);
                const auto out = is_root && flip() ? in : buffer<Element>(is_root ? count : 0);
                run(ddl::reduce_init<ddl::tuned, Checking>(ranks_, in->all(), out->all(), op, root));
                return [=] { is_root ? expect(*out, fold) : void(), in == out ? void() : expect(*in, mine); };
            }
            case collective::reduce_scatter: {
                const auto in = filled<Element>(count, mine);
                const bool in_place = flip();
                const auto out = in_place ? in : buffer<Element>(own.count);
                const auto block = in_place ? in->all().subspan(own.first, own.count) : out->all();
                run(ddl::reduce_scatter_init<ddl::tuned, Checking>(ranks_, in->all(), block, op));
                return [=] {
                    expect(block, [=](std::size_t i) { return fold(own.first + i); });
                    require(out->intact() && in->intact(), "something outside was written");
                    if (!in_place) expect(*in, mine);
                };
            }
            case collective::all_gather: {
                const auto out = buffer<Element>(count);
                const auto in = buffer<Element>(own.count);
                const auto block = flip() ? out->all().subspan(own.first, own.count) : in->all();
                for (std::size_t i = 0; i < own.count; ++i) block[i] = value(rank, own.first + i);
                run(ddl::all_gather_init<ddl::tuned, Checking>(ranks_, block, out->all()));
                return [=, in = in] {  // which must live so long
                    expect(*out, [=](std::size_t i) { return value(owner(count, size, i), i); });
                };
            }
            case collective::broadcast: {
                const auto data = is_root ? filled<Element>(count, mine) : buffer<Element>(count);
                run(ddl::broadcast_init<ddl::tuned, Checking>(ranks_, data->all(), root));
                return [=] { expect(*data, [=](std::size_t i) { return value(root, i); }); };
            }
            case collective::gather: {
                const auto out = buffer<Element>(is_root ? count : 0);
                const auto in = buffer<Element>(each);
                const auto block = is_root && flip() ? out->all().subspan(own.first, each) : in->all();
                for (std::size_t i = 0; i < each; ++i) block[i] = value(rank, own.first + i);
                run(ddl::gather_init<ddl::tuned, Checking>(ranks_, block, out->all(), root));
                return
                    [=, in = in] { expect(*out, [=](std::size_t i) { return value(static_cast<int>(i / each), i); }); };
            }
            case collective::scatter: {
                const auto in = is_root ? filled<Element>(count, mine) : buffer<Element>(0);
                const auto out = buffer<Element>(each);
                const auto block = is_root && flip() ? in->all().subspan(own.first, each) : out->all();
                run(ddl::scatter_init<ddl::tuned, Checking>(ranks_, in->all(), block, root));
                return [=] {
                    expect(block, [=](std::size_t i) { return value(root, own.first + i); });
                    require(out->intact(), "something outside was written");
                    expect(*in, mine);  // its own block, too, which is the same
                };
            }
            case collective::all_to_all: {
                const auto in = filled<Element>(count, mine);
                const auto out = flip() ? in : buffer<Element>(count);
                run(ddl::all_to_all_init<ddl::tuned, Checking>(ranks_, in->all(), out->all()));
                return [=] {
                    expect(*out,
                           [=](std::size_t i) { return value(static_cast<int>(i / each), own.first + i % each); });
                    if (in != out) expect(*in, mine);
                };
            }
            case collective::barrier:
                if (under_way != nullptr) under_way->push_back(ddl::barrier_async(ranks_));
                else ddl::barrier(ranks_);
                return [] {};
            default: return call_of_many<Element, Checking>(op, count, under_way);
        }
    }

    template <class Element, class Checking, class Op>
    look call_of_many(Op op, std::size_t count, std::vector<ddl::request>* under_way) {
        const auto value = values<Element>();
        std::vector<std::shared_ptr<drawn_buffer<Element>>> tensors;
        std::vector<std::size_t> firsts;
        std::vector<std::span<Element>> views;
        for (std::size_t first = 0; first < count;) {
            const std::size_t length = std::min<std::size_t>(draw_count(), count - first);
            tensors.push_back(filled<Element>(length, [&](std::size_t i) { return value(ranks_.rank(), first + i); }));
            firsts.push_back(first);
            views.push_back(tensors.back()->all());
            first += std::max<std::size_t>(length, count / 50 + 1);
        }
        if (under_way != nullptr) under_way->push_back(ddl::allreduce_n_async<ddl::tuned, Checking>(ranks_, views, op));
        else ddl::allreduce_n<ddl::tuned, Checking>(ranks_, views, op);
        return [=, fold = folded<Element>(op, value)] {
            for (std::size_t t = 0; t < tensors.size(); ++t)
                expect(*tensors[t], [=, first = firsts[t]](std::size_t i) { return fold(first + i); });
        };
    }

    /// What ranks bring to the next call.
    template <class Element>
    auto values() {
        return [shift = static_cast<std::size_t>(++number_) << 32](int rank, std::size_t i) {
            return static_cast<Element>(small_value(rank, shift + i));
        };
    }
    template <class Element, class Op, class Value>
    auto folded(Op op, Value value) const {
        return [op, value, size = ranks_.size()](std::size_t i) {
            Element all = value(0, i);
            for (int rank = 1; rank < size; ++rank) all = static_cast<Element>(op(all, value(rank, i)));
            return all;
        };
    }
    static int owner(std::size_t count, int size, std::size_t i) {
        int rank = 0;
        while (i >= ddl::block(count, size, rank).first + ddl::block(count, size, rank).count) ++rank;
        return rank;
    }
    std::size_t ranks() const { return static_cast<std::size_t>(ranks_.size()); }

    template <class Element>
    auto buffer(std::size_t count) {
        const bool is_shared = flip();
        return std::make_shared<drawn_buffer<Element>>(ranks_, count, draw(own_, 18), is_shared);
    }
    template <class Element, class Value>
    auto filled(std::size_t count, Value value) {
        const auto made = buffer<Element>(count);
        for (std::size_t i = 0; i < count; ++i) made->all()[i] = value(i);
        return made;
    }
    template <class Element, class Wanted>
    static void expect(std::span<Element> got, Wanted wanted) {
        for (std::size_t i = 0; i < got.size(); ++i)
            if (got[i] != wanted(i))
                throw std::runtime_error("element " + std::to_string(i) + " of " + std::to_string(got.size()) + " is " +
                                         std::to_string(got[i]) + ", not " + std::to_string(wanted(i)));
    }
    template <class Element, class Wanted>
    static void expect(const drawn_buffer<Element>& got, Wanted wanted) {
        expect(got.all(), wanted);
        require(got.intact(), "something outside was written");
    }

    /// Ranks that were split off, and their calls.
    template <class Communicator>
    struct group_of {
        group_of(Communicator&& split, unsigned seed, std::size_t longest)
            : ranks{std::move(split)}, calls{ranks, seed, longest} {}
        Communicator ranks;
        drawn_calls<Communicator> calls;
    };
    struct no_group {};
    static auto group_type() {
        if constexpr (requires(Ranks& all) { all.split(0, 0); })
            return std::type_identity<group_of<decltype(std::declval<Ranks&>().split(0, 0))>>{};
        else return std::type_identity<no_group>{};
    }
    using group = typename decltype(group_type())::type;

    Ranks& ranks_;
    unsigned seed_;
    std::size_t longest_;
    std::mt19937 common_;  // what all ranks draw
    std::mt19937 own_;
    std::uint32_t number_ = 0;
    std::string words_;
    std::function<void()> plan_;
    std::unique_ptr<group> group_;
};
