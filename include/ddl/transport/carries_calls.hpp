// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/device_messages.hpp>
#include <ddl/transport/grid_transport.hpp>
#include <ddl/transport/staging_transport.hpp>

namespace ddl {

/// Ranks that some executor makes calls over: they send messages, share memory, or stand above others that do.
template <class Transport>
concept carries_calls = message_transport<Transport> || memory_transport<Transport> || clustered_transport<Transport> ||
                        stacked_transport<Transport> || grid_transport<Transport> || staging_transport<Transport> ||
                        device_message_transport<Transport> || requires { Transport::chooses_schedule; };

}  // namespace ddl
