// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddl::shim {

/// Part of a tensor, or all of it: what one exchange takes of it.
struct piece {
    void* data;
    std::size_t count;
    ddl_element element;
};

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
        for (ddl_communicator* const each : threads_) ddl_close(each);
    }

    /// All ranks call it, in one order of teams.
    ddl_status add_thread(ddl_communicator* world) {
        ddl_communicator* part = nullptr;
        const ddl_status status = ddl_split(world, 0, ddl_get_rank(world), &part);
        if (status == DDL_OK) threads_.push_back(part);
        return status;
    }

    /// Whether all ranks call with lists of one form, and none of them with one that makes no sense. Asked first, for threads of
    /// one call that wait for other peers than others would wait in vain.
    ddl_status agree(const std::vector<piece>& pieces, bool sensible, bool& agreed) {
        std::uint64_t hash = 14'695'981'039'346'656'037U;
        for (const piece& one : pieces)
            hash = (hash ^ (one.count * 64 + static_cast<std::uint64_t>(one.element))) * 1'099'511'628'211U;
        const auto form = static_cast<std::int64_t>(hash >> 1);
        std::int64_t seen[] = {form, -form, sensible ? 0 : 1};
        const ddl_status status = ddl_run_allreduce(threads_[0], seen, seen, 3, DDL_INT64, DDL_MAXIMUM);
        agreed = status == DDL_OK && seen[0] == -seen[1] && seen[2] == 0;
        return status;
    }

    /// Averages the pieces in place; returns when they are done.
    ddl_status average(const std::vector<piece>& pieces) {
        std::vector<ddl_request*> started;
        ddl_status result = DDL_OK;
        const auto shares = cut(pieces);
        for (std::size_t thread = 0; thread < shares.size() && result == DDL_OK; ++thread)
            result = start(threads_[thread], shares[thread], started);
        for (ddl_request* const each : started) {  // all of them: their buffers are the caller's again afterwards
            const ddl_status status = ddl_wait_request(each);
            if (result == DDL_OK) result = status;
            ddl_free_request(each);
        }
        return result;
    }

private:
    static std::size_t bytes_of(const piece& one) noexcept { return one.count * ddl_size_element(one.element); }

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
    ddl_status start(ddl_communicator* thread, const std::vector<piece>& share,
                     std::vector<ddl_request*>& started) const {
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
            const ddl_op op = element == DDL_FLOAT && in_double_ ? DDL_AVERAGE_IN_DOUBLE : DDL_AVERAGE;
            ddl_request* request = nullptr;
            const ddl_status status =
                ddl_start_allreduce_n(thread, data.data(), counts.data(), data.size(), element, op, &request);
            if (status != DDL_OK) return status;
            started.push_back(request);
        }
        return DDL_OK;
    }

    bool in_double_;
    std::vector<ddl_communicator*> threads_;
};

}  // namespace ddl::shim
