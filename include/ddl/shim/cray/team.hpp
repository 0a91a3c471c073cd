// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/cray/first_failure.hpp>
#include <ddl/shim/cray/form.hpp>
#include <ddl/shim/process_end.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

namespace ddl::shim {

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

    /// The process ends, so: see the function of that name.
    void tell_of_end(int status) noexcept {
        for (ddl_communicator* const each : threads_) shim::tell_of_end(each, status);
    }

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
