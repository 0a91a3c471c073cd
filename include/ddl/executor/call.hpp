// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/element.hpp>
#include <ddl/error.hpp>
#include <ddl/op/op.hpp>
#include <ddl/transport/concepts.hpp>

#include <cstdint>
#include <cstring>

namespace ddl {

enum class collective : std::uint32_t {
    allreduce,
    reduce_scatter,
    all_gather,
    broadcast,
    reduce,
    gather,
    scatter,
    all_to_all,
    barrier,
    allreduce_n,
    refused,               // a rank whose own arguments make no sense tells the others
    staged,                // a rank that cannot hand its buffers over whole asks the others for chunks
    timed,                 // ranks that time their calls compare how, and times
    split = exchange_mark  // no collective of ours, but seen where one is looked for
};

inline constexpr const char* names_of_collectives[] = {
    "allreduce",  "reduce_scatter", "all_gather",  "broadcast", "reduce", "gather",         "scatter",
    "all_to_all", "barrier",        "allreduce_n", "refused",   "staged", "timed allreduce"};

constexpr const char* to_string(collective what) noexcept {
    return what == collective::split ? "split" : names_of_collectives[static_cast<int>(what)];
}

/// Whether ranks compare what they call before any data is combined. Part of a plan's type.
struct checked {
    static constexpr bool compares = true;
};
/// For programs that are known to agree. Ranks that do not agree then hang until the deadline, compute nonsense, or hear of it
/// where that costs nothing.
struct unchecked {
    static constexpr bool compares = false;
};

template <class Type>
concept checking_policy = requires { requires std::same_as<decltype(Type::compares), const bool>; };

/// What ranks compare of a call.
struct call_terms {
    std::uint64_t count = 0;  // elements of the whole vector
    collective what = collective::barrier;
    std::int32_t root = 0;
    std::uint32_t op = 0;  // type fingerprints; 0 for none
    std::uint32_t element = 0;
    std::uint32_t schedule = 0;
    std::uint32_t element_bytes = 0;
    std::uint32_t limits = 0;   // a fingerprint of those that the transport's executor goes by; 0 for none
    std::uint32_t extents = 0;  // a fingerprint of what a schedule is told at run time; 0 for none

    bool agrees(const call_terms& other) const noexcept {
        return count == other.count && what == other.what && root == other.root && op == other.op &&
               element == other.element && schedule == other.schedule && element_bytes == other.element_bytes &&
               limits == other.limits && extents == other.extents;
    }
};

/// What people call the types of a call; cut, if that is long.
struct call_names {
    char op[24] = {};
    char element[24] = {};
};
inline constexpr call_names nameless;

/// A call as its own rank knows it. All of it fits in registers: who copies words that have just been stored one by one
/// waits until the processor has written them, and with them all that it has stored before.
struct call : call_terms {
    const call_names* names = &nameless;
};

/// What a rank says of a call to the others. Plain bytes: it travels in slots and messages.
struct call_record : call_terms {
    call_names names;
    call_record() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): the same, for others
    [[gnu::always_inline]] call_record(const call& told) noexcept : call_terms{told}, names{*told.names} {}
};
static_assert(sizeof(call_record) == 88);

/// One word that calls which agree have in common, and others, but for a chance of 2^-64, have not.
[[gnu::always_inline]] constexpr std::uint64_t fingerprint(const call_terms& what) noexcept {
    const auto mixed = [](std::uint64_t word) {
        word *= 0x9e37'79b9'7f4a'7c15;
        return word ^ (word >> 32);
    };
    const auto pair = [](std::uint64_t upper, std::uint64_t lower) { return upper << 32 | lower; };
    const auto root = static_cast<std::uint32_t>(what.root);
    std::uint64_t word = mixed(pair(what.op, what.element));
    word = mixed(word ^ pair(what.schedule, what.element_bytes));
    word = mixed(word ^ pair(root, static_cast<std::uint32_t>(what.what)));
    word = mixed(word ^ pair(what.extents, what.limits));
    return mixed(word ^ what.count);
}

/// Stands for "no op" in collectives that only move data.
struct no_op {};
/// Stands for the element of a call whose ranges the compiler has refused, so that nothing else is said of it.
struct refused_element {};

template <class Op, class Element>
inline constexpr call_names names_of_types = [] {
    constexpr auto name = [](char(&to)[24], const char* from) {
        for (int i = 0; i < 23 && from[i] != '\0'; ++i) to[i] = from[i];
    };
    call_names result;
    name(result.element, element_name<Element>());
    if constexpr (!std::same_as<Op, no_op>) name(result.op, op_name<Op>());
    return result;
}();

/// Integers of one name are the same to a peer, however they are spelled.
template <class Element>
constexpr std::uint32_t element_fingerprint() noexcept {
    if constexpr (integer<Element>) return words_fingerprint(element_name<Element>());
    else return type_fingerprint<Element>();
}

/// What the types of a call say of it, put together by the compiler.
template <class Op, class Element, class Schedule>
inline constexpr call call_of_types = [] {
    call result;
    result.element = element_fingerprint<Element>();
    result.element_bytes = sizeof(Element);
    result.schedule = type_fingerprint<Schedule>();
    if constexpr (!std::same_as<Op, no_op>) result.op = type_fingerprint<Op>();
    result.names = &names_of_types<Op, Element>;
    return result;
}();

template <class Op, class Element, class Schedule>
[[gnu::always_inline]] constexpr call describe(collective what, std::size_t count, int root) noexcept {
    call result = call_of_types<Op, Element, Schedule>;
    result.count = count;
    result.what = what;
    result.root = root;
    if constexpr (requires { Schedule::fingerprint(); }) result.extents = Schedule::fingerprint();
    return result;
}

/// The error of a rank whose call is `ours` when rank `peer` calls `theirs`.
inline error mismatch(const call_record& ours, int rank, const call_record& theirs, int peer) noexcept {
    const auto make = [&](auto... words) { return error(errc::mismatch, to_string(ours.what), rank, 0, words...); };
    if (ours.what == collective::staged || theirs.what == collective::staged)
        return error(
            errc::staged, to_string(ours.what), rank, 0,
            "rank %d passes device memory through its host in chunks; make the call through ddl.h on every rank", peer);
    if (theirs.what == collective::refused)
        return make("rank %d has called with invalid arguments; see its own error", peer);
    if (ours.what != theirs.what)
        return make("rank %d calls %s, this rank %s; call the same collectives in the same order on every rank", peer,
                    to_string(theirs.what), to_string(ours.what));
    if (ours.element != theirs.element && ours.element_bytes == theirs.element_bytes &&
        std::strcmp(ours.names.element, theirs.names.element) == 0)
        return make("rank %d brings another %s of %u bytes; pass equal types on every rank, built by one compiler",
                    peer, ours.names.element, ours.element_bytes);
    if (ours.element != theirs.element || ours.element_bytes != theirs.element_bytes)
        return make(
            "rank %d brings elements of type %s (%u bytes), this rank %s (%u bytes); pass equal types on every rank",
            peer, theirs.names.element, theirs.element_bytes, ours.names.element, ours.element_bytes);
    if (ours.root != theirs.root && ours.what == collective::allreduce_n)
        return make("rank %d brings tensors of other sizes; pass tensors of equal sizes in equal order on every rank",
                    peer);
    if (ours.root != theirs.root && ours.what == collective::allreduce)  // these are chunks; it stands for the whole
        return make("rank %d brings another number of elements; pass equal counts on every rank", peer);
    if (ours.count != theirs.count)
        return make("rank %d brings %llu elements, this rank %llu; pass equal counts on every rank", peer,
                    static_cast<unsigned long long>(theirs.count), static_cast<unsigned long long>(ours.count));
    if (ours.op != theirs.op && std::strcmp(ours.names.op, theirs.names.op) == 0)
        return make("rank %d reduces with another op named %s; pass equal ops on every rank, built by one compiler",
                    peer, ours.names.op);
    if (ours.op != theirs.op)
        return make("rank %d reduces with %s, this rank with %s; pass equal ops on every rank", peer, theirs.names.op,
                    ours.names.op);
    if (ours.root != theirs.root)
        return make("rank %d names root %d, this rank %d; pass equal roots on every rank", peer, theirs.root,
                    ours.root);
    if (ours.limits != theirs.limits)
        return make(
            "rank %d was compiled with other limits; include the same tuning header in every program of the job", peer);
    if (ours.extents != theirs.extents)
        return make("rank %d was given other extents; pass the same -mode in the options of every rank", peer);
    return make("rank %d calls with another schedule; name the same schedule on every rank", peer);
}

/// Leaves word for the others if this rank leaves a collective half done, whatever the exception.
template <class Transport>
class half_done {
public:
    explicit half_done(Transport& ranks) noexcept : ranks_{ranks} {}
    half_done(const half_done&) = delete;
    half_done& operator=(const half_done&) = delete;
    ~half_done() {
        if (operation_ != nullptr) tell_in_general();
    }
    /// In a handler: says so at once, in the words of what is handled if that is an error of ours.
    [[gnu::cold, gnu::noinline]] void tell() noexcept {
        if (operation_ == nullptr) return;
        try {
            throw;
        } catch (const error& why) {
            ranks_.fail(breaks(why.code()) ? why.code() : errc::broken, why.what());
        } catch (...) { tell_in_general(); }
        end();
    }
    /// From here on others depend on this rank.
    void begin(const call_site& where) noexcept { operation_ = where.operation; }
    void end() noexcept { operation_ = nullptr; }
    /// The same while `work()` runs, whose errors the others hear in their words.
    template <class Work>
    void during(const call_site& where, const Work& work) {
        begin(where);
        try {
            work();
        } catch (...) {
            tell();
            throw;
        }
        end();
    }
    /// What `compare()` gives, which compares calls: of its failures all hear, or find the same, but for those of the system.
    template <class Compare>
    [[gnu::always_inline]] auto comparing(const Compare& compare) {
        try {
            return compare();
        } catch (const error& why) {
            if (why.code() == errc::system) tell();
            else end();
            throw;
        }
    }

    /// Whether a communicator is broken by it.
    static constexpr bool breaks(errc code) noexcept {
        return code != errc::mismatch && code != errc::invalid_argument && code != errc::staged;
    }

private:
    [[gnu::cold, gnu::noinline]] void tell_in_general() noexcept {
        text words;
        words.append("%s, rank %d: an exception ended the call half done", operation_, called(ranks_, ranks_.rank()));
        ranks_.fail(errc::broken, words.c_str());
    }

    Transport& ranks_;
    const char* operation_ = nullptr;
};

}  // namespace ddl
