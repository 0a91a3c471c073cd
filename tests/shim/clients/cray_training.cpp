// SPDX-License-Identifier: Apache-2.0
// A training program of the Cray PE DL Plugin: ranks first, then teams, weights of rank 0, averages of gradients.
// rows: few
// ranks: 1 2 3 4 5 6 7 8 9
// mpi-ranks: 1 2 3 4 5
// two-nodes: 5 7
// mpich-two-nodes: none; where three threads call MPI at once, MPICH 4.0.2 over UCX left a message unmatched
#include <cmath>
#include <dl_comm.h>
#include <vector>

#include "check.hpp"

int main() {
    CHECK(dl_comm_init_mpi() == 0);
    const int rank = dl_comm_get_rank();
    const int size = dl_comm_get_nranks();
    CHECK(0 <= rank && rank < size && dl_comm_localrank() >= 0);
    CHECK(dl_comm_init() == 0);
    CHECK(dl_create_team(0, 2, 0) == 0);

    std::vector<float> weights(70'000, static_cast<float>(rank));
    std::vector<float> bias(3, static_cast<float>(rank + 10));
    void* tensors[] = {weights.data(), bias.data()};
    int lengths[] = {static_cast<int>(weights.size()), static_cast<int>(bias.size())};
    dlDataType_t types[] = {DL_COMM_FLOAT, DL_COMM_FLOAT};
    void** towers[] = {tensors};
    int* tower_lengths[] = {lengths};
    dlDataType_t* tower_types[] = {types};
    int counts[] = {2};

    CHECK(dl_comm_broadcast(towers, tower_lengths, tower_types, counts, 1, size - 1) == 0);
    for (const float each : weights) CHECK(each == static_cast<float>(size - 1));
    CHECK(bias[2] == static_cast<float>(size + 9));

    for (int step = 0; step < 5; ++step) {
        for (std::size_t i = 0; i < weights.size(); ++i)
            weights[i] = static_cast<float>(rank + 1) * static_cast<float>(i % 7);
        bias.assign(3, static_cast<float>(rank));
        CHECK(dl_comm_gradients(towers, tower_lengths, tower_types, counts, 1, 0) == 0);
        const float mean = static_cast<float>(size + 1) / 2;
        for (std::size_t i = 0; i < weights.size(); ++i)
            CHECK(std::abs(weights[i] - mean * static_cast<float>(i % 7)) < 1e-4F);
        CHECK(std::abs(bias[0] - (mean - 1)) < 1e-5F);
    }
    CHECK(dl_comm_finalize() == 0);
    CHECK(dl_comm_finalize() == 0);  // some clients call it twice
}
