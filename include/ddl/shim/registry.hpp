// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/row.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace ddl::shim {

/// The rows of one transport, found by the numbers of a task without a search.
class table {
public:
    table(int schedules, int ops, int elements)
        : schedules_{schedules}, ops_{ops}, elements_{elements},
          rows_(static_cast<std::size_t>(collectives * schedules * (ops + 1) * elements), nullptr) {}

    /// nullptr if the library was built without it. `op` is -1 where data only moves.
    const row* find(collective what, int schedule, ddl_op op, ddl_element element) const noexcept {
        if (op < -1 || op >= ops_ || element < 0 || element >= elements_ || schedule < 0 || schedule >= schedules_)
            return nullptr;
        return rows_[place(what, schedule, op, element)];
    }
    void put(const row& one, int schedule, ddl_op op, ddl_element element) {
        rows_[place(one.what, schedule, op, element)] = &one;
    }

private:
    static constexpr int collectives = static_cast<int>(collective::allreduce_n) + 1;
    std::size_t place(collective what, int schedule, int op, int element) const noexcept {
        return static_cast<std::size_t>(
            ((static_cast<int>(what) * schedules_ + schedule) * (ops_ + 1) + op + 1) * elements_ + element);
    }

    int schedules_;
    int ops_;
    int elements_;
    std::vector<const row*> rows_;
};

/// All that one library was built with. Each generated unit adds its rows when the library is loaded; afterwards this is
/// only read.
class registry {
public:
    static registry& here() {
        static registry& ours = *new registry;  // stays: other threads may still call while the process ends
        return ours;
    }

    void add(std::span<const row> rows) {
        for (const row& one : rows) {
            rows_.push_back(&one);
            number(elements_, one.element, one.element_name, one.element_bytes);
            if (one.op_name != nullptr) number(ops_, one.op, one.op_name, 0);
            number(schedules_, -1, one.schedule_name, 0);
        }
    }

    table table_for(const char* transport) const {
        table result{static_cast<int>(schedules_.size()), static_cast<int>(ops_.size()),
                     static_cast<int>(elements_.size())};
        for (const row* one : rows_)
            if (std::string_view{one->transport} == transport)
                result.put(*one, schedule(one->schedule_name),
                           one->op_name == nullptr ? -1 : (one->op >= 0 ? one->op : number_of(ops_, one->op_name)),
                           one->element >= 0 ? one->element : number_of(elements_, one->element_name));
        return result;
    }

    /// -1 if there is none of that name.
    int element(std::string_view name) const noexcept { return number_of(elements_, name); }
    int op(std::string_view name) const noexcept { return number_of(ops_, name); }
    int schedule(std::string_view name) const noexcept { return number_of(schedules_, name); }
    const char* schedule_name(int number) const noexcept { return name_of(schedules_, number); }
    const char* element_name(int number) const noexcept { return name_of(elements_, number); }
    const char* op_name(int number) const noexcept { return name_of(ops_, number); }
    std::size_t element_bytes(int number) const noexcept {
        return name_of(elements_, number) == nullptr ? 0 : elements_[static_cast<std::size_t>(number)].bytes;
    }

private:
    struct entry {
        std::string name;
        std::size_t bytes;
    };

    registry() {
        for (int i = 0; i < DDL_ELEMENTS; ++i) elements_.push_back({element_names[i], element_sizes[i]});
        for (const char* const name : op_names) ops_.push_back({name, 0});
    }

    /// Gives a user's type, or a schedule, its number; a built-in type that goes by a name of its own keeps the built-in number.
    static void number(std::vector<entry>& entries, int built_in, const char* name, std::size_t bytes) {
        if (built_in < 0 && number_of(entries, name) < 0) entries.push_back({name, bytes});
    }
    static int number_of(const std::vector<entry>& entries, std::string_view name) noexcept {
        const auto found = std::find_if(entries.begin(), entries.end(),
                                        [&](const entry& one) { return plain_name(one.name) == plain_name(name); });
        return found == entries.end() ? -1 : static_cast<int>(found - entries.begin());
    }
    static const char* name_of(const std::vector<entry>& entries, int number) noexcept {
        return number < 0 || number >= static_cast<int>(entries.size())
                   ? nullptr
                   : entries[static_cast<std::size_t>(number)].name.c_str();
    }

    std::vector<const row*> rows_;
    std::vector<entry> elements_;
    std::vector<entry> ops_;
    std::vector<entry> schedules_{{"tuned", 0}};
};

/// At the end of each generated unit: `const registration here{rows};`
struct registration {
    explicit registration(std::span<const row> rows) { registry::here().add(rows); }
};

}  // namespace ddl::shim
