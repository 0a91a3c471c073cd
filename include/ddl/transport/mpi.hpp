// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/call_queue.hpp>
#include <ddl/transport/concepts.hpp>
#include <ddl/transport/fault_record.hpp>
#include <ddl/transport/mpi_placement.hpp>
#include <ddl/transport/mpi_runtime.hpp>
#include <ddl/transport/patience.hpp>
#include <ddl/transport/scratch.hpp>

#include <mpi.h>  // first by mpi_runtime.hpp, which keeps the C++ bindings out

#include <atomic>
#include <climits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace ddl {

/// Ranks that are processes of an MPI job and send each other messages.
///
/// `ddl::mpi wire{communicator}` works on duplicates of its own, so that its messages meet no other's; all ranks of
/// `communicator` make one, and wait for each other until the timeout. `ddl::mpi wire;` stands for MPI_COMM_WORLD, and
/// starts MPI if nobody did. MPI must allow calls from the thread that calls; nonblocking collectives go on in the
/// background if it was started with MPI_THREAD_MULTIPLE. After a `fork` the child must not use it, and may destroy it.
class mpi {
public:
    static constexpr const char* name = "mpi";

    static constexpr const segmenting& host_segments = mpi_placement::host_segments;
    static constexpr const segmenting& whole_segments = mpi_placement::whole_segments;

    class ticket {
    public:
        ticket() = default;
        // one by one: a wide load of both would wait until what has just been stored is written
        ticket(const ticket& from) noexcept : request_{from.request_}, what_{from.what_}, mark_{from.mark_} {}
        ticket& operator=(const ticket& from) noexcept {
            request_ = from.request_;
            what_ = from.what_;
            mark_ = from.mark_;
            return *this;
        }

    private:
        friend class mpi;
        enum message : unsigned char { sent, received, received_marked };
        MPI_Request request_ = MPI_REQUEST_NULL;
        message what_ = sent;
        std::uint32_t mark_ = 0;
    };

    mpi() : mpi{world()} {}
    explicit mpi(MPI_Comm ranks) : mpi{ranks, limit_to_meet()} { limit_ = all().all_or_none(timeout_from_environment); }
    mpi(MPI_Comm ranks, timeout limit) : mpi{owned{duplicate_of(ranks, limit)}, limit} {}

    mpi(mpi&& from) noexcept
        : ranks_{(settle(from.queue_), std::exchange(from.ranks_, MPI_COMM_NULL))},
          marked_{std::exchange(from.marked_, MPI_COMM_NULL)}, rank_{from.rank_}, size_{from.size_},
          numbers_{std::move(from.numbers_)}, id_{from.id_}, placement_{std::move(from.placement_)},
          limit_{from.limit()}, mpi_ended_{from.mpi_ended_}, operation_{from.operation_}, calls_{from.calls_},
          fault_{from.fault_}, told_{from.told_.load()}, scratch_{std::move(from.scratch_)},
          queue_{std::move(from.queue_)} {}

    ~mpi() {
        if (queue_) queue_->finish();  // its calls still use the rest
        if (ranks_ == MPI_COMM_NULL || (queue_ && queue_->is_of_parent()) || !mpi_runtime::is_up()) return;
        mpi_runtime::sweep();
        bool whole = true;
        try {
            hear();
        } catch (const error&) { whole = false; }
        if (whole && !fault_.is_taken()) {
            if (marked_ != MPI_COMM_NULL) MPI_Comm_free(&marked_);
            MPI_Comm_free(&ranks_);
        }
        // what nobody has taken would be met by the next one that MPI gives the same number, and is read where it lies: both stay
        else
            static_cast<void>(new (std::nothrow) heap_scratch{std::move(scratch_)});
    }

    int rank() const noexcept { return rank_; }
    int size() const noexcept { return size_; }
    /// How many of its ranks run on this host.
    int ranks_of_host() const noexcept { return placement_.ranks_of_host(); }
    /// Whether messages between its ranks never leave this host.
    bool on_one_host() const noexcept { return placement_.on_one_host(); }
    /// Whether each has a core of its own there, as far as this communicator and those that it was split from know.
    bool uncrowded() const noexcept { return placement_.uncrowded(); }
    /// Whether ranks were dealt to hosts or cores in turn: those half of all apart share more of them than neighbours do.
    bool dealt_in_turn() const noexcept { return placement_.dealt_in_turn(); }
    /// Whether pieces of a message arrive sooner than the message on this processor.
    static bool pieces_pay() noexcept { return mpi_placement::pieces_pay(); }
    /// How messages between ranks of one host are best cut, as ranks 0 and 1 found when this communicator was made, or as the processor
    /// says; null if it is as `host_segments`, or `whole_segments` where pieces do not pay.
    const segmenting* segments_here() const noexcept { return placement_.segments_here(); }
    /// Whether this rank and `peer` are bound to one core.
    bool beside(int peer) const noexcept { return placement_.beside(peer); }

    /// A duplicate. Its tags up to `last_tag` are taken; its errors return.
    MPI_Comm communicator() const noexcept { return ranks_; }

    /// Sets how long a wait for a peer may take. Ranks may differ in it.
    void set_timeout(timeout limit) noexcept { limit_.store(limit, std::memory_order_relaxed); }
    timeout limit() const noexcept { return limit_.load(std::memory_order_relaxed); }

    void begin(const call_site& where) {
        queue_in(queue_, where, rank_).drain();
        // true from the beginning of MPI_Finalize on, which still lets callbacks communicate
        if (mpi_ended_->load(std::memory_order_relaxed) && !mpi_runtime::is_up())
            throw error(errc::broken, where.operation, called(rank_), where.round,
                        "MPI is not running; call collectives between MPI_Init and MPI_Finalize");
        operation_ = where.operation;
        // of what is new the first wait hears. To look costs as much as a short message, and more where ranks share cores
        if (++calls_ % 16 == 0) hear();
        if (fault_.known() != nullptr) leave(where);
    }
    call_queue& queue() { return queue_in(queue_, {name}, rank_); }

    std::byte* scratch(std::size_t bytes, scratch_for use = scratch_for::arrivals) {
        return scratch_.at_least(bytes, use);
    }

    ticket send(int peer, const void* data, std::size_t bytes, int tag) {
        return post_send(ranks_, peer, data, bytes, tag);
    }
    ticket receive(int peer, void* data, std::size_t bytes, int tag) {
        return post_receive(ranks_, peer, data, bytes, tag, ticket::received);
    }

    /// Whether this MPI has tags enough for marks.
    bool marks() const noexcept { return marked_ != MPI_COMM_NULL; }
    [[gnu::always_inline]] ticket send_marked(int peer, const void* data, std::size_t bytes, std::uint32_t mark) {
        return post_send(marked_, peer, data, bytes, static_cast<int>(mark));
    }
    [[gnu::always_inline]] ticket receive_marked(int peer, void* data, std::size_t bytes) {
        return post_receive(marked_, peer, data, bytes, MPI_ANY_TAG, ticket::received_marked);
    }
    std::uint32_t mark_of(const ticket& received) const noexcept { return received.mark_; }

    [[gnu::always_inline]] bool test(ticket& asked) {
        if (asked.request_ == MPI_REQUEST_NULL) return true;
        int done = 0;
        if (asked.what_ == ticket::received_marked) {
            MPI_Status status;
            check(MPI_Test(&asked.request_, &done, &status), "MPI_Test");
            if (done != 0) asked.mark_ = static_cast<std::uint32_t>(status.MPI_TAG);
        } else check(MPI_Test(&asked.request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
        return done != 0;
    }

    /// Gives up on a message, which a failure has made pointless: MPI's answers no longer matter. The bytes of a send
    /// must stay where they are until MPI ends, for MPI cannot take it back; so must those of a receive whose peer
    /// stopped in the midst of it, which is waited for a second.
    void cancel(ticket& given_up) noexcept {
        if (given_up.request_ == MPI_REQUEST_NULL) return;
        int done = given_up.what_ != ticket::sent && MPI_Cancel(&given_up.request_) == MPI_SUCCESS ? 0 : 1;
        patience waiting{timeout{1}};  // of a message that has begun to arrive the rest may never come
        while (done == 0 && MPI_Test(&given_up.request_, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0)
            if (waiting.pause() && waiting.expired()) break;
        if (given_up.request_ != MPI_REQUEST_NULL) MPI_Request_free(&given_up.request_);
        given_up.request_ = MPI_REQUEST_NULL;
    }

    void listen(const call_site& where) {
        hear();
        if (fault_.known() != nullptr) leave(where);
    }

    /// From now on errors call its ranks by these numbers: those that they have where the whole call is made.
    void call_ranks(std::vector<int> numbers) noexcept { numbers_ = std::move(numbers); }
    int called(int rank) const noexcept { return numbers_.empty() ? rank : numbers_[static_cast<std::size_t>(rank)]; }

    /// Tells all ranks that this one leaves a collective half done. The first call counts.
    void fail(errc code, const char* words) noexcept {
        told_ = true;
        if (!mpi_runtime::is_up() || !fault_.record(fault{code, words})) return;
        try {
            const told_fault word{id_, *fault_.known()};
            const char* const bytes = reinterpret_cast<const char*>(&word);
            mpi_runtime::send_to_all({bytes, bytes + sizeof word}, fault_tag, ranks_, rank_, size_);
        } catch (...) {  // without memory nothing can be said: the peers will meet their deadline
        }
    }

    /// A communicator of the ranks that pass the same `color`, ordered by `key`, then by rank. All ranks call it;
    /// blocks.
    mpi split(int color, int key) {
        const call_site where{"split"};
        begin(where);
        listen(where);
        const bool sensible = meet(color >= 0, where);  // MPI_Comm_split knows no deadline
        if (color < 0)
            throw error(errc::invalid_argument, where.operation, rank_, -1, "color is %d; pass 0 or more", color);
        if (!sensible) throw senseless_elsewhere(where, rank_);
        MPI_Comm group = MPI_COMM_NULL;
        check(MPI_Comm_split(ranks_, color, key, &group), "MPI_Comm_split");
        mpi part{owned{group}, limit()};
        part.placement_.crowd_as(placement_);
        return part;
    }

    static constexpr int fault_tag = 16;  // those below are the callers'
    static constexpr int meeting_tag = 17;
    static constexpr int last_tag = meeting_tag;

private:
    friend class cluster;  // whose ranks meet once more, when their nodes have memory

    struct owned {
        MPI_Comm ranks;
    };
    /// Who gives up says so under the communicator's own number: MPI may use its for another one before the word has come.
    struct told_fault {
        std::uint64_t communicator;
        fault what;
    };

    struct no_more_yet {};
    mpi(owned group, timeout limit, no_more_yet) : ranks_{group.ranks}, limit_{limit} {}
    /// What fails here finds an object that is whole, whose destructor gives the group back.
    mpi(owned group, timeout limit) : mpi{group, limit, no_more_yet{}} {
        mpi_ended_ = &mpi_runtime::ended();
        check(MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        check(MPI_Comm_rank(ranks_, &rank_), "MPI_Comm_rank");
        check(MPI_Comm_size(ranks_, &size_), "MPI_Comm_size");
        meet(true, {operation_});  // MPI's own collectives, from here on, know no deadline
        if (rank_ == 0) id_ = mpi_runtime::new_number();
        check(MPI_Bcast(&id_, sizeof id_, MPI_BYTE, 0, ranks_), "MPI_Bcast");
        placement_ = mpi_placement{all()};
        queue_ = std::make_unique<call_queue>(mpi_runtime::any_thread(), placement_.ranks_of_host());
        const int* last_mark = nullptr;
        int known = 0;
        check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&last_mark), &known),
              "MPI_Comm_get_attr");
        if (known == 0 || *last_mark < (1 << mark_bits) - 1) return;
        check(MPI_Comm_dup(ranks_, &marked_), "MPI_Comm_dup");  // with ranks_' error handler
    }

    mpi_group all() const noexcept { return {ranks_, rank_, size_, meeting_tag, operation_}; }

    static MPI_Comm world() {
        mpi_runtime::start();
        return MPI_COMM_WORLD;
    }

    /// What the environment says, if that makes sense: all throw if it does not, once they have met.
    static timeout limit_to_meet() noexcept {
        try {
            return timeout_from_environment();
        } catch (const error&) { return timeout{}; }
    }

    static MPI_Comm duplicate_of(MPI_Comm ranks, timeout limit) {
        if (!mpi_runtime::is_up())
            throw error(errc::invalid_argument, name, -1, -1,
                        mpi_runtime::is_over() ? "MPI has ended in this process; make communicators before MPI_Finalize"
                                               : "MPI is not running; call MPI_Init first, or pass no communicator");
        int two_groups = 0;
        if (ranks != MPI_COMM_NULL)
            mpi_runtime::check(MPI_Comm_test_inter(ranks, &two_groups), "MPI_Comm_test_inter", name, -1);
        if (ranks == MPI_COMM_NULL || two_groups != 0)
            throw error(errc::invalid_argument, name, -1, -1, "the communicator is %s; pass one of a single group",
                        two_groups != 0 ? "an intercommunicator" : "MPI_COMM_NULL");
        return mpi_runtime::duplicate(ranks, limit, name);
    }

    void check(int code, const char* call) const { mpi_runtime::check(code, call, operation_, called(rank_)); }

    [[gnu::always_inline]] ticket post_send(MPI_Comm ranks, int peer, const void* data, std::size_t bytes, int tag) {
        ticket result;
        const auto post = [&](int count, MPI_Datatype type) __attribute__((always_inline)) {
            check(MPI_Isend(data, count, type, peer, tag, ranks, &result.request_), "MPI_Isend");
        };
        if (bytes <= INT_MAX) [[likely]] {
            post(static_cast<int>(bytes), MPI_BYTE);
        } else with_long_type(bytes, post);
        return result;
    }
    [[gnu::always_inline]] ticket post_receive(MPI_Comm ranks, int peer, void* data, std::size_t bytes, int tag,
                                               ticket::message what) {
        ticket result;
        result.what_ = what;
        const auto post = [&](int count, MPI_Datatype type) __attribute__((always_inline)) {
            check(MPI_Irecv(data, count, type, peer, tag, ranks, &result.request_), "MPI_Irecv");
        };
        if (bytes <= INT_MAX) [[likely]] {
            post(static_cast<int>(bytes), MPI_BYTE);
        } else with_long_type(bytes, post);
        return result;
    }

    /// Calls `post(count, type)` for `bytes` bytes, more than MPI counts in `int`: they are one element of a type as
    /// long as the message, so that it stays one message and any receive that is long enough takes it.
    template <class Post>
    [[gnu::noinline]] void with_long_type(std::size_t bytes, const Post& post) const {
        constexpr std::size_t block = std::size_t{1} << 20;
        struct scoped_type {
            MPI_Datatype type = MPI_DATATYPE_NULL;
            ~scoped_type() {
                if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
            }
        } blocks, message;
        check(MPI_Type_contiguous(static_cast<int>(block), MPI_BYTE, &blocks.type), "MPI_Type_contiguous");
        const int lengths[] = {static_cast<int>(bytes / block), static_cast<int>(bytes % block)};
        const MPI_Aint places[] = {0, static_cast<MPI_Aint>(bytes - bytes % block)};
        const MPI_Datatype types[] = {blocks.type, MPI_BYTE};
        check(MPI_Type_create_struct(2, lengths, places, types, &message.type), "MPI_Type_create_struct");
        check(MPI_Type_commit(&message.type), "MPI_Type_commit");
        post(1, message.type);
    }

    [[noreturn]] void leave(const call_site& where) {
        const int own = called(rank_);
        const fault& first = *fault_.known();
        throw told_.exchange(true) ? still_broken(first, where, own) : peer_gave_up(first, where, own);
    }

    /// Looks whether a peer has announced a failure.
    void hear() {
        while (fault_.known() == nullptr) {
            int announced = 0;
            MPI_Status status;
            check(MPI_Iprobe(MPI_ANY_SOURCE, fault_tag, ranks_, &announced, &status), "MPI_Iprobe");
            if (announced == 0) return;
            told_fault word;
            check(MPI_Recv(&word, sizeof word, MPI_BYTE, status.MPI_SOURCE, fault_tag, ranks_, MPI_STATUS_IGNORE),
                  "MPI_Recv");
            if (word.communicator != id_) continue;
            fault_.record(word.what);
        }
    }

    /// Returns when all ranks have come, with whether all are `sensible`: each hears from 1, 2, 4, ... ranks to its left.
    bool meet(bool sensible, const call_site& where) {
        char known = sensible ? 1 : 0;
        for (int distance = 1; distance < size_; distance *= 2) {
            const int left = (rank_ + size_ - distance) % size_;
            char heard = 0;
            struct under_way {  // no longer than its bytes, however this ends
                mpi& wire;
                ticket sent, came;
                ~under_way() {
                    wire.cancel(came);
                    wire.cancel(sent);
                }
            } pair{*this, send((rank_ + distance) % size_, &known, 1, meeting_tag),
                   receive(left, &heard, 1, meeting_tag)};
            patience waiting{limit()};
            while (!test(pair.came) || !test(pair.sent)) {
                if (!waiting.pause()) continue;
                listen(where);
                if (!waiting.expired()) continue;
                const error failure = did_not_arrive({where.operation}, rank_, left, waiting.limit());
                fail(failure.code(), failure.what());
                throw failure;
            }
            known = static_cast<char>(known & heard);
        }
        return known != 0;
    }

    MPI_Comm ranks_;
    MPI_Comm marked_ = MPI_COMM_NULL;  // where messages bear marks as tags; none if there are too few
    int rank_ = -1;
    int size_ = 0;
    std::vector<int> numbers_;  // what errors call its ranks; their own numbers if empty
    std::uint64_t id_ = 0;
    mpi_placement placement_;
    std::atomic<timeout> limit_;  // like the fault: who interrupts a call is another thread
    const std::atomic<bool>* mpi_ended_ = nullptr;
    const char* operation_ = name;
    unsigned calls_ = 0;
    fault_record fault_;
    std::atomic<bool> told_{false};  // whether this rank knows of it
    heap_scratch scratch_;
    std::unique_ptr<call_queue> queue_;
};

static_assert(marking_transport<mpi>);

}  // namespace ddl
