// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace ddl::shim {

/// Part of a tensor, or all of it: what one exchange takes of it.
struct piece {
    void* data;
    std::size_t count;
    ddl_element element;
};

inline std::size_t bytes_of(const piece& one) noexcept { return one.count * ddl_size_element(one.element); }

/// What ranks compare of a call: a hash of numbers.
class form {
public:
    void add(std::uint64_t number) noexcept { hash_ = (hash_ ^ number) * 1'099'511'628'211U; }
    explicit form(const std::vector<piece>& pieces) noexcept {
        for (const piece& one : pieces) add(one.count * 64 + static_cast<std::uint64_t>(one.element));
    }
    form(std::initializer_list<int> numbers) noexcept {
        for (const int one : numbers) add(static_cast<std::uint64_t>(one));
    }
    std::int64_t number() const noexcept { return static_cast<std::int64_t>(hash_ >> 1); }

private:
    std::uint64_t hash_ = 14'695'981'039'346'656'037U;
};

/// Sets `other` to the lowest rank that calls with another form, -1 if all call alike. All ranks of `ranks` call it.
inline ddl_status compare(ddl_communicator* ranks, const form& ours, int& other) {
    const std::int64_t mine = ours.number();
    std::int64_t seen[] = {mine, -mine};
    other = -1;
    const ddl_status status = ddl_run_allreduce(ranks, seen, seen, 2, DDL_INT64, DDL_MAXIMUM);
    if (status != DDL_OK || seen[0] == -seen[1]) return status;
    std::vector<std::int64_t> all(static_cast<std::size_t>(ddl_get_size(ranks)));
    if (const ddl_status failed = ddl_run_all_gather(ranks, &mine, all.data(), all.size(), DDL_INT64)) return failed;
    const auto found = std::find_if(all.begin(), all.end(), [&](std::int64_t each) { return each != mine; });
    other = static_cast<int>(found - all.begin());
    return DDL_OK;
}

/// This rank cannot make the call that the others make. They get an error that names it; waits until they have come.
inline void refuse(ddl_communicator* ranks) noexcept {
    ddl_run_allreduce(ranks, nullptr, nullptr, 1, DDL_INT64, DDL_MAXIMUM);  // a mistake, of which peers hear
}

}  // namespace ddl::shim
