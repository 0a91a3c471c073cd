// SPDX-License-Identifier: Apache-2.0
// Draws a schedule from its own functions: the README shows what it prints.
// prints: ring: 4 ranks, 4 chunks, 6 rounds
// prints:           0 -> 1     1 -> 2     2 -> 3     3 -> 0
// prints: round 0   chunk 3 +  chunk 0 +  chunk 1 +  chunk 2 +
// prints: round 1   chunk 2 +  chunk 3 +  chunk 0 +  chunk 1 +
// prints: round 2   chunk 1 +  chunk 2 +  chunk 3 +  chunk 0 +
// prints: round 3   chunk 0 =  chunk 1 =  chunk 2 =  chunk 3 =
// prints: round 4   chunk 3 =  chunk 0 =  chunk 1 =  chunk 2 =
// prints: round 5   chunk 2 =  chunk 3 =  chunk 0 =  chunk 1 =
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/ring.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

/// What the receiver does with the message of `from` in this round: `+` combines it, `=` puts it in place.
template <ddl::program Program>
std::string arrival(const Program& program, int round, int from, int to, int chunk) {
    for (int i = 0; i < program.width(to, round); ++i) {
        const ddl::transfer t = program.at(to, round, i);
        if (t.what != ddl::action::send && t.peer == from && t.chunk == chunk)
            return t.what == ddl::action::receive_reduce ? "+" : "=";
    }
    return "?";
}

/// A column for each pair of ranks that speak, a line for each round.
template <class Schedule>
void draw(int ranks) {
    const auto program = ddl::allreduce_program<Schedule>(ranks);
    std::vector<std::pair<int, int>> links;
    std::vector<std::vector<std::string>> rounds;
    for (int round = 0; round < program.rounds(); ++round) {
        std::vector<std::string>& line = rounds.emplace_back();
        for (int rank = 0; rank < ranks; ++rank)
            for (int i = 0; i < program.width(rank, round); ++i) {
                const ddl::transfer t = program.at(rank, round, i);
                if (t.what != ddl::action::send) continue;
                const auto link = std::find(links.begin(), links.end(), std::pair{rank, t.peer});
                const auto column = static_cast<std::size_t>(link - links.begin());
                if (link == links.end()) links.emplace_back(rank, t.peer);
                line.resize(std::max(line.size(), column + 1));
                line[column] +=
                    "chunk " + std::to_string(t.chunk) + " " + arrival(program, round, rank, t.peer, t.chunk);
            }
    }
    std::printf("%s: %d ranks, %d chunks, %d rounds\n", ddl::schedule_name<Schedule>(), ranks, program.chunks(),
                program.rounds());
    const auto print = [](std::string line, const std::vector<std::string>& cells) {
        for (const std::string& cell : cells) {
            line += cell;
            line.resize(line.size() + std::max<std::size_t>(11, cell.size() + 2) - cell.size(), ' ');
        }
        std::printf("%s\n", line.substr(0, line.find_last_not_of(' ') + 1).c_str());
    };
    std::vector<std::string> heads;
    for (const auto& [from, to] : links) heads.push_back(std::to_string(from) + " -> " + std::to_string(to));
    print("          ", heads);
    for (std::size_t round = 0; round < rounds.size(); ++round)
        print("round " + std::to_string(round) + "   ", rounds[round]);
}

static_assert(ddl::proves_allreduce<ddl::ring>(4), "the picture is that of an allreduce");

int main() { draw<ddl::ring>(4); }
