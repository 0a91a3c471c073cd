// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/level_clock.hpp>
#include <ddl/shim/registry.hpp>
#include <ddl/transport/memory_source.hpp>
#include <ddl/transport/request.hpp>

#include <functional>
#include <memory>

namespace ddl::shim {

/// A communicator of whatever transport, as the C interface sees it. The library that made it carries everything out, so
/// that libraries which do not know each other's types, nor MPI, can share one interface. Nothing throws but `rows`, for lack of memory.
class backend {
public:
    virtual ~backend() = default;

    virtual const char* transport() const noexcept = 0;
    virtual int rank() const noexcept = 0;
    virtual int size() const noexcept = 0;
    virtual int local_rank() const noexcept = 0;
    virtual int local_size() const noexcept = 0;

    /// What rows run over, the rows, and the names of their schedules.
    virtual void* object() noexcept = 0;
    virtual const table& rows() const = 0;
    virtual int schedule(const char* name) const noexcept = 0;
    virtual const char* schedule_name(int number) const noexcept = 0;  // nullptr if there are no more

    virtual ddl_status barrier(const listener& heard) noexcept = 0;
    /// Combines `words` of all ranks by their maximum, after a call in which a rank asked for chunks. `asks`: this one does so first.
    virtual ddl_status agree(bool asks, std::span<std::int64_t> words, const listener& heard) noexcept = 0;
    /// The same where nobody may ask.
    virtual ddl_status compare(std::span<std::int64_t> words, const listener& heard) noexcept = 0;
    /// Returns when the nonblocking calls so far are done.
    virtual void drain() noexcept = 0;
    /// This rank's arguments make no sense: joins the call in which the others wait, and lets them know.
    virtual void refuse() noexcept = 0;
    /// Hands `call` to the queue of nonblocking calls. `done` becomes its request.
    virtual ddl_status push(std::function<void()> call, request& done, const listener& heard) noexcept = 0;
    virtual ddl_status split(int color, int key, std::unique_ptr<backend>& part, const listener& heard) noexcept = 0;
    /// Ends the call under way, and those to come, here and on all peers, which are told `why`: nullptr for a program that
    /// interrupts a call, else why it gives up. For any thread.
    virtual void interrupt(const char* why) noexcept = 0;
    virtual void set_timeout(double seconds) noexcept = 0;
    /// Memory that peers can map, where the transport has some.
    virtual memory_source memory() const noexcept = 0;
    /// How many ranks each of the levels of `by_extents` has, innermost first.
    virtual void set_extents(const int* extents) noexcept = 0;
    /// Makes them those of the next calls of this thread, which `clock` times if it is not nullptr.
    virtual void use_extents(level_clock* clock) const noexcept = 0;
    /// Whether the machine groups the ranks so: consecutive ones, equally many a node.
    virtual bool nodes_of(int ranks) const noexcept = 0;
};

/// How communicators of one transport are opened. A function that a transport has no use for is nullptr.
struct opener {
    const char* transport;
    ddl_status (*by_environment)(std::unique_ptr<backend>& world, const listener& heard) noexcept;
    ddl_status (*by_job)(const char* job, int rank, int size, double seconds, std::unique_ptr<backend>& world,
                         const listener& heard) noexcept;
    /// `communicator`: the address of an MPI_Comm, or nullptr for all ranks, which starts MPI if nobody did.
    ddl_status (*by_mpi)(const void* communicator, double seconds, std::unique_ptr<backend>& world,
                         const listener& heard) noexcept;
};

/// The openers of a library; a generated unit defines it.
std::span<const opener> openers() noexcept;

}  // namespace ddl::shim
