// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/launcher.hpp>
#include <ddl/transport/mpi.hpp>
#include <ddl/transport/shared_memory.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>

namespace ddl {

/// How many ranks at most a `cluster` takes for one node, whatever the machine: hierarchies of several nodes can then be
/// tried on one. 0: as many as share memory.
struct ranks_per_node {
    int count = 0;
    constexpr explicit ranks_per_node(int most) noexcept : count{most} {}

    /// `DDL_RANKS_PER_NODE`, 0 if it is unset.
    static ranks_per_node from_environment() {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): only a thread that sets variables could disturb it
        const char* const words = std::getenv("DDL_RANKS_PER_NODE");
        if (words == nullptr || *words == '\0') return ranks_per_node{0};
        char* end = nullptr;
        const long value = std::strtol(words, &end, 10);
        if (*end != '\0' || value < 1 || value > INT_MAX)
            throw error(errc::invalid_argument, "cluster", -1, -1,
                        "DDL_RANKS_PER_NODE is \"%.40s\"; it takes a number of ranks, 1 or more", words);
        return ranks_per_node{static_cast<int>(value)};
    }
};

/// What most programs use: shared memory between the ranks of a node, MPI between nodes.
///
/// `ddl::cluster world{communicator}` finds the nodes with `MPI_Comm_split_type`; all ranks of `communicator` make one. Ranks
/// are those of `communicator`. On one node nothing goes through MPI once the cluster is made. Nonblocking collectives go
/// on in the background if MPI was started with MPI_THREAD_MULTIPLE, else they are carried out when they are called.
class cluster {
public:
    static constexpr const char* name = "cluster";

    /// MPI_COMM_WORLD; starts MPI if nobody did.
    cluster() : cluster{mpi{}, ranks_per_node::from_environment} {}
    explicit cluster(MPI_Comm ranks) : cluster{mpi{ranks}, ranks_per_node::from_environment} {}
    cluster(MPI_Comm ranks, timeout limit) : cluster{mpi{ranks, limit}, ranks_per_node::from_environment} {}
    cluster(MPI_Comm ranks, ranks_per_node most) : cluster{mpi{ranks}, [=] { return most; }} {}
    cluster(MPI_Comm ranks, ranks_per_node most, timeout limit) : cluster{mpi{ranks, limit}, [=] { return most; }} {}
    cluster(cluster&& from) noexcept
        : wire_{(settle(from.queue_), std::move(from.wire_))}, node_number_{from.node_number_},
          firsts_{std::move(from.firsts_)}, reordered_{std::move(from.reordered_)}, node_{std::move(from.node_)},
          queue_{std::move(from.queue_)} {}

    int rank() const noexcept { return wire_.rank(); }
    int size() const noexcept { return wire_.size(); }

    /// The ranks of this rank's node, in the order of their ranks here, by which errors name who is waited for in vain.
    shared_memory& node() noexcept { return *node_; }
    /// All ranks.
    mpi& wire() noexcept { return wire_; }
    /// All ranks, numbered node by node; the same as `wire` where nodes hold consecutive ranks, which `ordered` tells.
    mpi& ordered_wire() noexcept { return reordered_ ? *reordered_ : wire_; }
    bool ordered() const noexcept { return !reordered_; }
    int nodes() const noexcept { return static_cast<int>(firsts_.size()) - 1; }
    /// The first rank of each node in `ordered_wire`, and the number of ranks behind the last.
    const int* grouping() const noexcept { return firsts_.data(); }

    void set_timeout(timeout limit) noexcept {
        wire_.set_timeout(limit);
        node_->set_timeout(limit);
        if (reordered_) reordered_->set_timeout(limit);
    }
    timeout limit() const noexcept { return wire_.limit(); }

    void begin(const call_site& where) { queue_in(queue_, where, rank()).drain(); }
    call_queue& queue() { return queue_in(queue_, {name}, rank()); }
    std::byte* scratch(std::size_t bytes, scratch_for use = scratch_for::arrivals) {
        return node_->scratch(bytes, use);
    }

    /// Tells all ranks that this one leaves a collective half done.
    void fail(errc code, const char* words) noexcept {
        node_->fail(code, words);
        wire_.fail(code, words);
        if (reordered_) reordered_->fail(code, words);
    }

    /// A communicator of the ranks that pass the same `color`, ordered by `key`, then by rank. All ranks call it; blocks.
    /// Ranks of one node stay on one node.
    cluster split(int color, int key) {
        const call_site where{"split"};
        begin(where);
        try {
            node_->listen(where);
        } catch (const error& known) {  // calls of one node break the node alone
            wire_.fail(errc::broken, known.what());
            throw;
        }
        return {node_number_, wire_.split(color, key)};
    }

    /// Memory that the ranks of the node can map.
    std::byte* allocate(std::size_t bytes) { return node_->allocate(bytes); }
    void deallocate(std::byte* data, std::size_t bytes) noexcept { node_->deallocate(data, bytes); }
    memory_source allocator() const { return node_->allocator(); }

private:
    struct group {
        MPI_Comm ranks = MPI_COMM_NULL;
        group() = default;
        group(const group&) = delete;
        group& operator=(const group&) = delete;
        ~group() {
            if (ranks != MPI_COMM_NULL) MPI_Comm_free(&ranks);
        }
    };

    template <class Most>
    cluster(mpi wire, const Most& most)
        : cluster{found_node(wire, agreed(wire, most)), std::move(wire)} {}  // braces: in this order

    /// `node`: equal on the ranks of a node, unlike on others.
    cluster(int node, mpi wire)
        : wire_{std::move(wire)},
          queue_{std::make_unique<call_queue>(mpi_runtime::any_thread(), wire_.ranks_of_host())} {
        group neighbours;
        check(MPI_Comm_split(wire_.communicator(), node, rank(), &neighbours.ranks), "MPI_Comm_split");
        int place = 0;
        int members = 0;
        check(MPI_Comm_rank(neighbours.ranks, &place), "MPI_Comm_rank");
        check(MPI_Comm_size(neighbours.ranks, &members), "MPI_Comm_size");
        const std::vector<int> ranks_of_node = number_nodes(node, place);
        const call_site here{name};
        if (const auto failure = failure_of(here, rank(), [&] { meet_neighbours(neighbours.ranks, place, members); })) {
            wire_.fail(failure->code(), failure->what());
            throw *failure;
        }
        node_->call_ranks(ranks_of_node);
        wire_.meet(true, here);  // what befell one node, the others hear here
    }

    void check(int code, const char* call) const { mpi_runtime::check(code, call, name, wire_.rank()); }

    /// What `most()` says, if that makes sense on all ranks: who had thrown alone would leave the others in MPI, which knows no deadline.
    template <class Most>
    static int agreed(mpi& wire, const Most& most) {
        const mpi_group all{wire.communicator(), wire.rank(), wire.size(), mpi::meeting_tag, name};
        return all.all_or_none([&] {
            const int count = most().count;
            if (count < 0)
                throw error(errc::invalid_argument, name, wire.rank(), -1,
                            "ranks_per_node is %d; pass 1 or more, or 0 for all", count);
            return count;
        });
    }

    /// A number for this rank's node: the lowest rank on it, or in its part of it if a node is to have fewer ranks.
    static int found_node(mpi& wire, int most) {
        const auto check = [&](int code, const char* call) { mpi_runtime::check(code, call, name, wire.rank()); };
        group host;
        check(MPI_Comm_split_type(wire.communicator(), MPI_COMM_TYPE_SHARED, wire.rank(), MPI_INFO_NULL, &host.ranks),
              "MPI_Comm_split_type");
        int place = 0;
        int members = 0;
        check(MPI_Comm_rank(host.ranks, &place), "MPI_Comm_rank");
        check(MPI_Comm_size(host.ranks, &members), "MPI_Comm_size");
        std::vector<int> neighbours(static_cast<std::size_t>(members));
        const int own = wire.rank();
        check(MPI_Allgather(&own, 1, MPI_INT, neighbours.data(), 1, MPI_INT, host.ranks), "MPI_Allgather");
        const int part = most == 0 ? 0 : place / most * most;
        return neighbours[static_cast<std::size_t>(part)];
    }

    /// Numbers nodes by their lowest rank, and ranks node by node. The ranks of this one's node.
    std::vector<int> number_nodes(int node, int place) {
        node_number_ = node;
        std::vector<int> node_of(static_cast<std::size_t>(size()));
        check(MPI_Allgather(&node, 1, MPI_INT, node_of.data(), 1, MPI_INT, wire_.communicator()), "MPI_Allgather");
        std::vector<int> seen;  // numbers of nodes, in the order of their lowest ranks
        std::vector<int> members;
        for (const int each : node_of) {
            std::size_t index = 0;
            while (index < seen.size() && seen[index] != each) ++index;
            if (index == seen.size()) {
                seen.push_back(each);
                members.push_back(0);
            }
            ++members[index];
        }
        firsts_.assign(1, 0);
        for (const int count : members) firsts_.push_back(firsts_.back() + count);
        std::vector<int> node_by_node(node_of.size());
        std::vector<int> next{firsts_};
        for (int r = 0; r < size(); ++r)
            node_by_node[static_cast<std::size_t>(next[index_of(seen, node_of[static_cast<std::size_t>(r)])]++)] = r;
        const std::size_t own = index_of(seen, node);
        if (!std::is_sorted(node_by_node.begin(), node_by_node.end())) {
            reordered_.emplace(wire_.split(0, firsts_[own] + place));
            reordered_->call_ranks(node_by_node);
        }
        return {node_by_node.begin() + firsts_[own], node_by_node.begin() + firsts_[own + 1]};
    }
    static std::size_t index_of(const std::vector<int>& seen, int node) noexcept {
        std::size_t index = 0;
        while (seen[index] != node) ++index;
        return index;
    }

    /// Makes the node's shared memory, under a name that its first rank makes up.
    void meet_neighbours(MPI_Comm neighbours, int place, int members) {
        char job[64] = {};
        if (place == 0) {
            static std::atomic<unsigned> made{0};
            const auto time = std::chrono::steady_clock::now().time_since_epoch().count();
            std::snprintf(job, sizeof job, "cluster-%ld-%u-%llx", static_cast<long>(::getpid()), made.fetch_add(1),
                          static_cast<unsigned long long>(time));
        }
        check(MPI_Bcast(job, sizeof job, MPI_CHAR, 0, neighbours), "MPI_Bcast");
        node_.emplace(job, place, members, wire_.limit());
    }

    mpi wire_;
    int node_number_ = 0;
    std::vector<int> firsts_;
    std::optional<mpi> reordered_;
    std::optional<shared_memory> node_;
    std::unique_ptr<call_queue> queue_;  // last: its calls use the rest
};

static_assert(clustered_transport<cluster>);

}  // namespace ddl
