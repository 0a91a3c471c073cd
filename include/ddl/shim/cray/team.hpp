// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>
#include <ddl/shim/ddl.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <utility>
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

/// The first failure of a call that consists of several exchanges, all of which this rank takes part in whatever became of those
/// before: its peers do.
struct first_failure {
    ddl_status status = DDL_OK;
    std::string words;

    void keep(ddl_status next) { keep(next, next == DDL_OK ? "" : ddl_last_error()); }
    void keep(ddl_status next, const char* its_words) {
        if (status != DDL_OK || next == DDL_OK) return;
        status = next;
        words = its_words;
    }
};

/// This rank cannot make the call that the others make. They get an error that names it; waits until they have come.
inline void refuse(ddl_communicator* ranks) noexcept {
    ddl_run_allreduce(ranks, nullptr, nullptr, 1, DDL_INT64, DDL_MAXIMUM);  // a mistake, of which peers hear
}

/// Replaces the pieces by those of `root`, packed into one vector of so many bytes.
inline void broadcast_packed(ddl_communicator* ranks, const std::vector<piece>& pieces, std::size_t bytes, int root,
                             first_failure& result) {
    const bool is_root = ddl_get_rank(ranks) == root;
    const std::unique_ptr<std::byte[]> buffer{new (std::nothrow) std::byte[bytes]};
    if (buffer == nullptr) {
        result.keep(DDL_OUT_OF_MEMORY, ("no memory for " + std::to_string(bytes) + " bytes").c_str());
        return refuse(ranks);
    }
    int copied = DDL_OK;
    const auto each_copied = [&](auto copy) {
        std::byte* at = buffer.get();
        for (const piece& one : pieces) {
            if (copied == DDL_OK && one.count != 0) copied = copy(at, one.data, bytes_of(one));
            at += bytes_of(one);
        }
        result.keep(copied);
    };
    if (is_root) each_copied(ddl_memcpy_device_to_host);  // from whatever memory it is
    if (copied != DDL_OK) return refuse(ranks);
    const ddl_status sent = ddl_run_broadcast(ranks, buffer.get(), bytes, DDL_UINT8, root);
    result.keep(sent);
    if (sent == DDL_OK && !is_root)
        each_copied(
            [](std::byte* from, void* to, std::size_t size) { return ddl_memcpy_host_to_device(to, from, size); });
}

/// Replaces the pieces by those of `root`: long ones where they lie, the others packed together, as `allreduce_n` does. All ranks
/// bring pieces of one form.
inline first_failure broadcast(ddl_communicator* ranks, const std::vector<piece>& pieces, int root) {
    constexpr std::size_t alone = std::size_t{1}
                                  << 20;  // bytes: to pack it would cost more than the call that it saves
    constexpr std::size_t together = std::size_t{4} << 20;
    std::vector<piece> packed;
    std::size_t bytes = 0;
    first_failure result;
    for (const piece& one : pieces) {
        if (bytes_of(one) >= alone) {
            result.keep(ddl_run_broadcast(ranks, one.data, one.count, one.element, root));
            continue;
        }
        packed.push_back(one);
        bytes += bytes_of(one);
        if (bytes < together) continue;
        broadcast_packed(ranks, packed, std::exchange(bytes, 0), root, result);
        packed.clear();
    }
    if (!packed.empty() || pieces.empty()) broadcast_packed(ranks, packed, bytes, root, result);
    return result;
}

/// A team of threads of the DL Plugin: each is the thread of a communicator of its own, so teams do not meet.
///
/// The tensors of a call are cut into one share of about equal bytes for each thread, and each share is one exchange for each
/// type of element in it.
class team {
public:
    /// Shares below this are not worth a second thread.
    static constexpr std::size_t least_share = std::size_t{64} << 10;

    explicit team(bool in_double) noexcept : in_double_{in_double} {}
    team(const team&) = delete;
    team& operator=(const team&) = delete;
    ~team() {
        if (ended()) ddl_interrupt(control());  // peers may never come to hear of a refusal
        for (ddl_communicator* const each : threads_) ddl_close(each);
    }

    /// All ranks call it, in one order of teams.
    ddl_status add_thread(ddl_communicator* world) {
        ddl_communicator* part = nullptr;
        const ddl_status status = ddl_split(world, 0, ddl_get_rank(world), &part);
        if (status == DDL_OK) threads_.push_back(part);
        return status;
    }

    /// Where ranks compare their lists before each call, for threads of one call that wait for other peers than others would wait
    /// in vain.
    ddl_communicator* control() const noexcept { return threads_[0]; }

    /// This rank cannot make the call of this team that the others make: see the function of that name.
    void refuse() noexcept {
        if (!ended()) return shim::refuse(control());
        ddl_request* none = nullptr;
        ddl_start_allreduce(control(), nullptr, nullptr, 1, DDL_INT64, DDL_MAXIMUM, &none);
    }

    /// Calls of this rank may be out of step with those of the others. So this and all further ones are refused, and no refusal
    /// waits long: where MPI allows no thread of ours, the caller carries it out.
    void end() noexcept {
        ended_ = true;
        ddl_set_timeout(control(), 1);  // second
        refuse();
    }
    bool ended() const noexcept { return ended_; }

    /// Averages the pieces in place; returns when they are done.
    first_failure average(const std::vector<piece>& pieces) {
        std::vector<ddl_request*> started;
        first_failure result;
        const auto shares = cut(pieces);
        for (std::size_t thread = 0; thread < shares.size(); ++thread)
            start(threads_[thread], shares[thread], started, result);
        for (ddl_request* const each : started) {  // all of them: their buffers are the caller's again afterwards
            result.keep(ddl_wait_request(each));
            ddl_free_request(each);
        }
        return result;
    }

private:
    std::vector<std::vector<piece>> cut(const std::vector<piece>& pieces) const {
        std::size_t total = 0;
        for (const piece& one : pieces) total += bytes_of(one);
        const std::size_t wanted = std::clamp<std::size_t>(total / least_share, 1, threads_.size());
        const std::size_t share = (total + wanted - 1) / wanted;
        std::vector<std::vector<piece>> shares(1);
        std::size_t room = share;
        for (piece rest : pieces) {
            const std::size_t each = ddl_size_element(rest.element);
            while (rest.count != 0) {
                if (room < each && shares.size() < wanted) {
                    shares.emplace_back();
                    room = share;
                }
                const std::size_t fits = shares.size() == wanted ? rest.count : std::min(rest.count, room / each);
                shares.back().push_back({rest.data, fits, rest.element});
                rest.data = static_cast<std::byte*>(rest.data) + fits * each;
                rest.count -= fits;
                room -= std::min(room, fits * each);
            }
        }
        return shares;
    }

    /// One exchange for each type of element in the share.
    void start(ddl_communicator* thread, const std::vector<piece>& share, std::vector<ddl_request*>& started,
               first_failure& result) const {
        std::vector<ddl_element> elements;
        for (const piece& one : share)
            if (std::find(elements.begin(), elements.end(), one.element) == elements.end())
                elements.push_back(one.element);
        for (const ddl_element element : elements) {
            std::vector<void*> data;
            std::vector<std::size_t> counts;
            for (const piece& one : share)
                if (one.element == element) {
                    data.push_back(one.data);
                    counts.push_back(one.count);
                }
            const bool widens = element == DDL_HALF || element == DDL_BFLOAT16 || element == DDL_FLOAT;
            const ddl_op op = widens && in_double_ ? DDL_AVERAGE_IN_DOUBLE : DDL_AVERAGE;
            ddl_request* request = nullptr;
            result.keep(ddl_start_allreduce_n(thread, data.data(), counts.data(), data.size(), element, op, &request));
            if (request != nullptr) started.push_back(request);
        }
    }

    bool in_double_;
    std::atomic<bool> ended_{false};
    std::vector<ddl_communicator*> threads_;
};

}  // namespace ddl::shim
