// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/call_queue.hpp>
#include <ddl/transport/concepts.hpp>

namespace ddl {

/// Two levels or more, each with a transport of its own: `layered{node, wire}`, innermost first.
///
/// `node` joins the ranks of this node, `wire` this rank with those of equal rank on the other nodes, so all nodes have
/// equally many ranks: rank = `wire.rank() * node.size() + node.rank()`. Carries allreduce, reduce, broadcast and barrier.
/// Refers to its transports, which must outlive it and are not to be used by others during a call.
template <class Node, class... Wires>
class layered;

template <class Node, class Wire>
    requires communicator<Node> && communicator<Wire>
class layered<Node, Wire> {
public:
    static constexpr const char* name = "layered";

    layered(Node& node, Wire& wire) noexcept : node_{node}, wire_{wire} {}
    layered(const layered&) noexcept = default;
    /// Carries out its pending calls, which refer to it.
    ~layered() {
        try {
            if (call_queue& ours = queue(); !ours.is_of_parent()) ours.drain();
        } catch (const error&) {}  // of a level that was moved from there are none
    }

    int rank() const noexcept { return wire_.rank() * node_.size() + node_.rank(); }
    int size() const noexcept { return wire_.size() * node_.size(); }
    Node& node() const noexcept { return node_; }
    Wire& wire() const noexcept { return wire_; }

    void begin(const call_site&) { queue().drain(); }  // each level begins its own calls
    /// That of the wire where MPI may be called by one thread alone: no other level's thread may then carry out calls.
    call_queue& queue() const {
        call_queue& outer = wire_.queue();
        return outer.may_use_thread() ? node_.queue() : outer;
    }
    std::byte* scratch(std::size_t bytes, scratch_for use = scratch_for::arrivals) { return node_.scratch(bytes, use); }

    /// Tells the peers on all levels that this rank leaves a call half done.
    void fail(errc code, const char* words) const noexcept {
        node_.fail(code, words);
        wire_.fail(code, words);
    }

private:
    Node& node_;
    Wire& wire_;
};

/// The levels beyond the first, kept as a `layered` of their own.
template <class... Wires>
struct outer_levels {
    layered<Wires...> outer;
};

template <class Node, class Wire, class... Wires>
    requires(sizeof...(Wires) > 0)
class layered<Node, Wire, Wires...> : outer_levels<Wire, Wires...>, public layered<Node, layered<Wire, Wires...>> {
public:
    layered(Node& node, Wire& wire, Wires&... wires) noexcept
        : outer_levels<Wire, Wires...>{{wire, wires...}}, layered<Node, layered<Wire, Wires...>>{node, this->outer} {}
    layered(const layered&) = delete;  // the levels refer to each other
    layered& operator=(const layered&) = delete;
};

template <class... Levels>
layered(Levels&...) -> layered<Levels...>;

}  // namespace ddl
