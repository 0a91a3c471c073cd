// SPDX-License-Identifier: Apache-2.0
// rows: few
#include <ddl/shim/movable_memory.hpp>
#include <ddl/transport/shared_heap.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using ddl::memory_source;
using ddl::shim::mapped_memory;
using ddl::shim::movable_memory;

namespace {

constexpr std::size_t least = movable_memory::least;

struct shared_file {
    ddl::descriptor file = ddl::shared_heap::create(1);
    std::shared_ptr<ddl::shared_heap> heap = std::make_shared<ddl::shared_heap>(file, 0, 1);
    memory_source source{heap};

    bool has(const void* data, std::size_t bytes) const { return heap->address_of(data, bytes) != 0; }
};

/// A block of the bytes `first`, `first + 1`, ... round 251. For any thread, so without Boost's words.
struct filled_block {
    explicit filled_block(std::size_t length, unsigned first = 0)
        : bytes{length}, data{static_cast<unsigned char*>(movable_memory::here().allocate(length, false))} {
        if (data == nullptr) throw std::bad_alloc{};
        fill(first);
    }
    filled_block(const filled_block&) = delete;
    filled_block& operator=(const filled_block&) = delete;
    ~filled_block() {
        if (data != nullptr) (void)give_back();
    }
    bool give_back() { return movable_memory::here().give_back(std::exchange(data, nullptr)); }

    void fill(unsigned first) {
        for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>((first + i) % 251);
    }
    bool holds(unsigned first) const {
        for (std::size_t i = 0; i < bytes; ++i)
            if (data[i] != (first + i) % 251) return false;
        return true;
    }
    /// As calls would that use all of it.
    void use(const memory_source& source, unsigned times = movable_memory::uses_before) const {
        for (unsigned i = 0; i < times; ++i) movable_memory::here().use(data, bytes, [&] { return source; });
    }
    bool moved() const { return movable_memory::here().place_of(data) != reinterpret_cast<std::byte*>(data); }

    std::size_t bytes;
    unsigned char* data;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_block_that_is_used_often_moves_and_keeps_its_address_and_content) {
    const shared_file shared;
    for (const std::size_t bytes : {least, least + 1, 3 * least + 4095, std::size_t{5} << 20}) {
        filled_block block{bytes, 3};
        block.use(shared.source, movable_memory::uses_before - 1);
        BOOST_TEST(!block.moved());
        block.use(shared.source, 1);
        BOOST_TEST(block.moved());
        BOOST_TEST(block.holds(3));
        auto* const lies = movable_memory::here().place_of(block.data);
        BOOST_TEST(shared.has(lies, bytes));
        BOOST_TEST(movable_memory::here().place_of(block.data + bytes - 1) == lies + bytes - 1);
        block.fill(7);  // the same memory by both names
        BOOST_TEST(std::equal(block.data, block.data + bytes, reinterpret_cast<const unsigned char*>(lies)));
        block.use(shared.source);
        BOOST_TEST(movable_memory::here().place_of(block.data) == lies);
    }
    BOOST_TEST(!movable_memory::is_in_use());
}

BOOST_AUTO_TEST_CASE(only_a_block_as_a_whole_counts) {
    const shared_file shared;
    const filled_block block{2 * least};
    const auto use = [&](const void* data, std::size_t bytes) {
        for (unsigned i = 0; i < 2 * movable_memory::uses_before; ++i)
            movable_memory::here().use(data, bytes, [&] { return shared.source; });
    };
    use(block.data, block.bytes - 1);
    use(block.data + 1, block.bytes - 1);
    use(block.data + least, least);
    std::vector<unsigned char> other(2 * least);
    use(other.data(), other.size());
    use(nullptr, 0);
    BOOST_TEST(!block.moved());
    BOOST_TEST(movable_memory::here().place_of(other.data()) == reinterpret_cast<std::byte*>(other.data()));
    BOOST_TEST(movable_memory::here().place_of(nullptr) == nullptr);
    block.use(shared.source);
    BOOST_TEST(block.moved());
}

BOOST_AUTO_TEST_CASE(what_was_given_back_is_private_again_and_may_come_to_anybody) {
    const shared_file shared;
    for (int round = 0; round < 50; ++round) {
        filled_block block{least};
        block.use(shared.source);
        BOOST_TEST_REQUIRE(block.moved());
        void* const at = block.data;
        BOOST_TEST(block.give_back());
        BOOST_TEST(!movable_memory::here().give_back(at));
        filled_block next{least, 9};  // likely to lie there
        std::byte* const taken = shared.source.allocate(least);
        std::fill_n(taken, least, std::byte{0xff});  // likely to be what peers could map
        BOOST_TEST(next.holds(9));
        shared.source.deallocate(taken, least);
    }
}

BOOST_AUTO_TEST_CASE(zeros_are_zeros_whoever_had_the_memory) {
    const shared_file shared;
    for (int round = 0; round < 20; ++round) {
        filled_block{least, 1}.use(shared.source);
        auto* const zeros = static_cast<unsigned char*>(movable_memory::here().allocate(least, true));
        BOOST_TEST_REQUIRE(zeros != nullptr);
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(zeros) % 4096 == 0U);
        BOOST_TEST(std::all_of(zeros, zeros + least, [](unsigned char each) { return each == 0; }));
        BOOST_TEST(movable_memory::here().bytes_of(zeros) == least);
        BOOST_TEST(movable_memory::here().give_back(zeros));
    }
    BOOST_TEST(movable_memory::here().allocate(PTRDIFF_MAX, false) == nullptr);
}

BOOST_AUTO_TEST_CASE(where_it_cannot_move_it_stays) {
    struct empty {
        std::byte* allocate(std::size_t) { throw std::bad_alloc{}; }
        void deallocate(std::byte*, std::size_t) noexcept {}
    };
    for (const memory_source& source : {memory_source{}, memory_source{std::make_shared<empty>()}}) {
        const filled_block block{least, 5};
        block.use(source, 3 * movable_memory::uses_before);
        BOOST_TEST(!block.moved());
        BOOST_TEST(block.holds(5));
    }
}

BOOST_AUTO_TEST_CASE(where_memory_runs_out_half_way_nothing_is_lost) {
    struct short_of_memory {  // takes half of what it is asked for
        shared_file shared;
        int held = 0;
        std::byte* allocate(std::size_t bytes) { return shared.heap->allocate(bytes); }
        void deallocate(std::byte* data, std::size_t bytes) noexcept {
            --held;
            shared.heap->deallocate(data, bytes / 2);
        }
        ddl::moved_pages adopt(std::byte* place, std::size_t bytes) {
            ++held;
            return shared.heap->adopt(place, bytes / 2);
        }
    };
    const auto heap = std::make_shared<short_of_memory>();
    filled_block block{4 * least, 5};
    block.use(memory_source{heap}, 3 * movable_memory::uses_before);
    BOOST_TEST(heap->held == 1);
    BOOST_TEST(!block.moved());
    BOOST_TEST(block.holds(5));
    block.fill(6);
    const pid_t child = ::fork();
    if (child == 0) {
        const bool well = block.holds(6);
        block.fill(7);
        ::_exit(well ? 0 : 1);
    }
    int ended = -1;
    BOOST_TEST(::waitpid(child, &ended, 0) == child);
    BOOST_TEST(ended == 0);
    BOOST_TEST(block.holds(6));
    BOOST_TEST(block.give_back());
    BOOST_TEST(heap->held == 0);
}

BOOST_AUTO_TEST_CASE(others_may_read_a_block_while_it_moves) {
    const shared_file shared;
    for (int round = 0; round < 20; ++round) {
        const filled_block block{std::size_t{1} << 20, 11};
        std::atomic<bool> done = false;
        bool same = true;
        std::thread reader{[&] {
            while (!done) same = same && block.holds(11);
        }};
        block.use(shared.source);
        done = true;
        reader.join();
        BOOST_TEST(same);
        BOOST_TEST(block.moved());
    }
}

BOOST_AUTO_TEST_CASE(threads_that_allocate_use_and_give_back) {
    const shared_file shared;
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (unsigned mine = 0; mine < 4; ++mine)
        threads.emplace_back([&, mine] {
            for (unsigned round = 0; round < 50; ++round) {
                const filled_block block{least + mine * 5000, mine};
                block.use(shared.source, mine + round % movable_memory::uses_before);
                wrong += block.holds(mine) ? 0 : 1;
            }
        });
    for (std::thread& each : threads) each.join();
    BOOST_TEST(wrong == 0);
    BOOST_TEST(!movable_memory::is_in_use());
}

BOOST_AUTO_TEST_CASE(a_child_has_a_copy_of_its_own) {
    const shared_file shared;
    filled_block moved{3 * least, 1};
    filled_block not_moved{3 * least, 2};
    moved.use(shared.source);
    int go[2];
    BOOST_TEST_REQUIRE(::pipe(go) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        char none = 0;
        bool well = ::read(go[0], &none, 1) == 1;  // the parent has written
        well = well && moved.holds(1) && not_moved.holds(2) && !moved.moved();
        moved.fill(20);
        well = well && moved.give_back() && filled_block{3 * least, 3}.holds(3);
        ::_exit(well ? 0 : 1);
    }
    moved.fill(30);
    BOOST_TEST(::write(go[1], "x", 1) == 1);
    int ended = -1;
    BOOST_TEST(::waitpid(child, &ended, 0) == child);
    BOOST_TEST(ended == 0);
    BOOST_TEST(moved.holds(30));
    BOOST_TEST(moved.moved());
    ::close(go[0]);
    ::close(go[1]);
}
