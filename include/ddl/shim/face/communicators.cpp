// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/calls.hpp>
#include <ddl/shim/companion.hpp>
#include <ddl/shim/options.hpp>
#include <ddl/shim/process_end.hpp>
#include <ddl/transport/patience.hpp>

#include <cstring>
#include <pthread.h>

using namespace ddl::shim;
using ddl::text;

namespace ddl::shim {
namespace {

bool is_over_mpi(const ddl_communicator& ranks) noexcept {
    return std::strcmp(ranks.known.transport.load(), "cluster") == 0;
}

/// Whether another thread is in a blocking call, and so in MPI.
bool is_left_in_call(const ddl_communicator& ranks) noexcept {
    const std::thread::id who = ranks.running.load();
    return who != std::thread::id{} && who != std::this_thread::get_id();
}

/// When the process ends MPI does, too, while a thread may be in it: a call in which the program leaves one behind is ended. What was
/// started `mpi_runtime` waits for.
void finish_over_mpi(int status) noexcept {
    if (is_calling_back) return;  // in the very call that would be waited for
    handle<ddl_communicator>::each_alive([status](ddl_communicator* ranks) {
        const bool is_left = is_left_in_call(*ranks);
        if ((ranks->started == 0 && !is_left) || !is_over_mpi(*ranks)) return;
        tell_of_end(ranks, status, is_left);
        ddl::patience leaving{ddl::limit_of_leaver};
        while (is_left_in_call(*ranks) && !(leaving.pause() && leaving.expired())) {}
    });
}

}  // namespace

ddl_communicator* hold(std::unique_ptr<backend> ranks) {
    static std::atomic<std::uint64_t> opened{0};
    const table& rows = ranks->rows();  // this and the next two may find no memory
    ddl_communicator* const made = handle<ddl_communicator>::take();
    mapped_memory::here().open(ranks->memory());
    made->rows = &rows;
    made->object = ranks->object();
    made->rank = ranks->rank();
    made->size = ranks->size();
    made->known.rank = ranks->rank();
    made->known.size = ranks->size();
    made->known.local_rank = ranks->local_rank();
    made->known.local_size = ranks->local_size();
    made->known.transport = ranks->transport();
    made->schedule = 0;
    made->mode = 0;
    made->has_extents = false;
    made->dev_sync = 0;
    made->host_in = made->host_out = made;
    made->interrupted = false;
    made->opened = ++opened;
    made->known.forks = forks::so_far();
    made->ranks = std::move(ranks);
    handle<ddl_communicator>::raise(made);
    if (is_over_mpi(*made)) {  // MPI has started by now, and is ended after that
        [[maybe_unused]] static const bool told = (at_end_of_this_process<finish_over_mpi>(), true);
    }
    return made;
}

}  // namespace ddl::shim

namespace {

using handles = handle<ddl_communicator>;

/// The openers of this library and of its companion, if that is wanted: the first that `has` what is asked for.
template <class Has>
const opener* find_opener(Has has, bool with_companion, text& why) noexcept {
    for (const opener& each : openers())
        if (has(each)) return &each;
    const companion* const more = with_companion ? load_companion(why) : nullptr;
    for (std::size_t i = 0; more != nullptr && i < more->count; ++i)
        if (has(more->openers[i])) return &more->openers[i];
    return nullptr;
}

/// Runs `open(world)` and makes a handle of what it opened.
template <class Open>
ddl_status opened(ddl_communicator** world, const char* operation, Open open) noexcept {
    if (const ddl_status status = emptied(world, operation)) return status;
    std::unique_ptr<backend> ranks;
    if (const ddl_status status = open(ranks)) return status;
    return guarded(this_thread, operation, [&] { *world = hold(std::move(ranks)); });
}

/// What part of a vector this rank sends in each of the levels that `by_extents` goes by, if the mode has any.
performance::parts sent_in_levels(const options& given, int rank, int size) {
    performance::parts sent{};
    const auto add = [&](const auto& program) {
        for (int round = 0; round < program.rounds(); ++round)
            for (int i = 0; i < program.width(rank, round); ++i)
                if (const ddl::transfer t = program.at(rank, round, i); t.what == ddl::action::send)
                    sent[static_cast<std::size_t>(by_extents::between(rank, t.peer, 0))] +=
                        static_cast<double>(t.count) / program.chunks();
    };
    by_extents::use(given.extents);
    const std::string_view schedule = schedule_of_mode(given, false);
    if (schedule == "enhanced") add(enhanced::allreduce(size));
    else if (schedule == "rings") add(rings::allreduce(size));
    else if (schedule == "halvings") add(halvings::allreduce(size));
    return sent;
}

/// Held by who opens by the environment, be it for long: so a process that is made by fork meanwhile gets one of its own.
std::mutex* opens_by_environment = new std::mutex;
[[maybe_unused]] const int is_renewed =
    ::pthread_atfork(nullptr, nullptr, [] { ::new (opens_by_environment) std::mutex; });

bool opens_by_mpi(const opener& one) noexcept { return one.by_mpi != nullptr; }

}  // namespace

namespace ddl::shim {

ddl_status set_options(ddl_communicator* ranks, const char* words, const char* operation) noexcept {
    return with_communicator(ranks, operation, [&]() noexcept -> ddl_status {
        options given;
        text why;
        if (!options_reader{ranks->size, why}.read(words == nullptr ? "" : words, given))
            return refused(DDL_INVALID_ARGUMENT, operation, ranks->rank, "%s", why.c_str());
        // one level is none of nodes, though all ranks are on one
        const bool on_nodes = given.depth() > 1 && ranks->ranks->nodes_of(given.extents[0]);
        const int found = ranks->ranks->schedule(schedule_of_mode(given, on_nodes));
        if (found < 0)
            return refused(DDL_UNSUPPORTED, operation, ranks->rank,
                           "this library was built without the mode %c; pass p", given.mode);
        if (given.levels == 0) given.extents[0] = ranks->size;
        return guarded(this_thread, operation, [&] {
            ranks->ranks->set_extents(given.extents);
            ranks->has_extents = true;
            ranks->mode = found;
            ranks->dev_sync = given.dev_sync;
            ranks->times.reset();
            if (performance::wanted(given))
                ranks->times = std::make_unique<performance>(given, sent_in_levels(given, ranks->rank, ranks->size));
            if (given.dbg_level > 0 && ranks->rank == 0)
                std::fprintf(stderr, "[DDL] %d ranks over %s, options \"%s\", schedule %s\n", ranks->size,
                             ranks->ranks->transport(), words == nullptr ? "" : words,
                             schedule_of_mode(given, on_nodes));
        });
    });
}

}  // namespace ddl::shim

extern "C" {

ddl_status ddl_open_environment(ddl_communicator** world) {
    if (const ddl_status status = emptied(world, "open_environment")) return status;
    const char* const said = value_of("DDL_TRANSPORT");
    if (*said != '\0' && std::strcmp(said, "mpi") != 0 && std::strcmp(said, "shared_memory") != 0)
        return refused(DDL_INVALID_ARGUMENT, "open_environment", -1,
                       "DDL_TRANSPORT is \"%.40s\"; it takes mpi or shared_memory", said);
    if (ranks_are_of_mpi()) return told_of("open_environment", ddl_open_mpi(nullptr, 0, world));
    if (const char* const processes = ranks_inside_of_one())
        return refused(DDL_INVALID_ARGUMENT, "open_environment", -1,
                       "this is one of %.9s processes of a launcher of MPI that ddlrun has started as rank %.9s; take "
                       "one of the two launchers",
                       processes, value_of("RANK"));
    static ddl_communicator* first = nullptr;  // has the job's name, which no other can have at the same time
    static std::uint64_t first_opened = 0;
    const std::lock_guard lock{*opens_by_environment};
    if (handles::alive(first) && first->opened == first_opened) return ddl_split(first, 0, first->rank, world);
    const ddl_status status = opened(world, "open_environment", [](std::unique_ptr<backend>& ranks) noexcept {
        text why;
        const opener* const found =
            find_opener([](const opener& one) { return one.by_environment != nullptr; }, false, why);
        if (found == nullptr)
            return refused(DDL_UNSUPPORTED, "open_environment", -1, "this library has no transport that needs no MPI");
        return found->by_environment(ranks, this_thread);
    });
    if (status == DDL_OK) {
        first = *world;
        first_opened = first->opened;
    }
    return status;
}

ddl_status ddl_open_job(const char* job, int rank, int size, double seconds, ddl_communicator** world) {
    return opened(world, "open_job", [&](std::unique_ptr<backend>& ranks) noexcept {
        if (job == nullptr)
            return refused(DDL_INVALID_ARGUMENT, "open_job", rank,
                           "the job's name is NULL; pass one name on all ranks");
        if (!(seconds >= 0))
            return refused(DDL_INVALID_ARGUMENT, "open_job", rank, "the timeout is %g s; pass 0 or more", seconds);
        text why;
        const opener* const found = find_opener([](const opener& one) { return one.by_job != nullptr; }, false, why);
        if (found == nullptr)
            return refused(DDL_UNSUPPORTED, "open_job", rank,
                           "this library has no transport for the ranks of one host");
        return found->by_job(job, rank, size, seconds, ranks, this_thread);
    });
}

ddl_status ddl_open_mpi(const void* communicator, double seconds, ddl_communicator** world) {
    return opened(world, "open_mpi", [&](std::unique_ptr<backend>& ranks) noexcept {
        if (!(seconds >= 0))
            return refused(DDL_INVALID_ARGUMENT, "open_mpi", -1, "the timeout is %g s; pass 0 or more", seconds);
        text why;
        const opener* const found = find_opener(opens_by_mpi, true, why);
        if (found == nullptr)
            return refused(DDL_UNSUPPORTED, "open_mpi", -1,
                           "the part that needs MPI cannot be loaded (%.200s); install it, or set "
                           "DDL_TRANSPORT=shared_memory if all ranks are on this host",
                           why.c_str());
        const companion* const part = openers().empty() ? nullptr : load_companion(why);
        if (part != nullptr && mpi_is_up() && !part->is_up())
            return refused(DDL_UNSUPPORTED, "open_mpi", -1,
                           "MPI runs in this process, but it is another MPI than ddl was built with; use one MPI");
        return found->by_mpi(communicator, seconds, ranks, this_thread);
    });
}

ddl_status ddl_split(ddl_communicator* ranks, int color, int key, ddl_communicator** part) {
    if (part == nullptr)  // the others, who wait in the call, hear of it
        return with_communicator(ranks, "split", [&]() noexcept {
            const under_way call{*ranks};
            ranks->ranks->refuse();
            return emptied(part, "split");
        });
    return opened(part, "split", [&](std::unique_ptr<backend>& made) noexcept {
        return with_communicator(ranks, "split", [&]() noexcept {
            const under_way call{*ranks};
            const task asked{ddl::collective::split, DDL_BOOL, -1, 0, nullptr, nullptr, 0};
            return unless_interrupted(ranks->ranks->split(color, key, made, this_thread), *ranks, asked, this_thread);
        });
    });
}

ddl_status ddl_close(ddl_communicator* ranks) {
    if (ranks == nullptr) return DDL_OK;
    if (handles::alive(ranks) && is_of_parent(*ranks)) {  // who closes it when he likes
        handles::bury(ranks);
        return DDL_OK;
    }
    if (is_calling_back) return refused_in_callback("close", ddl_get_rank(ranks));
    const ddl_status status = with_communicator(ranks, "close", [&]() noexcept -> ddl_status {
        ranks->ranks->drain();  // calls under way use all of what follows, and until then an interrupt ends them
        std::unique_ptr<backend> last;
        {
            const std::lock_guard held{ranks->end};
            handles::bury(ranks);
            last = std::move(ranks->ranks);
        }
        mapped_memory::here().close(last->memory());
        ranks->times.reset();
        ranks->staged.reset();
        return DDL_OK;
    });
    if (status == DDL_OK) handles::give(ranks);
    return status;
}

int ddl_get_rank(const ddl_communicator* ranks) { return handles::alive(ranks) ? ranks->known.rank.load() : -1; }
int ddl_get_size(const ddl_communicator* ranks) { return handles::alive(ranks) ? ranks->known.size.load() : -1; }
int ddl_get_local_rank(const ddl_communicator* ranks) {
    return handles::alive(ranks) ? ranks->known.local_rank.load() : -1;
}
int ddl_get_local_size(const ddl_communicator* ranks) {
    return handles::alive(ranks) ? ranks->known.local_size.load() : -1;
}
const char* ddl_get_transport(const ddl_communicator* ranks) {
    return handles::alive(ranks) ? ranks->known.transport.load() : nullptr;
}

ddl_status ddl_set_timeout(ddl_communicator* ranks, double seconds) {
    return with_communicator(ranks, "set_timeout", [&]() noexcept -> ddl_status {
        if (!(seconds > 0))
            return refused(DDL_INVALID_ARGUMENT, "set_timeout", ranks->rank, "the timeout is %g s; pass more than 0",
                           seconds);
        ranks->ranks->set_timeout(seconds);
        return DDL_OK;
    });
}

ddl_status ddl_set_schedule(ddl_communicator* ranks, const char* name) {
    return with_communicator(ranks, "set_schedule", [&]() noexcept -> ddl_status {
        const int found = name == nullptr ? -1 : ranks->ranks->schedule(name);
        if (found < 0) {
            text there;
            for (int i = 0; const char* const each = ranks->ranks->schedule_name(i); ++i)
                there.append(i == 0 ? "%s" : ", %s", each);
            return refused(DDL_UNSUPPORTED, "set_schedule", ranks->rank,
                           "this library was built without the schedule %.60s; pass one of %.240s",
                           name == nullptr ? "NULL" : name, there.c_str());
        }
        ranks->schedule = found;
        ranks->mode = 0;
        return DDL_OK;
    });
}

ddl_status ddl_set_options(ddl_communicator* ranks, const char* words) {
    return set_options(ranks, words, "set_options");
}

ddl_status ddl_interrupt(ddl_communicator* ranks) {
    return with_lock(&ddl_communicator::end, ranks, "interrupt", [&]() noexcept -> ddl_status {
        if (ranks->started.load() == 0 && ranks->running.load() == std::thread::id{})
            return DDL_OK;  // no call is under way
        ranks->interrupted = true;
        ranks->ranks->interrupt(nullptr);
        return DDL_OK;
    });
}

ddl_status ddl_abort(ddl_communicator* ranks, const char* why) {
    return with_lock(&ddl_communicator::end, ranks, "abort", [&]() noexcept -> ddl_status {
        ranks->interrupted = true;
        ranks->ranks->interrupt(why != nullptr ? why : "it does not say why");
        return DDL_OK;
    });
}

}  // extern "C"
