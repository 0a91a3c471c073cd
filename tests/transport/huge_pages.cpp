// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/huge_pages.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>

BOOST_AUTO_TEST_CASE(advice_changes_nothing_that_a_program_sees) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{9'000'001}})
        for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, std::size_t{4095}}) {
            const auto memory = std::make_unique<unsigned char[]>(bytes + offset);
            unsigned char* const data = memory.get() + offset;
            for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 7);
            ddl::advise_huge_pages(data, bytes);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < bytes; ++i) wrong += data[i] != static_cast<unsigned char>(i * 7);
            BOOST_TEST(wrong == 0U);
        }
}

BOOST_AUTO_TEST_CASE(what_is_no_memory_is_no_error) { ddl::advise_huge_pages(nullptr, std::size_t{1} << 23); }
