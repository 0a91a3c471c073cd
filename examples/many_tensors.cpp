// SPDX-License-Identifier: Apache-2.0
// The gradients of all layers of a network in one exchange: many small allreduces would each pay for their steps.
// prints: 3 layers, averaged: 1.5 15 150
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <array>
#include <cstdio>
#include <span>
#include <vector>

int main() {
    ddl::threads::run(4, [](ddl::threads& team) {
        const auto mine = static_cast<float>(team.rank());
        //! [tensors]
        std::vector<float> convolution(9 * 64, 1 * mine);
        std::vector<float> bias(64, 10 * mine);
        std::array<float, 10> output;
        output.fill(100 * mine);

        const std::vector<std::span<float>> layers{convolution, bias,
                                                   output};  // equal sizes in equal order on all ranks
        ddl::allreduce_n(team, layers, ddl::average{});
        //! [tensors]
        if (team.rank() == 0)
            std::printf("%zu layers, averaged: %g %g %g\n", layers.size(), convolution[0], bias[0], output[0]);
    });
}
