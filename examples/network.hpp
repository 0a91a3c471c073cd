// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "digits.hpp"

/// A neural network with one hidden layer: 64 pixels, 64 hidden neurons (ReLU), 10 classes (softmax, cross-entropy).
///
/// It is a view on its weights, which lie in one row, as does their gradient: what an allreduce likes best.
template <class Weight>
class network_view {
public:
    static constexpr std::size_t pixels = 64;
    static constexpr std::size_t hidden = 64;
    static constexpr std::size_t classes = 10;
    static constexpr std::size_t weights = (pixels + 1) * hidden + (hidden + 1) * classes;

    explicit network_view(std::span<Weight> row)
        : into_hidden{row.subspan(0, pixels * hidden)}, hidden_bias{row.subspan(pixels * hidden, hidden)},
          into_class{row.subspan((pixels + 1) * hidden, hidden * classes)}, class_bias{row.last(classes)} {}

    std::span<Weight> into_hidden;  // a row for each pixel
    std::span<Weight> hidden_bias;
    std::span<Weight> into_class;  // a row for each hidden neuron
    std::span<Weight> class_bias;
};
using network = network_view<const float>;
using trainable = network_view<float>;

/// Random weights to begin with, of a size at which signals neither fade nor explode (He et al., ICCV 2015).
inline void draw(trainable net, generator random) {
    const auto bound = [](std::size_t inputs) { return std::sqrt(6.0F / static_cast<float>(inputs)); };
    for (float& weight : net.into_hidden) weight = random.within(bound(network::pixels));
    for (float& weight : net.into_class) weight = random.within(bound(network::hidden));
    std::ranges::fill(net.hidden_bias, 0.0F);
    std::ranges::fill(net.class_bias, 0.0F);
}

/// What the network makes of a digit.
struct opinion {
    std::array<float, network::hidden> hidden;
    std::array<float, network::classes> probability;

    std::size_t best() const {
        return static_cast<std::size_t>(std::ranges::max_element(probability) - probability.begin());
    }
    float loss(std::size_t label) const { return -std::log(std::max(probability[label], 1e-30F)); }
};

/// Forward: from pixels to probabilities.
inline opinion look_at(network net, const digit& image) {
    opinion result;
    std::ranges::copy(net.hidden_bias, result.hidden.begin());
    for (std::size_t i = 0; i < network::pixels; ++i)
        for (std::size_t j = 0; j < network::hidden; ++j)
            result.hidden[j] += image.pixels[i] * net.into_hidden[i * network::hidden + j];
    for (float& activation : result.hidden) activation = std::max(activation, 0.0F);

    auto& output = result.probability;
    std::ranges::copy(net.class_bias, output.begin());
    for (std::size_t j = 0; j < network::hidden; ++j)
        for (std::size_t c = 0; c < network::classes; ++c)
            output[c] += result.hidden[j] * net.into_class[j * network::classes + c];
    const float largest = *std::ranges::max_element(output);  // so that no exponential overflows
    float total = 0;
    for (float& value : output) total += value = std::exp(value - largest);
    for (float& value : output) value /= total;
    return result;
}

/// Backward: adds the gradient of the loss of one digit to `gradient`.
inline void learn_from(network net, const digit& image, trainable gradient) {
    const opinion seen = look_at(net, image);
    std::array<float, network::classes> output_error = seen.probability;
    output_error[image.label] -= 1;
    std::array<float, network::hidden> hidden_error{};
    for (std::size_t j = 0; j < network::hidden; ++j) {
        if (seen.hidden[j] == 0) continue;  // a neuron that was silent has no part in the error
        for (std::size_t c = 0; c < network::classes; ++c) {
            hidden_error[j] += output_error[c] * net.into_class[j * network::classes + c];
            gradient.into_class[j * network::classes + c] += seen.hidden[j] * output_error[c];
        }
    }
    for (std::size_t i = 0; i < network::pixels; ++i)
        for (std::size_t j = 0; j < network::hidden; ++j)
            gradient.into_hidden[i * network::hidden + j] += image.pixels[i] * hidden_error[j];
    for (std::size_t j = 0; j < network::hidden; ++j) gradient.hidden_bias[j] += hidden_error[j];
    for (std::size_t c = 0; c < network::classes; ++c) gradient.class_bias[c] += output_error[c];
}
