// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/over_transport.hpp>
#include <ddl/transport/mpi_runtime.hpp>

#include <memory>

namespace ddl::shim {

/// Opens transports that are made of an MPI communicator.
template <class Transport>
constexpr opener opener_by_mpi() noexcept {
    opener result{Transport::name, nullptr, nullptr, nullptr};
    result.by_mpi = [](const void* communicator, double seconds, std::unique_ptr<backend>& world,
                       const listener& heard) noexcept {
        return guarded(heard, Transport::name, [&] {
            const timeout limit = seconds > 0 ? timeout{seconds} : timeout_from_environment();
            if (communicator == nullptr) mpi_runtime::start();
            const MPI_Comm ranks =
                communicator == nullptr ? MPI_COMM_WORLD : *static_cast<const MPI_Comm*>(communicator);
            world = std::make_unique<over_transport<Transport>>(Transport{ranks, limit});
        });
    };
    return result;
}

}  // namespace ddl::shim
