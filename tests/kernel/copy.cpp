// SPDX-License-Identifier: Apache-2.0
#include <ddl/kernel/copy.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace data = boost::unit_test::data;
using ddl::kernel::copy;

namespace {

struct place {
    std::int16_t row, column;
    place(std::int16_t r, std::int16_t c) : row{r}, column{c} {}
    friend bool operator==(const place&, const place&) = default;
};

const std::size_t counts[] = {0, 1, 63, 64, 65, 1000};

}  // namespace

BOOST_DATA_TEST_CASE(as_many_elements_as_asked_and_no_more, data::make(counts), count) {
    std::vector<int> from(count + 1), to(count + 1, -1), expected(count + 1, -1);
    std::iota(from.begin(), from.end(), 0);
    std::iota(expected.begin(), expected.end() - 1, 0);
    copy(from.data(), to.data(), count);
    BOOST_TEST(to == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_count_is_elements_not_bytes) {
    const std::vector<place> from(65, place{3, 4});
    std::vector<place> to(65, place{0, 0});
    copy(from.data(), to.data(), 64);
    BOOST_TEST((to[63] == place{3, 4}), "and they need no default constructor");
    BOOST_TEST((to[64] == place{0, 0}));
}

BOOST_AUTO_TEST_CASE(onto_itself_it_changes_nothing) {
    std::vector<double> values(100, 1.25);
    copy(static_cast<const double*>(values.data()), values.data(), values.size());
    BOOST_TEST(values == std::vector<double>(100, 1.25), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(null_pointers_are_fine_for_none) {
    int value = 7;
    copy(static_cast<const int*>(nullptr), static_cast<int*>(nullptr), 0);
    copy(static_cast<const int*>(nullptr), &value, 0);
    copy(static_cast<const int*>(&value), static_cast<int*>(nullptr), 0);
    BOOST_TEST(value == 7);
}

BOOST_DATA_TEST_CASE(a_few_bytes_and_no_more, data::xrange(1, 65), length) {
    const auto bytes = static_cast<std::size_t>(length);
    std::vector<unsigned char> from(bytes), to(bytes + 2, 0xff),
        expected(bytes + 2, 0xff);  // so that reading on is seen
    std::iota(from.begin(), from.end(), static_cast<unsigned char>(1));
    std::copy(from.begin(), from.end(), expected.begin() + 1);
    ddl::kernel::copy_few(from.data(), to.data() + 1, bytes);
    BOOST_TEST(to == expected, boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(bytes_may_lie_anywhere, data::xrange(0, 17), offset) {
    const auto skipped = static_cast<std::size_t>(offset);
    std::vector<std::byte> from(200, std::byte{1}), to(200, std::byte{2});
    copy(static_cast<const std::byte*>(from.data() + skipped), to.data() + 17 - skipped, 100);
    for (std::size_t i = 0; i < to.size(); ++i) {
        const bool copied = i >= 17 - skipped && i < 117 - skipped;
        BOOST_TEST((to[i] == std::byte{copied ? std::uint8_t{1} : std::uint8_t{2}}), "byte " << i);
    }
}

BOOST_DATA_TEST_CASE(bytes_may_lie_anywhere_however_they_are_stored, data::xrange(0, 65, 7), offset) {
    using ddl::kernel::stores;
    const auto skipped = static_cast<std::size_t>(offset);
    for (const stores how : {stores::cached, stores::held, stores::shared, stores::streamed})
        for (std::size_t length = 0; length < 1000; length += 1 + length / 9) {
            std::vector<std::byte> from(1200), to(1200, std::byte{255});
            for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i % 251);
            copy(static_cast<const std::byte*>(from.data() + 3), to.data() + skipped, length, how);
            ddl::kernel::settle(how);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < to.size(); ++i)
                wrong += to[i] != (skipped <= i && i < skipped + length ? from[i - skipped + 3] : std::byte{255});
            BOOST_TEST(wrong == 0u, length << " bytes, stored " << static_cast<int>(how));
        }
}

BOOST_AUTO_TEST_CASE(long_copies_end_where_they_should) {
    using ddl::kernel::stores;
    for (const stores how : {stores::cached, stores::shared, stores::streamed})
        for (const int bytes : {16383, 16384, 16385, 65'535, 65'536, 100'001, (1 << 20) - 1, (1 << 20) + 70})
            for (const int offset : {0, 1, 60, 80}) {
                const auto length = static_cast<std::size_t>(bytes), skipped = static_cast<std::size_t>(offset);
                std::vector<std::byte> from(length + 2), to(length + 100, std::byte{255});
                for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i % 251);
                copy(static_cast<const std::byte*>(from.data() + 1), to.data() + skipped, length, how);
                ddl::kernel::settle(how);
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < to.size(); ++i)
                    wrong += to[i] != (skipped <= i && i < skipped + length ? from[i - skipped + 1] : std::byte{255});
                BOOST_TEST(wrong == 0u, length << " bytes, stored " << static_cast<int>(how));
            }
}

BOOST_AUTO_TEST_CASE(a_target_just_above_the_source_modulo_a_page_is_copied_like_any_other) {
    std::vector<std::byte> from(12288), to(20480);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 % 253);
    const auto base = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 4096; };
    const std::size_t level = (base(from.data()) + 4096 - base(to.data())) % 4096;
    for (const int ahead : {0, 1, 63, 64, 65, 255, 256, 1000, 2047, 2048, 2049, 4032, 4095})
        for (const int bytes : {4095, 4096, 4097, 4351, 4352, 12000}) {
            std::fill(to.begin(), to.end(), std::byte{255});
            const auto length = static_cast<std::size_t>(bytes);
            std::byte* const target = to.data() + level + static_cast<std::size_t>(ahead);
            copy(static_cast<const std::byte*>(from.data()), target, length);
            const std::size_t first = level + static_cast<std::size_t>(ahead);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < to.size(); ++i)
                wrong += to[i] != (first <= i && i < first + length ? from[i - first] : std::byte{255});
            BOOST_TEST(wrong == 0u, length << " bytes, " << ahead << " ahead");
        }
}
