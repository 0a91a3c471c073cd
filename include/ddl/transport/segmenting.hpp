// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace ddl {

/// What else goes on while a message is under way: nothing, or its receiver sends one, too; `beside` if then only one of the two
/// moves at a time, for they run on one core.
enum class passage : unsigned char { one_way, both_ways, beside };

/// How messages are cut, and how many pieces are under way at a time. Sizes in bytes.
struct segmenting {
    std::size_t bytes;               // of a segment
    int depth;                       // segments under way to a peer, and from it, at most
    std::size_t short_message = 0;   // a message that is no longer
    std::size_t short_bytes = 0;     //     is cut into segments of so many
    std::size_t short_exchange = 0;  // the same where messages go both ways; 0: as many
    std::size_t short_beside = 0;    // the same between ranks of one core; 0: as many
    std::size_t short_load = 0;      // the same of what is copied before it leaves, if that is longer
    std::size_t long_operand = 0;    // from so many on what one of two ranks sends and the other combines; 0: never
    std::size_t quick_message = 0;   // a message that is no longer
    std::size_t quick_bytes = 0;     //     is cut into segments of so many, whatever the program
    std::size_t combining = 0;       // under way each way with a peer while operands arrive, or a segment; 0: no limit

    /// Whether the cores that combine move the messages, too, as on one host.
    constexpr bool cores_move() const noexcept { return combining != 0; }

    friend constexpr bool operator==(const segmenting&, const segmenting&) = default;

    /// What ranks compare, for both ends of a message cut it alike or not at all.
    constexpr std::uint32_t fingerprint() const noexcept {
        std::uint64_t word = 0;
        for (const std::size_t each : {bytes, short_message, short_bytes, short_exchange, short_beside, short_load,
                                       long_operand, quick_message, quick_bytes})
            word = (word + each) * 0x9e37'79b9'7f4a'7c15U;
        return static_cast<std::uint32_t>(word >> 32);
    }

    /// Messages under way in a round of so many lanes at most; also slots, of so many lanes with operands.
    constexpr int messages(int lanes) const noexcept {
        const int enough = 8 * depth;
        if (lanes >= enough) return lanes;
        return lanes * depth < enough ? lanes * depth : enough;
    }
    /// Segments under way to a peer, or from it, in a round of so many lanes at most, of operands in segments of `operand` bytes.
    constexpr int segments(int lanes, std::size_t operand) const noexcept {
        const int most = lanes > 0 ? messages(lanes) / lanes : 1;
        if (!cores_move() || static_cast<std::size_t>(most) * operand <= combining) return most;
        return operand < combining ? static_cast<int>(combining / operand) : 1;
    }
    /// The longest message that is cut as a short one.
    constexpr std::size_t longest_short(passage way) const noexcept {
        if (way == passage::one_way || short_exchange == 0) return short_message;
        return way == passage::both_ways || short_beside == 0 ? short_exchange : short_beside;
    }
    /// The longest message that is cut as a short one, however it goes.
    constexpr std::size_t longest_in_pieces() const noexcept {
        std::size_t most = quick_message;
        for (const std::size_t each : {short_message, short_exchange, short_beside}) most = each > most ? each : most;
        return most;
    }
    /// Bytes of a segment of a message of `message` bytes, in whole elements of `unit` bytes.
    constexpr std::size_t length(std::size_t message, std::size_t unit, passage way) const noexcept {
        return length_up_to(longest_short(way), message, unit);
    }
    /// The same of a message that is copied before it leaves.
    constexpr std::size_t load_length(std::size_t message, std::size_t unit, passage way) const noexcept {
        const std::size_t few = longest_short(way);
        return length_up_to(few > short_load ? few : short_load, message, unit);
    }
    /// The same of a long operand.
    constexpr std::size_t operand_length(std::size_t unit) const noexcept { return whole(short_bytes, unit); }

private:
    constexpr std::size_t length_up_to(std::size_t few, std::size_t message, std::size_t unit) const noexcept {
        return whole(message <= quick_message ? quick_bytes : message <= few ? short_bytes : bytes, unit);
    }
    static constexpr std::size_t whole(std::size_t most, std::size_t unit) noexcept {
        return most > unit ? most / unit * unit : unit;
    }
};

}  // namespace ddl
