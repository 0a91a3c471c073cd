// SPDX-License-Identifier: Apache-2.0
// Trains a network to read handwritten digits, on as many ranks as there are, and proves that it did what one would do.
//
//   examples/launch 4 examples/build/train_digits     4 processes of this machine, no MPI
//   mpirun -n 4 examples/build/train_digits           as many on any machines, if it was built where there is an MPI
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/buffer.hpp>
#include <ddl/transport/shared_memory.hpp>
#if __has_include(<mpi.h>)
#include <ddl/transport/cluster.hpp>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <vector>

#include "network.hpp"

constexpr int epochs = 20;
constexpr std::size_t batch_size = 50;  // of all ranks together
constexpr float learning_rate = 0.05F;
constexpr float momentum = 0.9F;

constexpr double wanted_accuracy = 0.95;
constexpr double tolerance = 1e-4;  // of the largest weight: sums of other parts round otherwise, step after step

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// How well a network does on some digits.
struct score {
    double loss = 0;
    double accuracy = 0;
};

//! [score]
/// Tries the network on digits. Each rank looks at its part of the digits.
template <class World>
score grade(World& world, network net, const std::vector<digit>& images) {
    const auto [first, count] = ddl::block(images.size(), world.size(), world.rank());
    std::array<double, 2> sums{};  // of the losses, and of the digits that are recognised
    for (const digit& image : std::span{images}.subspan(first, count)) {
        const opinion seen = look_at(net, image);
        sums[0] += static_cast<double>(seen.loss(image.label));
        sums[1] += seen.best() == image.label ? 1 : 0;
    }
    ddl::allreduce(world, sums);
    const auto all = static_cast<double>(images.size());
    return {sums[0] / all, sums[1] / all};
}
//! [score]

/// What comes of a training.
struct training {
    ddl::buffer<float> weights;
    score test{};
    int steps = 0;
    double total_seconds = 0;
    double allreduce_seconds = 0;
};

enum class voice : bool { silent, aloud };

//! [train]
/// Synchronous data-parallel stochastic gradient descent. However many ranks there are, a step learns from the same
/// batch: each rank computes the gradient of its part, the sum goes to all, and all take the same step.
template <class World>
training train(World& world, const digits& data, voice says) {
    training run{.weights{world, network::weights}};
    ddl::buffer<float> gradient{world, network::weights};  // a buffer: peers read it where it is
    std::vector<float> velocity(network::weights);
    if (says == voice::aloud) std::printf("%s\n", ddl::explain(ddl::allreduce_init(world, gradient)).c_str());

    if (world.rank() == 0) draw(trainable{run.weights}, generator{1});
    ddl::broadcast(world, run.weights);

    std::vector<digit> images = data.training;
    generator random{2};  // all ranks draw the same numbers, so they agree on the batches
    const double start = seconds();
    for (int epoch = 1; epoch <= epochs; ++epoch) {
        random.shuffle(images);
        for (std::size_t next = 0; next < images.size(); next += batch_size) {
            const auto batch = std::span{images}.subspan(next, std::min(batch_size, images.size() - next));
            const auto [first, count] = ddl::block(batch.size(), world.size(), world.rank());  // may differ by one
            std::ranges::fill(gradient, 0.0F);
            for (const digit& image : batch.subspan(first, count))
                learn_from(network{run.weights}, image, trainable{gradient});

            const double before = seconds();
            ddl::allreduce(world, gradient);
            run.allreduce_seconds += seconds() - before;

            for (std::size_t i = 0; i < network::weights; ++i) {
                velocity[i] = momentum * velocity[i] + gradient[i] / static_cast<float>(batch.size());
                run.weights[i] -= learning_rate * velocity[i];
            }
            ++run.steps;
        }
        run.test = grade(world, network{run.weights}, data.test);
        const score learned = grade(world, network{run.weights}, images);
        if (says == voice::aloud)
            std::printf("epoch %2d  loss %.4f  test accuracy %.2f %%\n", epoch, learned.loss, 100 * run.test.accuracy);
    }
    run.total_seconds = seconds() - start;
    return run;
}
//! [train]

//! [identical]
/// Whether all ranks hold the same bits.
template <class World>
bool identical(World& world, const ddl::buffer<float>& weights) {
    std::vector<float> of_rank_0(weights.begin(), weights.end());
    ddl::broadcast(world, of_rank_0);
    bool same[] = {std::memcmp(weights.data(), of_rank_0.data(), weights.size() * sizeof(float)) == 0};
    ddl::allreduce(world, same, ddl::logical_and{});
    return same[0];
}
//! [identical]

/// The largest difference of two weights on any rank, as a part of the largest weight.
template <class World>
double distance(World& world, const ddl::buffer<float>& ours, const ddl::buffer<float>& theirs) {
    constexpr ddl::maximum larger;  // which, unlike std::max, does not lose a NaN
    float difference = 0;
    float largest = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
        difference = larger(difference, std::fabs(ours[i] - theirs[i]));
        largest = larger(largest, std::fabs(theirs[i]));
    }
    double relative[] = {static_cast<double>(difference / largest)};
    ddl::allreduce(world, relative, larger);
    return relative[0];
}

/// Trains together, then alone, and compares. Rank 0 speaks; all return the exit status.
template <class World>
int run(World& world, const digits& data) {
    const bool speaks = world.rank() == 0;
    if (speaks)
        std::printf("%d ranks over %s learn from %zu digits, and are tested with %zu others\n", world.size(),
                    World::name, data.training.size(), data.test.size());
    //! [proof]
    const training together = train(world, data, speaks ? voice::aloud : voice::silent);
    World myself = world.split(world.rank(), 0);  // a communicator of this rank alone
    const training alone = train(myself, data, voice::silent);
    //! [proof]

    const bool accurate = together.test.accuracy >= wanted_accuracy;
    const bool same = identical(world, together.weights);
    const double difference = distance(world, together.weights, alone.weights);
    const bool close = difference <= tolerance;
    if (speaks) {
        std::printf(
            "%d steps in %.2f s, of which %.2f s in allreduce: %.0f us a step, %.0f %% of the run, waits included\n",
            together.steps, together.total_seconds, together.allreduce_seconds,
            1e6 * together.allreduce_seconds / together.steps,
            100 * together.allreduce_seconds / together.total_seconds);
        const auto verdict = [](bool holds) { return holds ? "yes" : "NO"; };
        std::printf("test accuracy %.2f %%, at least %.0f %%: %s\n", 100 * together.test.accuracy,
                    100 * wanted_accuracy, verdict(accurate));
        std::printf("the same bits in all %zu weights on all %d ranks: %s\n", network::weights, world.size(),
                    verdict(same));
        std::printf("trained alone on the same batches, weights differ by %.1e of the largest, at most %.0e: %s\n",
                    difference, tolerance, verdict(close));
    }
    return accurate && same && close ? EXIT_SUCCESS : EXIT_FAILURE;
}

#if __has_include(<mpi.h>)
bool started_by_mpirun() {
    for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
        if (std::getenv(variable) != nullptr) return true;  // NOLINT(concurrency-mt-unsafe): nothing here sets it
    return false;
}
#endif

//! [main]
int main(int count, char** arguments) try {
    const digits data{count > 1 ? arguments[1] : "examples/data/optdigits.csv"};
#if __has_include(<mpi.h>)
    if (started_by_mpirun()) {
        ddl::cluster world;  // shared memory inside each node, MPI between nodes
        return run(world, data);
    }
#endif
    ddl::shared_memory world;
    return run(world, data);
} catch (const std::exception& reason) {
    std::fprintf(stderr, "train_digits: %s\n", reason.what());
    return EXIT_FAILURE;
}
//! [main]
