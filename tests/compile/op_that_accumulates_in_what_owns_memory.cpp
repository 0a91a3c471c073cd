// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this op accumulates in what is no element; name an accumulator that is trivially copyable
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

struct numbers {
    numbers(float first = 0) : all{first} {}
    operator float() const { return all.front(); }
    std::vector<float> all;
};
struct sum_of_numbers {
    static constexpr bool commutative = true;
    template <class Element>
#ifdef DDL_WRONG
    using accumulator = numbers;
#else
    using accumulator = double;
#endif
    template <class Value>
    Value operator()(const Value& left, const Value& right) const {
        return static_cast<float>(left) + static_cast<float>(right);
    }
};
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce(team, data, sum_of_numbers{}); }
