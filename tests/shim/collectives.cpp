// SPDX-License-Identifier: Apache-2.0
// rows: all
// ranks: 1 2 3 4 5 6 7 8 9
// mpi-ranks: 1 2 3 4 5
// two-nodes: 2 4 5 7
#include <ddl/element/bfloat16.hpp>
#include <ddl/element/half.hpp>

#include <boost/mpl/list.hpp>

#include <algorithm>
#include <complex>
#include <cstring>
#include <numeric>

#include "world.hpp"

namespace {

template <class Type, ddl_element Number>
struct element {
    using type = Type;
    static constexpr ddl_element number = Number;
};
using elements =
    boost::mpl::list<element<std::int8_t, DDL_INT8>, element<std::uint8_t, DDL_UINT8>, element<std::int16_t, DDL_INT16>,
                     element<std::uint16_t, DDL_UINT16>, element<std::int32_t, DDL_INT32>,
                     element<std::uint32_t, DDL_UINT32>, element<std::int64_t, DDL_INT64>,
                     element<std::uint64_t, DDL_UINT64>, element<ddl::half, DDL_HALF>,
                     element<ddl::bfloat16, DDL_BFLOAT16>, element<float, DDL_FLOAT>, element<double, DDL_DOUBLE>>;
constexpr std::size_t counts[] = {0, 1, 7, 1000, 70'001};

template <class Type>
int whole(Type value) {
    return static_cast<int>(static_cast<float>(value));
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(allreduce_sums_every_element_in_all_three_forms, Element, elements) {
    using type = typename Element::type;
    for (const std::size_t count : counts) {
        const std::vector<type> in = values_of<type>(rank(), count);
        std::vector<type> out(count);
        const auto expect_sum = [&](const char* form) {
            std::size_t right = 0;  // a check of each would take longer than all else here
            while (right < count && whole(out[right]) == summed(right)) ++right;
            BOOST_TEST_REQUIRE(right == count, form << " of " << count << " at " << right);
            std::fill(out.begin(), out.end(), type{});
        };
        REQUIRE_OK(ddl_run_allreduce(world(), in.data(), out.data(), count, Element::number, DDL_SUM));
        expect_sum("run");

        ddl_request* request = nullptr;
        REQUIRE_OK(ddl_start_allreduce(world(), in.data(), out.data(), count, Element::number, DDL_SUM, &request));
        REQUIRE_OK(ddl_wait_request(request));
        REQUIRE_OK(ddl_free_request(request));
        expect_sum("start");

        ddl_plan* plan = nullptr;
        REQUIRE_OK(ddl_plan_allreduce(world(), in.data(), out.data(), count, Element::number, DDL_SUM, &plan));
        for (int time = 0; time < 2; ++time) {
            REQUIRE_OK(ddl_run_plan(plan));
            expect_sum("plan");
        }
        REQUIRE_OK(ddl_start_plan(plan, &request));
        REQUIRE_OK(ddl_wait_request(request));
        REQUIRE_OK(ddl_free_request(request));
        expect_sum("started plan");
        REQUIRE_OK(ddl_free_plan(plan));
    }
}

BOOST_AUTO_TEST_CASE(ops_are_told_apart) {
    const auto folded = [](ddl_op op) {
        std::int32_t value = brought(rank(), 0);
        REQUIRE_OK(ddl_run_allreduce(world(), &value, &value, 1, DDL_INT32, op));
        return value;
    };
    const auto expected = [](auto fold) {
        int value = brought(0, 0);
        for (int from = 1; from < size(); ++from) value = fold(value, brought(from, 0));
        return value;
    };
    BOOST_TEST(folded(DDL_PRODUCT) == expected(std::multiplies<>{}));
    BOOST_TEST(folded(DDL_MINIMUM) == expected([](int a, int b) { return std::min(a, b); }));
    BOOST_TEST(folded(DDL_MAXIMUM) == expected([](int a, int b) { return std::max(a, b); }));
    BOOST_TEST(folded(DDL_BIT_AND) == expected(std::bit_and<>{}));
    BOOST_TEST(folded(DDL_BIT_OR) == expected(std::bit_or<>{}));
    BOOST_TEST(folded(DDL_BIT_XOR) == expected(std::bit_xor<>{}));
    BOOST_TEST(folded(DDL_AVERAGE) == summed(0) / size());
    bool alone = rank() == 0;
    REQUIRE_OK(ddl_run_allreduce(world(), &alone, &alone, 1, DDL_BOOL, DDL_LOGICAL_AND));
    BOOST_TEST(alone == (size() == 1));
}

BOOST_AUTO_TEST_CASE(average_in_double_keeps_what_float_loses) {
    float value = rank() == 0 ? 16'777'216.0F : 1.0F;  // float has no odd numbers above it
    REQUIRE_OK(ddl_run_allreduce(world(), &value, &value, 1, DDL_FLOAT, DDL_AVERAGE_IN_DOUBLE));
    BOOST_TEST(value == static_cast<float>((16'777'216.0 + size() - 1) / size()));
}

BOOST_AUTO_TEST_CASE(complex_numbers_are_elements) {
    std::complex<double> value{1.0, static_cast<double>(rank())};
    REQUIRE_OK(ddl_run_allreduce(world(), &value, &value, 1, DDL_COMPLEX_DOUBLE, DDL_SUM));
    BOOST_TEST(value.real() == size());
    BOOST_TEST(value.imag() == size() * (size() - 1) / 2);
}

BOOST_AUTO_TEST_CASE(many_tensors_are_one_exchange) {
    std::vector<std::vector<float>> tensors;
    for (const std::size_t count : {3U, 0U, 5000U, 1U}) tensors.push_back(values_of<float>(rank(), count));
    std::vector<void*> data;
    std::vector<std::size_t> lengths;
    for (auto& each : tensors) {
        data.push_back(each.data());
        lengths.push_back(each.size());
    }
    ddl_request* request = nullptr;
    REQUIRE_OK(ddl_start_allreduce_n(world(), data.data(), lengths.data(), data.size(), DDL_FLOAT, DDL_SUM, &request));
    data.clear();  // the list is the caller's again, its tensors are not
    REQUIRE_OK(ddl_wait_request(request));
    REQUIRE_OK(ddl_free_request(request));
    for (const auto& each : tensors)
        for (std::size_t i = 0; i < each.size(); ++i) BOOST_TEST_REQUIRE(each[i] == static_cast<float>(summed(i)));
}

BOOST_AUTO_TEST_CASE(blocks_go_where_they_belong) {
    constexpr std::size_t count = 1003;
    const std::size_t first = ddl_first_of_block(count, size(), rank());
    const std::size_t own = ddl_count_of_block(count, size(), rank());
    const std::vector<float> in = values_of<float>(rank(), count);
    std::vector<float> part(own);
    REQUIRE_OK(ddl_run_reduce_scatter(world(), in.data(), part.data(), count, DDL_FLOAT, DDL_SUM));
    for (std::size_t i = 0; i < own; ++i) BOOST_TEST_REQUIRE(part[i] == static_cast<float>(summed(first + i)));

    std::vector<float> whole_vector(count);
    REQUIRE_OK(ddl_run_all_gather(world(), part.data(), whole_vector.data(), count, DDL_FLOAT));
    for (std::size_t i = 0; i < count; ++i) BOOST_TEST_REQUIRE(whole_vector[i] == static_cast<float>(summed(i)));

    const std::size_t square = static_cast<std::size_t>(size()) * 3;
    const std::vector<std::int32_t> sent = values_of<std::int32_t>(rank(), square);
    std::vector<std::int32_t> received(square);
    REQUIRE_OK(ddl_run_all_to_all(world(), sent.data(), received.data(), square, DDL_INT32));
    for (int from = 0; from < size(); ++from)
        for (std::size_t i = 0; i < 3; ++i)
            BOOST_TEST(received[static_cast<std::size_t>(from) * 3 + i] ==
                       brought(from, static_cast<std::size_t>(rank()) * 3 + i));
}

BOOST_AUTO_TEST_CASE(in_place_the_block_is_this_ranks_of_the_vector) {
    for (const std::size_t count : {std::size_t{5}, std::size_t{1003}, std::size_t{100'003}}) {
        const std::size_t first = ddl_first_of_block(count, size(), rank());
        const std::size_t own = ddl_count_of_block(count, size(), rank());
        void* mapped = nullptr;
        REQUIRE_OK(ddl_allocate(world(), count * sizeof(float), &mapped));
        std::vector<float> ordinary(count);
        for (float* const data : {static_cast<float*>(mapped), ordinary.data()}) {
            const auto fill = [&] {
                REQUIRE_OK(ddl_run_barrier(world()));  // peers may read there
                for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<float>(brought(rank(), i));
            };
            const auto expect = [&](std::size_t begin, std::size_t length, auto expected) {
                std::size_t right = 0;
                while (right < length && data[begin + right] == static_cast<float>(expected(begin + right))) ++right;
                BOOST_TEST_REQUIRE(right == length, "element " << begin + right << " of " << count);
            };
            fill();
            REQUIRE_OK(ddl_run_reduce_scatter(world(), data, data + first, count, DDL_FLOAT, DDL_SUM));
            expect(first, own, summed);
            REQUIRE_OK(ddl_run_all_gather(world(), data + first, data, count, DDL_FLOAT));
            expect(0, count, summed);
            const int root = size() - 1;
            const bool is_root = rank() == root;
            fill();
            REQUIRE_OK(ddl_run_scatter(world(), is_root ? data : nullptr, data + first, count, DDL_FLOAT, root));
            expect(first, own, [&](std::size_t i) { return brought(root, i); });
            REQUIRE_OK(ddl_run_gather(world(), data + first, is_root ? data : nullptr, count, DDL_FLOAT, root));
            if (is_root) expect(0, count, [&](std::size_t i) { return brought(root, i); });
        }
        REQUIRE_OK(ddl_deallocate(mapped));
    }
}

BOOST_AUTO_TEST_CASE(rooted_collectives_take_any_root) {
    constexpr std::size_t count = 501;
    for (int root = 0; root < size(); ++root) {
        std::vector<double> data = values_of<double>(rank(), count);
        REQUIRE_OK(ddl_run_broadcast(world(), data.data(), count, DDL_DOUBLE, root));
        BOOST_TEST(data == values_of<double>(root, count), boost::test_tools::per_element());

        const bool is_root = rank() == root;
        std::vector<double> all(is_root ? count : 0);
        data = values_of<double>(rank(), count);
        REQUIRE_OK(
            ddl_run_reduce(world(), data.data(), is_root ? all.data() : nullptr, count, DDL_DOUBLE, DDL_SUM, root));
        for (std::size_t i = 0; i < all.size(); ++i) BOOST_TEST_REQUIRE(all[i] == summed(i));

        const std::size_t first = ddl_first_of_block(count, size(), rank());
        std::vector<double> part(ddl_count_of_block(count, size(), rank()));
        REQUIRE_OK(ddl_run_scatter(world(), is_root ? data.data() : nullptr, part.data(), count, DDL_DOUBLE, root));
        BOOST_TEST(part == values_of<double>(root, part.size(), first), boost::test_tools::per_element());

        REQUIRE_OK(ddl_run_gather(world(), part.data(), is_root ? all.data() : nullptr, count, DDL_DOUBLE, root));
        if (is_root) BOOST_TEST(all == values_of<double>(root, count), boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(memory_that_peers_map_is_zero_at_first_and_outlives_its_communicator) {
    ddl_communicator* part = nullptr;
    REQUIRE_OK(ddl_split(world(), 0, rank(), &part));
    constexpr std::size_t count = 100'000;
    void* memory = nullptr;
    REQUIRE_OK(ddl_allocate(part, count * sizeof(float), &memory));
    auto* const values = static_cast<float*>(memory);
    BOOST_TEST(std::all_of(values, values + count, [](float each) { return each == 0; }));
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(brought(rank(), i));
    REQUIRE_OK(ddl_run_allreduce(part, values, values, count, DDL_FLOAT, DDL_SUM));
    for (std::size_t i = 0; i < count; ++i) BOOST_TEST_REQUIRE(values[i] == static_cast<float>(summed(i)));
    REQUIRE_OK(ddl_close(part));
    values[0] = 1;
    REQUIRE_OK(ddl_deallocate(memory));
}

BOOST_AUTO_TEST_CASE(split_orders_ranks_by_key) {
    ddl_communicator* part = nullptr;
    REQUIRE_OK(ddl_split(world(), rank() % 2, -rank(), &part));
    const int members = (size() + 1 - rank() % 2) / 2;
    BOOST_TEST(ddl_get_size(part) == members);
    BOOST_TEST(ddl_get_rank(part) == members - 1 - rank() / 2);
    std::int32_t one = 1;
    REQUIRE_OK(ddl_run_allreduce(part, &one, &one, 1, DDL_INT32, DDL_SUM));
    BOOST_TEST(one == members);
    REQUIRE_OK(ddl_close(part));
}

BOOST_AUTO_TEST_CASE(a_plan_is_explained) {
    float value = 1;
    ddl_plan* plan = nullptr;
    REQUIRE_OK(ddl_plan_allreduce(world(), &value, &value, 1, DDL_FLOAT, DDL_SUM, &plan));
    char line[400];
    REQUIRE_OK(ddl_explain_plan(plan, line, sizeof line));
    BOOST_TEST(std::strstr(line, "allreduce of 1 float32 (4 bytes) by sum") == line, line);
    REQUIRE_OK(ddl_explain_plan(plan, line, 10));
    BOOST_TEST(std::string{line} == "allreduce");
    REQUIRE_OK(ddl_free_plan(plan));
}

BOOST_AUTO_TEST_CASE(names_and_numbers_go_both_ways) {
    BOOST_TEST(ddl_find_element("float") == DDL_FLOAT);
    BOOST_TEST(ddl_find_element("ddl::half") == DDL_HALF);
    BOOST_TEST(ddl_find_element("std::int32_t") == DDL_INT32);
    BOOST_TEST(ddl_find_op("ddl::average") == DDL_AVERAGE);
    BOOST_TEST(ddl_find_op("nothing") == -1);
    for (ddl_element each = 0; each < DDL_ELEMENTS; ++each)
        BOOST_TEST(ddl_find_element(ddl_name_element(each)) == each);
    for (ddl_op each = 0; each < DDL_OPS; ++each) BOOST_TEST(ddl_find_op(ddl_name_op(each)) == each);
    BOOST_TEST(ddl_size_element(DDL_COMPLEX_DOUBLE) == 16U);
    BOOST_TEST(std::string{ddl_name_status(DDL_PEER_LOST)} == "DDL_PEER_LOST");
}

BOOST_AUTO_TEST_CASE(ranks_of_a_node_are_counted) {
    BOOST_TEST(ddl_get_local_size(world()) >= 1);
    BOOST_TEST(ddl_get_local_rank(world()) >= 0);
    BOOST_TEST(ddl_get_local_rank(world()) < ddl_get_local_size(world()));
}
